"""The docker executor: every job in containers of its own. See the section about it in docs/architecture.md."""
