"""The log of a job: one path from raw output to the server."""

from pyrunner.job.trace.trace import JobTrace

__all__ = ["JobTrace"]
