"""The engine's HTTP interface, typed and thin: the only room that imports the ``docker`` package."""
