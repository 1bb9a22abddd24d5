"""Wire structures of the runner API (facts/runner-api.md sections 2 to 6).

Decoding is lenient: unknown keys are ignored, missing keys take zero values, and ``null`` where a list, object or text
is expected counts as missing. Field names are those of the JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Wire(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Base of all wire structures; fields at their zero value are not encoded ("omitempty")."""


class JobVariable(Wire):
    """One job variable as the server sends it."""

    key: str = ""
    value: str = ""
    public: bool = False
    file: bool = False
    masked: bool = False
    raw: bool = False


class Step(Wire):
    """One entry of ``steps``: ``script``, ``after_script``, ``release`` …"""

    name: str = ""
    script: list[str] = []
    timeout: int = 0
    when: str = ""
    allow_failure: bool = False


class Port(Wire):
    """A port of an image or service."""

    number: int = 0
    protocol: str = ""
    name: str = ""


class Image(Wire):
    """The job image or a service (section 5.3)."""

    name: str = ""
    alias: str = ""
    entrypoint: list[str] | None = None
    command: list[str] | None = None
    ports: list[Port] = []
    variables: list[JobVariable] = []
    pull_policy: list[str] = []
    executor_opts: dict[str, Any] = {}


class Artifact(Wire):
    """One artifact entry (section 5.4)."""

    name: str = ""
    untracked: bool = False
    paths: list[str] = []
    exclude: list[str] = []
    when: str = ""
    artifact_type: str = ""
    artifact_format: str = ""
    expire_in: str = ""


class Cache(Wire):
    """One cache entry (section 5.5)."""

    key: str = ""
    untracked: bool = False
    policy: str = ""
    paths: list[str] = []
    when: str = ""
    fallback_keys: list[str] = []


class Credentials(Wire):
    """Credentials that come with a job; only type ``registry`` means something."""

    type: str = ""
    url: str = ""
    username: str = ""
    password: str = ""


class ArtifactsFile(Wire):
    """The archive of a dependency."""

    filename: str = ""
    size: int = 0


class Dependency(Wire):
    """A job whose artifacts are downloaded."""

    id: int = 0
    token: str = ""
    name: str = ""
    artifacts_file: ArtifactsFile = msgspec.field(default_factory=ArtifactsFile)


class GitInfo(Wire):
    """What to check out (section 5.1)."""

    repo_url: str = ""
    repo_object_format: str = ""
    ref: str = ""
    sha: str = ""
    before_sha: str = ""
    ref_type: str = ""
    refspecs: list[str] = []
    depth: int = 0
    protected: bool | None = None


class JobInfo(Wire):
    """Names and numbers of the job (section 5.1)."""

    id: int = 0
    name: str = ""
    stage: str = ""
    pipeline_id: int = 0
    project_id: int = 0
    project_name: str = ""
    project_full_path: str = ""
    namespace_id: int = 0
    root_namespace_id: int = 0
    organization_id: int = 0
    instance_id: str = ""
    instance_uuid: str = ""
    user_id: int = 0
    scoped_user_id: int | None = None
    time_in_queue_seconds: float = 0.0
    project_jobs_running_on_instance_runners_count: str = ""
    queue_size: int = 0
    queue_depth: int = 0


class RunnerInfo(Wire):
    """Job limits that the server knows."""

    uuid: str = ""
    timeout: int = 0
    runner_session_url: str = ""


class JobFeatures(Wire):
    """What the server understands."""

    trace_sections: bool = False
    token_mask_prefixes: list[str] = []
    failure_reasons: list[str] = []
    tracing: dict[str, Any] = {}


class Hook(Wire):
    """``pre_get_sources_script`` or ``post_get_sources_script`` of the job."""

    name: str = ""
    script: list[str] = []


class InputValue(Wire):
    """The value of a job input (section 5.6)."""

    type: str = ""
    content: Any = None
    sensitive: bool = False


class JobInput(Wire):
    """One job input."""

    key: str = ""
    value: InputValue = msgspec.field(default_factory=InputValue)


class PolicyOptions(Wire):
    """Set when a security policy made the job."""

    execution_policy_job: bool = False
    policy_name: str = ""
    policy_variables_override_allowed: bool | None = None
    policy_variables_override_exceptions: list[str] = []


