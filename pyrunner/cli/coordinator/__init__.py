"""What the subcommands of ``pyrunner coordinator`` do."""
