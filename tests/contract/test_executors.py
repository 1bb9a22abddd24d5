"""All executors against the one contract."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyrunner.base.cancel import CancelToken
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.loader import executor_provider
from pyrunner.executors.protocol import ExecutorProvider, PrepareOptions, TraceWriter
from pyrunner.testing import dummy_executor
from pyrunner.testing.executor_contract import FLOOD, OUTPUT, Case, ExecutorContract


class TestDummyExecutor(ExecutorContract):
    @pytest.fixture
    def provider(self) -> ExecutorProvider:
        return dummy_executor.provider

    def case(self, name: str) -> Case:
        actions = {
            "succeed": f"print {OUTPUT}",
            "fail": f"print {OUTPUT}; exit 7",
            "hang": f"print {OUTPUT}; hang",
            "flood": f"flood {FLOOD}",
        }
        return Case(variables={"DUMMY_STEP_SCRIPT": actions[name]})


class TestShellExecutor(ExecutorContract):
    @pytest.fixture
    def provider(self) -> ExecutorProvider:
        return executor_provider("shell")


class TestShellExecutorWithoutBash(TestShellExecutor):
    @pytest.fixture
    def config(self, tmp_path: Path) -> RunnerConfig:
        return RunnerConfig(  # noqa: S604 - a name, not subprocess's flag
            name="contract",
            builds_dir=str(tmp_path / "builds"),
            cache_dir=str(tmp_path / "cache"),
            shell="sh",
        )


class TestDurableShellExecutor(TestShellExecutor):
    """With a state directory, output takes the way through a log."""

    @pytest.fixture(autouse=True)
    def state_dir(self, tmp_path: Path) -> None:
        self._state_dir = os.fspath(tmp_path / "state")

    def options(self, config: RunnerConfig, trace: TraceWriter, token: CancelToken, name: str) -> PrepareOptions:
        plain = super().options(config, trace, token, name)
        return PrepareOptions(
            config=plain.config,
            job=plain.job,
            variables=plain.variables,
            trace=plain.trace,
            token=plain.token,
            state_dir=self._state_dir,
        )
