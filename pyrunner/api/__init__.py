"""The runner API: wire structures, variables, and the HTTP client with its retry rules."""
