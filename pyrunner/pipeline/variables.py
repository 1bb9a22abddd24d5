"""The variables that a server gives to a job: predefined ones, those of the file, those of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from pyrunner.api.variables import Variables
from pyrunner.api.wire import JobVariable
from pyrunner.base.version import GITLAB_RUNNER_VERSION
from pyrunner.pipeline.job import Job, Variable

_REFERENCE = re.compile(r"\$(?:\$|(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\})", re.ASCII)


#: Seconds that a job may take when neither it nor anybody else says how many.
DEFAULT_TIMEOUT = 3600


def _no_files(names: Sequence[str]) -> str:
    return ""


class RunContext(Struct, frozen=True, kw_only=True):
    """What is the same for all jobs of one run."""

    #: Base URL of the server, without ``/`` at its end.
    server_url: str
    pipeline_id: int = 1
    project_id: int = 1
    #: ``group/name``
    project_path: str = "local/project"
    #: Full name of the branch or tag without ``refs/heads/``; empty = a detached HEAD, its short id is used.
    ref: str = ""
    is_tag: bool = False
    sha: str = ""
    before_sha: str = "0" * 40
    message: str = ""
    author: str = ""
    #: Of the commit, ISO 8601.
    timestamp: str = ""
    #: When the run began, ISO 8601.
    created_at: str = ""
    default_branch: str = "main"
    user_name: str = ""
    user_email: str = ""
    source: str = "push"
    refspecs: tuple[str, ...] = ()
    #: Depth of fetches when the job has no ``GIT_DEPTH``; 0 = all.
    depth: int = 20
    #: The repository that is served lacks older commits.
    shallow: bool = False
    #: Seconds, for jobs without ``timeout``.
    timeout: int = DEFAULT_TIMEOUT
    #: Given for this run; they win over everything in the file.
    overrides: Mapping[str, str] = field(default_factory=dict)
    config_path: str = ".gitlab-ci.yml"
    #: Fingerprint of files for ``cache:key:files``; empty when none of them exists.
    hash_files: Callable[[Sequence[str]], str] = _no_files

    @property
    def ref_name(self) -> str:
        """Branch or tag, or the short id of the commit."""
        return self.ref or self.sha[:8]

    @property
    def project_name(self) -> str:
        """Last part of the project's path."""
        return self.project_path.rpartition("/")[2]


def slug(text: str) -> str:
    """`text` in lower case with ``-`` for all but letters and digits, at most 63 characters, no ``-`` at its ends."""
    return re.sub(r"[^a-z0-9]", "-", text.lower())[:63].strip("-")


def job_variables(
    job: Job, context: RunContext, job_id: int, token: str, moment: Mapping[str, str] | None = None
) -> list[JobVariable]:
    """All variables of `job` in order, later ones win, nested references resolved (see `resolve_nested`).

    `moment` holds what is known only when the job is handed out, such as the runner.
    """
    found = [JobVariable(key=key, value=value, public=True) for key, value in _run_values(context).items()]
    found += [JobVariable(key=key, value=value, public=True) for key, value in _job_values(job, job_id).items()]
    found += [JobVariable(key=key, value=value, public=True) for key, value in (moment or {}).items()]
    found += [
        JobVariable(key="CI_JOB_TOKEN", value=token, masked=True),
        JobVariable(key="CI_REPOSITORY_URL", value=repository_url(context, token)),
    ]
    found += file_variables(job.variables)
    found += [JobVariable(key=key, value=value, public=True) for key, value in context.overrides.items()]
    return resolve_nested(found)


def job_tags(job: Job, context: RunContext) -> list[str]:
    """The tags of `job` with variables expanded."""
    if not any("$" in tag for tag in job.tags):
        return list(job.tags)
    variables = Variables(job_variables(job, context, 0, ""))
    return [variables.expand(tag) for tag in job.tags]


def file_variables(variables: Mapping[str, Variable]) -> list[JobVariable]:
    """``variables`` of a file as they go over the wire."""
    return [JobVariable(key=key, value=item.value, public=True, raw=item.raw) for key, item in variables.items()]


def repository_url(context: RunContext, token: str) -> str:
    """Where a job clones from, with its credentials."""
    scheme, _, rest = context.server_url.partition("://")
    return f"{scheme}://gitlab-ci-token:{token}@{rest}/{context.project_path}.git"


