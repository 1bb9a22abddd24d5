"""Services of a job: their definitions, names and aliases (facts/executors.md 6.7). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyrunner.api.wire import Image, JobVariable
from pyrunner.base.errors import SystemFailure
from pyrunner.executors.docker.context import DockerJob

_REFERENCE = re.compile(r"(?P<name>[^@]+?)(?::(?P<tag>[^:/@]+))?(?:@(?P<digest>.+))?", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Service:
    """One service as it will be started."""

    #: As it was asked for, with ``:latest`` where neither tag nor digest stands.
    image: str
    #: Without registry port and path of the reference: ``tutum.example/a/b``.
    name: str
    #: Tag, digest (``@sha256:…``) or ``latest``.
    version: str
    aliases: Sequence[str]
    definition: Image
    #: Position among all requested ones: part of the container's name.
    index: int
    variables: Sequence[JobVariable] = field(default=(), repr=False)


def requested_services(job: DockerJob) -> list[Service]:
    """Those of the config, then those of the job.

    Raises:
        SystemFailure: ``runner_configuration_error``: more than ``services_limit``.
    """
    definitions = [*_of_config(job), *job.job.services]
    limit = job.docker.services_limit
    if limit is not None and limit >= 0 and len(definitions) > limit:
        raise SystemFailure(
            f"too many services requested: {len(definitions)}, only {limit} allowed",
            reason="runner_configuration_error",
        )
    taken: set[str] = set()
    found = [_service(job, definition, index, taken) for index, definition in enumerate(definitions)]
    return [service for service in found if service is not None]


def split_reference(reference: str) -> tuple[str, str, str]:
    """Service name, version, and the reference with a tag: ``reg:5000/a/b:1`` → ``reg/a/b``, ``1``, itself."""
    match = _REFERENCE.fullmatch(reference)
    name, tag, digest = match.group("name", "tag", "digest") if match else (reference, None, None)
    version = f"@{digest}" if digest else tag or "latest"
    host, slash, path = name.partition("/")
    bare = f"{host.partition(':')[0]}{slash}{path}"
    return bare, version, reference if tag or digest else f"{reference}:latest"


def _of_config(job: DockerJob) -> list[Image]:
    return [
        Image(
            name=job.variables.expand(service.name),
            alias=job.variables.expand(service.alias),
            command=list(service.command) or None,
            entrypoint=list(service.entrypoint) or None,
            variables=[
                JobVariable(key=key, value=value)
                for key, equals, value in (text.partition("=") for text in service.environment)
                if equals
            ],
        )
        for service in job.docker.services
    ]


def _service(job: DockerJob, definition: Image, index: int, taken: set[str]) -> Service | None:
    reference = job.variables.expand(definition.name)
    name, version, image = split_reference(reference)
    wanted = dict.fromkeys([name.replace("/", "__"), name.replace("/", "-")])
    wanted.update(dict.fromkeys(re.split(r"[\s,]+", job.variables.expand(definition.alias).strip())))
    wanted.pop("", None)
    aliases = []
    for alias in wanted:
        if alias in taken:
            job.trace.warning(
                f'Skipping alias "{alias}" for service "{name}" (services[{index}]): '
                "alias is already in use by another service."
            )
            continue
        aliases.append(alias)
    taken.update(aliases)
    if not aliases:
        return None
    return Service(
        image=image,
        name=name,
        version=version,
        aliases=aliases,
        definition=definition,
        index=index,
        variables=definition.variables,
    )
