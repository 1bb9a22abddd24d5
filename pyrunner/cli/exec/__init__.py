"""What `pyrunner exec` is made of: the work tree as a commit, server and manager around a run, and its display."""