class JobResponse(Wire):
    """The body of a 201 answer to ``jobs/request``."""

    id: int = 0
    token: str = ""
    allow_git_fetch: bool = False
    job_info: JobInfo = msgspec.field(default_factory=JobInfo)
    git_info: GitInfo = msgspec.field(default_factory=GitInfo)
    runner_info: RunnerInfo = msgspec.field(default_factory=RunnerInfo)
    inputs: list[JobInput] = []
    variables: list[JobVariable] = []
    steps: list[Step] = []
    image: Image | None = None
    services: list[Image] = []
    artifacts: list[Artifact] = []
    cache: list[Cache] = []
    credentials: list[Credentials] = []
    dependencies: list[Dependency] = []
    features: JobFeatures = msgspec.field(default_factory=JobFeatures)
    secrets: dict[str, Any] = {}
    hooks: list[Hook] = []
    run: str = ""
    policy_options: PolicyOptions = msgspec.field(default_factory=PolicyOptions)
    suspend_options: dict[str, Any] = {}


class Features(msgspec.Struct, kw_only=True):
    """``info.features``: every key is always sent (section 2.1)."""

    variables: bool = False
    image: bool = False
    services: bool = False
    artifacts: bool = False
    cache: bool = False
    fallback_cache_keys: bool = False
    shared: bool = False
    upload_multiple_artifacts: bool = False
    upload_raw_artifacts: bool = False
    session: bool = False
    terminal: bool = False
    refspecs: bool = False
    masking: bool = False
    proxy: bool = False
    raw_variables: bool = False
    artifacts_exclude: bool = False
    multi_build_steps: bool = False
    trace_reset: bool = False
    trace_checksum: bool = False
    trace_size: bool = False
    vault_secrets: bool = False
    cancelable: bool = False
    return_exit_code: bool = False
    service_variables: bool = False
    service_multiple_aliases: bool = False
    image_executor_opts: bool = False
    service_executor_opts: bool = False
    cancel_gracefully: bool = False
    native_steps_integration: bool = False
    two_phase_job_commit: bool = False
    job_inputs: bool = False


class ConfigInfo(msgspec.Struct, kw_only=True):
    """``info.config``, always sent."""

    gpus: str = ""


class Info(Wire):
    """The ``info`` object (section 2)."""

    name: str = ""
    version: str = ""
    revision: str = ""
    platform: str = ""
    architecture: str = ""
    executor: str = ""
    shell: str = ""
    features: Features | None = None
    config: ConfigInfo | None = None
    labels: dict[str, str] = {}


class Session(Wire):
    """The interactive session offered with a job request (section 4.1)."""

    url: str = ""
    certificate: str = ""
    authorization: str = ""


class JobRequest(Wire):
    """Body of ``POST jobs/request``."""

    info: Info
    token: str = ""
    system_id: str = ""
    last_update: str = ""
    session: Session | None = None


class RegisterRequest(msgspec.Struct, kw_only=True):
    """Body of ``POST runners`` (section 3.1); the four booleans are always sent."""

    info: Info
    token: str | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    maintenance_note: str | msgspec.UnsetType = msgspec.UNSET
    tag_list: str | msgspec.UnsetType = msgspec.UNSET
    run_untagged: bool = False
    locked: bool = True
    access_level: str | msgspec.UnsetType = msgspec.UNSET
    maximum_timeout: int | msgspec.UnsetType = msgspec.UNSET
    paused: bool = False


class VerifyRequest(Wire):
    """Body of ``POST runners/verify``."""

    info: Info | None = None
    token: str = ""
    system_id: str = ""


class RunnerCredentials(Wire):
    """Answer of register and verify."""

    id: int = 0
    token: str = ""
    token_expires_at: str | None = None


class TraceOutput(Wire):
    """``output`` of a job update."""

    checksum: str = ""
    bytesize: int = 0


class JobUpdate(Wire):
    """Body of ``PUT jobs/:id`` (section 6.1)."""

    info: Info | None = None
    token: str = ""
    state: str = ""
    failure_reason: str = ""
    checksum: str = ""
    output: TraceOutput | msgspec.UnsetType = msgspec.UNSET
    exit_code: int = 0
    runtime_environment_key: str = ""


def decode_job(body: bytes) -> JobResponse:
    """Decode a job payload.

    Raises:
        msgspec.DecodeError: the body is not JSON.
        msgspec.ValidationError: a field has the wrong type; the message names it, e.g. ``$.git_info.depth``.
    """
    raw = msgspec.json.decode(body)
    return msgspec.convert(_without_nulls(raw), JobResponse)


def _without_nulls(value: Any) -> Any:
    """Drop nulls from objects so that they take zero values; inputs keep theirs (a null input is an error later)."""
    if isinstance(value, dict):
        return {
            key: item if key in ("secrets", "inputs") else _without_nulls(item)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
