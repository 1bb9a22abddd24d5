"""Secrets of a job (facts/runner-api.md 5.7): from a provider's store into job variables."""
