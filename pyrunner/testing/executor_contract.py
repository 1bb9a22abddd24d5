"""What every executor must do, as tests: subclass `ExecutorContract` in your test suite.

::

    class TestMyExecutor(ExecutorContract):
        @pytest.fixture
        def provider(self):
            return my_provider

Scripts are for a POSIX shell. An executor that is steered otherwise overrides `case`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pyrunner.api.variables import Variables
from pyrunner.api.wire import ConfigInfo, Features, JobResponse, JobVariable
from pyrunner.base.cancel import CancelToken
from pyrunner.base.errors import JobCanceled, JobFailure
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.protocol import (
    Executor,
    ExecutorCommand,
    ExecutorProvider,
    ExecutorStage,
    PrepareOptions,
    TraceWriter,
)

#: What the scripts of the contract print.
OUTPUT = "output-of-the-contract"


class RecordingTrace:
    """A `TraceWriter` that keeps everything."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._data = bytearray()
        self.grown = threading.Condition(self._lock)

    def write(self, data: bytes) -> None:
        """Keep `data`."""
        with self._lock:
            self._data += data
            self.grown.notify_all()

    def plain(self, text: str) -> None:
        """A line."""
        self.write(f"{text}\n".encode())

    def info(self, text: str) -> None:
        """A line."""
        self.plain(text)

    def warning(self, text: str) -> None:
        """A line."""
        self.plain(f"WARNING: {text}")

    def error(self, text: str) -> None:
        """A line."""
        self.plain(f"ERROR: {text}")

    @property
    def data(self) -> bytes:
        """All so far."""
        with self._lock:
            return bytes(self._data)

    @property
    def text(self) -> str:
        """All so far as text."""
        return self.data.decode("utf-8", "replace")

    def wait_for(self, text: str, timeout: float = 20.0) -> None:
        """Wait until `text` has been written.

        Raises:
            TimeoutError: it was not.
        """
        deadline = time.monotonic() + timeout
        with self._lock:
            while text.encode() not in self._data:
                if not self.grown.wait(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"{text!r} is not in the output: {bytes(self._data)!r}")


@dataclass(frozen=True)
class Case:
    """How to make an executor do something: a script, or variables for executors that run none."""

    script: str = ""
    variables: dict[str, str] = field(default_factory=dict)


CASES = {
    "succeed": Case(f"echo {OUTPUT}\n"),
    "fail": Case(f"echo {OUTPUT}\nexit 7\n"),
    "hang": Case(f"echo {OUTPUT}\nsleep 1000\n"),
    #: More than any pipe holds, as output.
    "flood": Case("i=0; while [ $i -lt 20000 ]; do echo 0123456789012345678901234567890123456789012345678; "
                  "i=$((i+1)); done\n"),
}  # fmt: skip
FLOOD = 1_000_000


