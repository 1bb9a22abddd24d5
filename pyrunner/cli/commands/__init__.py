"""One module per command; each exports `COMMAND`. See `pyrunner.cli.registry`."""
