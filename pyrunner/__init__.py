"""pyrunner: a CI job runner that speaks the GitLab Runner API."""
