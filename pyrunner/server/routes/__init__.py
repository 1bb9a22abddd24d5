"""The HTTP side of the server, one module per concern. Imports starlette: load it only to serve."""
