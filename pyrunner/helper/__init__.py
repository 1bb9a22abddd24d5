"""The work of the commands that run next to the job; must start fast."""
