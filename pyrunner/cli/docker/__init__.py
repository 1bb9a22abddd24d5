"""What ``pyrunner docker`` prints and removes."""
