"""Where caches live; the local directory so far."""
