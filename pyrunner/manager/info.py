"""The ``info`` object of a runner (facts/runner-api.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping

from pyrunner.api.wire import ConfigInfo, Features, Info
from pyrunner.base.host import goarch, goos
from pyrunner.base.version import CLIENT_NAME, GITLAB_RUNNER_VERSION, REVISION
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.protocol import ExecutorProvider

#: What the client can whatever the executor is.
_BY_CLIENT = (
    "trace_reset",
    "trace_checksum",
    "trace_size",
    "cancelable",
    "cancel_gracefully",
    "two_phase_job_commit",
    "job_inputs",
)


def runner_info(config: RunnerConfig, provider: ExecutorProvider | None, labels: Mapping[str, str]) -> Info:
    """What the server is told about this runner; without a provider only what every client can do."""
    features, settings = Features(), ConfigInfo()
    for name in _BY_CLIENT:
        setattr(features, name, True)
    shell = config.shell
    if provider is not None:
        provider.get_features(features)
        provider.get_config_info(config, settings)
        shell = shell or provider.get_default_shell()
    return Info(
        name=CLIENT_NAME,
        version=GITLAB_RUNNER_VERSION,
        revision=REVISION,
        platform=goos(),
        architecture=goarch(),
        executor=config.executor,
        shell=shell,
        features=features,
        config=settings,
        labels=dict(labels),
    )
