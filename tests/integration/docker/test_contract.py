"""The docker executor against the contract of all executors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyrunner.base.cancel import CancelToken
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.docker import provider as docker_provider
from pyrunner.executors.protocol import ExecutorCommand, ExecutorProvider, PrepareOptions, TraceWriter
from pyrunner.testing.docker_scope import DockerScope
from pyrunner.testing.executor_contract import ExecutorContract


class TestDockerExecutor(ExecutorContract):
    @pytest.fixture(autouse=True)
    def in_scope(self, scope: DockerScope) -> None:
        self._scope = scope

    @pytest.fixture
    def provider(self) -> ExecutorProvider:
        return docker_provider

    @pytest.fixture
    def config(self, scope: DockerScope) -> RunnerConfig:
        return scope.config()

    def options(self, config: RunnerConfig, trace: TraceWriter, token: CancelToken, name: str) -> PrepareOptions:
        return replace(super().options(config, trace, token, name), system_id=self._scope.system_id)


class TestDockerHelper(TestDockerExecutor):
    """The same for stages that run in the helper container."""

    def command(self, name: str, trace: TraceWriter, token: CancelToken) -> ExecutorCommand:
        return replace(super().command(name, trace, token), predefined=True)
