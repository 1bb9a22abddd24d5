"""Registry credentials from all their sources (facts/executors.md 6.9)."""
