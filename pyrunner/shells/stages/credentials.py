"""Where the sources come from and how the job's token gets to git without being stored in the repository.

facts/job-lifecycle.md 7.3. Pure functions of the context; URLs that are not http(s) carry no token.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit, urlunsplit

from pyrunner.shells.protocol import ScriptContext
from pyrunner.shells.stages.environment import boolean

USERNAME = "gitlab-ci-token"


def remote_url(context: ScriptContext) -> str:
    """URL of ``origin``, without credentials."""
    return without_credentials(_remote_with_credentials(context))


def _remote_with_credentials(context: ScriptContext) -> str:
    """``clone_url`` of the runner's config wins over what the server sent."""
    clone_url = context.config.clone_url
    if clone_url:
        project = context.variables.get("CI_PROJECT_PATH").strip("/")
        return _with_credentials(context, f"{clone_url.rstrip('/')}/{project}.git")
    return context.job.git_info.repo_url


def origin(url: str) -> str:
    """``scheme://host[:port]`` of an http(s) URL, else empty."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def credential_scope(context: ScriptContext) -> str:
    """``scheme://host`` that the job's credentials are for; empty for other transports."""
    return origin(_remote_with_credentials(context))


def without_credentials(url: str) -> str:
    """`url` without user and password; URLs other than http(s) stay as they are."""
    if not origin(url):
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _with_credentials(context: ScriptContext, url: str) -> str:
    if not origin(url):
        return url
    parts = urlsplit(without_credentials(url))
    token = quote(context.job.token, safe="")
    return urlunsplit(parts._replace(netloc=f"{USERNAME}:{token}@{parts.netloc}"))


def instead_of_rules(context: ScriptContext) -> list[tuple[str, str]]:
    """Pairs (URL with the token, prefix that it replaces), exact ones first, without duplicates.

    Prefixes of hosts end in a slash, so that ``https://host`` does not send the token to ``https://host.example``.
    """
    remote = _remote_with_credentials(context)
    bases = [context.config.clone_url or context.config.url, credential_scope(context)]
    rules: list[tuple[str, str]] = []
    if origin(remote):
        rules.append((remote, without_credentials(remote)))
    for base in bases:
        if origin(base):
            plain = without_credentials(base).rstrip("/") + "/"
            rules.append((_with_credentials(context, plain), plain))
    if boolean(context, "GIT_SUBMODULE_FORCE_HTTPS"):
        rules += [(_with_credentials(context, target), ssh) for target, ssh in _ssh_forms(context, bases)]
    if context.flags.get("FF_GIT_URLS_WITHOUT_TOKENS", False):
        rules = [(without_credentials(url), prefix) for url, prefix in rules]
    return [(url, prefix) for url, prefix in dict.fromkeys(rules) if url != prefix]


def _ssh_forms(context: ScriptContext, bases: list[str]) -> list[tuple[str, str]]:
    """SSH spellings of the server, for submodules that name it so."""
    host = context.variables.get("CI_SERVER_SHELL_SSH_HOST") or context.variables.get("CI_SERVER_HOST")
    base = next((without_credentials(base).rstrip("/") + "/" for base in bases if origin(base)), "")
    if not host or not base:
        return []
    port = context.variables.get("CI_SERVER_SHELL_SSH_PORT")
    if port not in ("", "22"):
        return [(base, f"ssh://git@{host}:{port}/")]
    return [(base, f"git@{host}:"), (base, f"ssh://git@{host}/")]
