"""One docker executor without a manager, for tests that look at single stages."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from pyrunner.api.variables import Variables
from pyrunner.api.wire import Image, JobInfo, JobResponse, JobVariable
from pyrunner.base.cancel import CancelToken
from pyrunner.executors.docker.engine.address import EngineAddress
from pyrunner.executors.docker.engine.engine import Engine, connect
from pyrunner.executors.docker.engine.records import Listed
from pyrunner.executors.docker.executor import DockerExecutor
from pyrunner.executors.docker.labels import TYPE as TYPE_LABEL
from pyrunner.executors.docker.labels import ObjectType
from pyrunner.executors.protocol import Environment, ExecutorCommand, PrepareOptions
from pyrunner.testing.docker_scope import DockerScope
from pyrunner.testing.executor_contract import RecordingTrace


class DockerStages:
    """A job of which single stages are run. Use as a context manager; what it made is gone afterwards."""

    def __init__(
        self,
        scope: DockerScope,
        *,
        image: Image | None = None,
        services: list[Image] | None = None,
        variables: Mapping[str, str] | None = None,
        job: Mapping[str, Any] | None = None,
        **docker: object,
    ) -> None:
        self.scope = scope
        self.trace = RecordingTrace()
        self.token = CancelToken()
        self.executor = DockerExecutor()
        items = [JobVariable(key=key, value=value, public=True) for key, value in (variables or {}).items()]
        fields: dict[str, Any] = {"id": 7, "job_info": JobInfo(project_id=3), **(job or {})}
        self.options = PrepareOptions(
            config=scope.config(**docker),
            job=JobResponse(image=image, services=services or [], **fields),
            variables=Variables(items).expanded(),
            trace=self.trace,
            token=self.token,
            system_id=scope.system_id,
        )
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        """A connection of the test's own."""
        if self._engine is None:
            self._engine = connect(EngineAddress())
        return self._engine

    def prepare(self) -> Environment:
        """Prepare the job."""
        return self.executor.prepare(self.options)

    def run(self, script: str, *, helper: bool = False, token: CancelToken | None = None) -> str:
        """Run a script in the build or helper container; what it printed."""
        before = len(self.trace.data)
        self.executor.run(
            ExecutorCommand(
                script=script,
                stage="get_sources" if helper else "step_script",
                predefined=helper,
                token=token or self.token,
                trace=self.trace,
            )
        )
        return self.trace.data[before:].decode("utf-8", "replace")

    def container(self, kind: ObjectType) -> Listed:
        """The job's container of this type."""
        (found,) = (item for item in self.scope.belongings(self.engine).containers if item.labels[TYPE_LABEL] == kind)
        return found

    def __enter__(self) -> DockerStages:
        self.prepare()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.executor.cleanup()
        self.token.close()
        if self._engine is not None:
            self._engine.close()
