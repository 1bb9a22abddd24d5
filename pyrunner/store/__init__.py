"""What outlives the process: the outbox of verdicts and logs, and the seal over what is kept."""