def _run_values(context: RunContext) -> dict[str, str]:
    namespace = context.project_path.rpartition("/")[0]
    title, _, description = context.message.partition("\n")
    scheme, _, rest = context.server_url.partition("://")
    host, _, port = rest.partition("/")[0].partition(":")
    values = {
        "CI": "true",
        "GITLAB_CI": "true",
        "CI_SERVER_URL": context.server_url,
        "CI_SERVER_HOST": host,
        "CI_SERVER_PORT": port or ("443" if scheme == "https" else "80"),
        "CI_SERVER_PROTOCOL": scheme,
        "CI_SERVER_FQDN": rest.partition("/")[0],
        "CI_SERVER_NAME": "pyrunner",
        "CI_SERVER_VERSION": GITLAB_RUNNER_VERSION,
        "CI_API_V4_URL": f"{context.server_url}/api/v4",
        "CI_PIPELINE_ID": str(context.pipeline_id),
        "CI_PIPELINE_IID": str(context.pipeline_id),
        "CI_PIPELINE_SOURCE": context.source,
        "CI_PIPELINE_CREATED_AT": context.created_at,
        "CI_PIPELINE_URL": f"{context.server_url}/{context.project_path}/-/pipelines/{context.pipeline_id}",
        "CI_PROJECT_ID": str(context.project_id),
        "CI_PROJECT_NAME": context.project_name,
        "CI_PROJECT_TITLE": context.project_name,
        "CI_PROJECT_PATH": context.project_path,
        "CI_PROJECT_PATH_SLUG": slug(context.project_path),
        "CI_PROJECT_NAMESPACE": namespace,
        "CI_PROJECT_ROOT_NAMESPACE": namespace.partition("/")[0],
        "CI_PROJECT_URL": f"{context.server_url}/{context.project_path}",
        "CI_PROJECT_VISIBILITY": "private",
        "CI_DEFAULT_BRANCH": context.default_branch,
        "CI_CONFIG_PATH": context.config_path,
        "CI_COMMIT_SHA": context.sha,
        "CI_COMMIT_SHORT_SHA": context.sha[:8],
        "CI_COMMIT_BEFORE_SHA": context.before_sha,
        "CI_COMMIT_REF_NAME": context.ref_name,
        "CI_COMMIT_REF_SLUG": slug(context.ref_name),
        "CI_COMMIT_REF_PROTECTED": "false",
        "CI_COMMIT_MESSAGE": context.message,
        "CI_COMMIT_TITLE": title,
        "CI_COMMIT_DESCRIPTION": description.strip(),
        "CI_COMMIT_AUTHOR": context.author,
        "CI_COMMIT_TIMESTAMP": context.timestamp,
    }
    if context.ref:
        values["CI_COMMIT_TAG" if context.is_tag else "CI_COMMIT_BRANCH"] = context.ref
    if context.user_name:
        values["GITLAB_USER_NAME"] = context.user_name
        values["GITLAB_USER_LOGIN"] = slug(context.user_name)
    if context.user_email:
        values["GITLAB_USER_EMAIL"] = context.user_email
    return values


def _job_values(job: Job, job_id: int) -> dict[str, str]:
    values = {
        "CI_JOB_ID": str(job_id),
        "CI_JOB_NAME": job.name,
        "CI_JOB_NAME_SLUG": slug(job.name),
        "CI_JOB_STAGE": job.stage,
        "CI_NODE_TOTAL": "1",
    }
    if job.when.value == "manual":
        values["CI_JOB_MANUAL"] = "true"
    return values


def resolve_nested(variables: Iterable[JobVariable]) -> list[JobVariable]:
    """Expand references of variables to each other, so that the runner's single expansion is enough.

    As servers do it: raw values are neither expanded nor put into others, unknown names and ``$$`` stay for the runner,
    and variables that refer to themselves, directly or in a circle, stay as they are.
    """
    items = list(variables)
    by_key = {item.key: item for item in items}
    resolver = _Resolver(by_key)
    return [
        item
        if item.raw or "$" not in item.value or by_key[item.key] is not item
        else JobVariable(
            key=item.key,
            value=resolver.value(item.key),
            public=item.public,
            file=item.file,
            masked=item.masked,
        )
        for item in items
    ]


#: A value that grows beyond this stops to be expanded: doubling variables would never end.
_MAX_VALUE = 1 << 20


class _Resolver:
    def __init__(self, by_key: Mapping[str, JobVariable]) -> None:
        self._by_key = by_key
        self._done: dict[str, str] = {}
        self._circular = _circular(by_key)

    def value(self, key: str) -> str:
        """The value of `key` with everything in it that can be resolved; without recursion over long chains."""
        todo = [key]
        while todo:
            current = todo[-1]
            missing = [
                name
                for name in _references(self._by_key[current].value)
                if self._inlined(name) and name not in self._done
            ]
            if missing and current not in self._circular:
                todo += missing
                continue
            self._done[current] = self._expanded(current)
            todo.pop()
        return self._done[key]

    def _inlined(self, name: str) -> bool:
        item = self._by_key.get(name)
        return item is not None and not item.raw and not item.file and name not in self._circular

    def _expanded(self, key: str) -> str:
        text = self._by_key[key].value
        if self._by_key[key].raw or key in self._circular:
            return text

        def one(match: re.Match[str]) -> str:
            name = match["name"] or match["braced"]
            return self._done.get(name, match[0]) if name and self._inlined(name) else match[0]

        expanded = _REFERENCE.sub(one, text)
        return expanded if len(expanded) <= _MAX_VALUE else text


def _references(text: str) -> list[str]:
    if "$" not in text:
        return []
    return [name for match in _REFERENCE.finditer(text) if (name := match["name"] or match["braced"])]


def _circular(by_key: Mapping[str, JobVariable]) -> set[str]:
    """The variables that lie on a circle: what is left when those without open references are taken away both ways."""
    edges = {
        key: {name for name in _references(item.value) if name in by_key and not by_key[name].raw}
        for key, item in by_key.items()
        if not item.raw and "$" in item.value
    }
    circular = set(edges)
    changed = True
    while changed:
        leaf = {key for key in circular if not edges[key] & circular}
        pointed = {name for key in circular - leaf for name in edges[key]}
        # a variable that nobody on a circle points to only refers to one
        root = {key for key in circular if key not in pointed}
        changed = bool(leaf | root)
        circular -= leaf | root
    return circular
