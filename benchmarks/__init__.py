"""Measures pyrunner against the figures of GitLab Runner: ``python -m benchmarks [NAME…]``."""
