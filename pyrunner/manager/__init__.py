"""The long-running process: which runner asks next, job slots, reload, signals, shutdown."""
