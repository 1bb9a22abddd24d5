"""The command line: one module per command in `commands/`; parsing, help and errors in one place."""
