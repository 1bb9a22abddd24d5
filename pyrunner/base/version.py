"""Who we are and which GitLab Runner interface we match."""

VERSION = "0.1.0"

#: The GitLab Runner interface version that is matched. It is what servers are told in ``info.version`` and in the
#: ``User-Agent``, what trace headers show, and what picks the default helper image tag.
GITLAB_RUNNER_VERSION = "19.4.0"

#: Short revision reported to servers (``info.revision``); servers only display it.
REVISION = "pyrunner"

#: ``info.name``: servers parse the client's version only after this very name (facts/runner-api.md 1.2).
CLIENT_NAME = "gitlab-runner"
