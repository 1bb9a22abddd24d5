"""Images: which are allowed, when they are pulled, which is the helper's."""