class ExecutorContract:
    """The contract of `Executor` and `ExecutorProvider`."""

    #: Whether a user's own executor runs scripts at all.
    runs_scripts = True

    @pytest.fixture
    def provider(self) -> ExecutorProvider:
        """The provider under test; to be overridden."""
        pytest.fail("a contract test needs a fixture `provider`")

    @pytest.fixture
    def config(self, tmp_path: Path) -> RunnerConfig:
        """Config of the runner; override for more."""
        return RunnerConfig(name="contract", builds_dir=str(tmp_path / "builds"), cache_dir=str(tmp_path / "cache"))

    def case(self, name: str) -> Case:
        """How the executor is made to do `name`, a key of `CASES`."""
        return CASES[name]

    @pytest.fixture
    def trace(self) -> RecordingTrace:
        """Where the output goes."""
        return RecordingTrace()

    @pytest.fixture
    def token(self) -> Iterator[CancelToken]:
        """The job's token."""
        token = CancelToken()
        yield token
        token.close()

    @pytest.fixture
    def executor(self, provider: ExecutorProvider) -> Iterator[Executor]:
        """A fresh executor, cleaned up afterwards."""
        executor = provider.create()
        yield executor
        executor.cleanup()

    def options(self, config: RunnerConfig, trace: TraceWriter, token: CancelToken, name: str) -> PrepareOptions:
        """What `prepare` gets for the case `name`."""
        items = [JobVariable(key=key, value=value) for key, value in self.case(name).variables.items()]
        return PrepareOptions(
            config=config, job=JobResponse(id=1), variables=Variables(items), trace=trace, token=token
        )

    def command(self, name: str, trace: TraceWriter, token: CancelToken) -> ExecutorCommand:
        """The stage for the case `name`."""
        return ExecutorCommand(
            script=self.case(name).script, stage="step_script", predefined=False, token=token, trace=trace
        )

    def test_provider_tells_what_it_offers(self, provider: ExecutorProvider, config: RunnerConfig) -> None:
        features, info = Features(), ConfigInfo()
        provider.get_features(features)
        provider.get_config_info(config, info)
        assert provider.can_create()
        assert provider.get_default_shell()
        assert features.variables

    def test_acquired_data_can_be_released(self, provider: ExecutorProvider, config: RunnerConfig) -> None:
        provider.release(config, provider.acquire(config))

    def test_create_gives_independent_executors(self, provider: ExecutorProvider) -> None:
        first, second = provider.create(), provider.create()
        first.set_current_stage(ExecutorStage.RUN)
        assert second.get_current_stage() == ExecutorStage.CREATED

    def test_prepare_names_absolute_or_relative_roots(
        self, executor: Executor, config: RunnerConfig, trace: RecordingTrace, token: CancelToken
    ) -> None:
        environment = executor.prepare(self.options(config, trace, token, "succeed"))
        assert environment.builds_dir
        assert environment.cache_dir
        assert executor.shell().shell

    def test_output_of_a_stage_is_complete_when_run_returns(
        self, executor: Executor, config: RunnerConfig, trace: RecordingTrace, token: CancelToken
    ) -> None:
        executor.prepare(self.options(config, trace, token, "succeed"))
        executor.run(self.command("succeed", trace, token))
        assert OUTPUT in trace.text

    def test_large_output_does_not_block_and_is_not_lost(
        self, executor: Executor, config: RunnerConfig, trace: RecordingTrace, token: CancelToken
    ) -> None:
        executor.prepare(self.options(config, trace, token, "flood"))
        before = len(trace.data)
        executor.run(self.command("flood", trace, token))
        assert len(trace.data) - before == FLOOD

    def test_exit_code_is_reported_as_job_failure(
        self, executor: Executor, config: RunnerConfig, trace: RecordingTrace, token: CancelToken
    ) -> None:
        executor.prepare(self.options(config, trace, token, "fail"))
        with pytest.raises(JobFailure) as caught:
            executor.run(self.command("fail", trace, token))
        assert caught.value.job_exit_code == 7
        assert caught.value.reason == "script_failure"
        assert "7" in str(caught.value)

    def test_stages_can_follow_a_failed_one(
        self, executor: Executor, config: RunnerConfig, trace: RecordingTrace, token: CancelToken
    ) -> None:
        executor.prepare(self.options(config, trace, token, "fail"))
        for _ in range(2):
            with pytest.raises(JobFailure):
                executor.run(self.command("fail", trace, token))

    def test_cancel_ends_a_running_stage_with_the_tokens_cause(
        self, executor: Executor, config: RunnerConfig, trace: RecordingTrace, token: CancelToken
    ) -> None:
        executor.prepare(self.options(config, trace, token, "hang"))
        cause = JobCanceled()

        def cancel() -> None:
            trace.wait_for(OUTPUT)
            token.cancel(cause)

        thread = threading.Thread(target=cancel)
        thread.start()
        try:
            with pytest.raises(JobCanceled) as caught:
                executor.run(self.command("hang", trace, token))
        finally:
            thread.join()
        assert caught.value is cause

    def test_cancelled_token_starts_nothing(
        self, executor: Executor, config: RunnerConfig, trace: RecordingTrace, token: CancelToken
    ) -> None:
        executor.prepare(self.options(config, trace, token, "succeed"))
        token.cancel(JobCanceled())
        with pytest.raises(JobCanceled):
            executor.run(self.command("succeed", trace, token))
        assert OUTPUT not in trace.text

    def test_cancelled_token_ends_prepare(
        self, executor: Executor, config: RunnerConfig, trace: RecordingTrace, token: CancelToken
    ) -> None:
        token.cancel(JobCanceled())
        with pytest.raises(JobCanceled):
            executor.prepare(self.options(config, trace, token, "succeed"))

    def test_cleanup_may_come_without_prepare_and_twice(self, provider: ExecutorProvider) -> None:
        executor = provider.create()
        executor.cleanup()
        executor.cleanup()

    def test_stage_labels_follow_the_life_cycle(
        self, executor: Executor, config: RunnerConfig, trace: RecordingTrace, token: CancelToken
    ) -> None:
        seen = [executor.get_current_stage()]
        executor.prepare(self.options(config, trace, token, "succeed"))
        seen.append(executor.get_current_stage())
        executor.run(self.command("succeed", trace, token))
        seen.append(executor.get_current_stage())
        executor.finish(None)
        seen.append(executor.get_current_stage())
        executor.cleanup()
        seen.append(executor.get_current_stage())
        assert seen == list(ExecutorStage)
