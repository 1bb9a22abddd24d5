"""The ``info`` object: what a runner says of itself (facts/runner-api.md section 2)."""

from __future__ import annotations

from typing import Any, Protocol

from pyrunner.api.wire import ConfigInfo, Features, Info
from pyrunner.base.host import goarch, goos
from pyrunner.base.version import CLIENT_NAME, GITLAB_RUNNER_VERSION, REVISION


class ExecutorLike(Protocol):
    """The part of an executor provider that says what it can."""

    def get_features(self, features: Features) -> None: ...
    def get_config_info(self, config: Any, info: ConfigInfo) -> None: ...
    def get_default_shell(self) -> str: ...


class RunnerLike(Protocol):
    """The part of a ``[[runners]]`` entry that the server is told."""

    @property
    def executor(self) -> str: ...
    @property
    def shell(self) -> str: ...


#: Keys that this client sets, whatever the executor (section 2.1).
_CLIENT = (
    "trace_reset",
    "trace_checksum",
    "trace_size",
    "cancelable",
    "cancel_gracefully",
    "two_phase_job_commit",
    "job_inputs",
)
#: Keys that every shell sets.
_SHELL = (
    "artifacts",
    "upload_multiple_artifacts",
    "upload_raw_artifacts",
    "artifacts_exclude",
    "cache",
    "fallback_cache_keys",
    "refspecs",
    "masking",
    "raw_variables",
    "multi_build_steps",
    "vault_secrets",
    "return_exit_code",
)


def client_info() -> Info:
    """What registration sends: no executor is chosen yet, so only the client's own features are set."""
    features = Features(**dict.fromkeys(_CLIENT, True))
    return Info(
        name=CLIENT_NAME,
        version=GITLAB_RUNNER_VERSION,
        revision=REVISION,
        platform=goos(),
        architecture=goarch(),
        features=features,
        config=ConfigInfo(),
    )


def runner_info(runner: RunnerLike, provider: ExecutorLike | None, labels: dict[str, str]) -> Info:
    """What every other call sends.

    Args:
        provider: of the runner's executor; None when there is none of that name here.
        labels: global labels overlaid by the runner's.
    """
    info = client_info()
    info.executor = runner.executor
    info.shell = runner.shell
    info.labels = labels
    if provider is None:
        return info
    info.shell = runner.shell or provider.get_default_shell()
    features, config = info.features or Features(), info.config or ConfigInfo()
    for key in _SHELL:
        setattr(features, key, True)
    provider.get_features(features)
    provider.get_config_info(runner, config)
    info.features, info.config = features, config
    return info
