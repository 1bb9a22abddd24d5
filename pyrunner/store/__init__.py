"""Saved jobs and leases; none yet."""
