"""The small tables of a ``[[runners]]`` entry (facts/config-toml.md 6)."""

from __future__ import annotations

from typing import Annotated

from pyrunner.config.keys import Duration, Key
from pyrunner.config.table import Table


class CustomBuildDir(Table):
    """`[runners.custom_build_dir]`."""

    enabled: Annotated[bool | None, Key("allow GIT_CLONE_PATH; default by executor")] = None


class ArtifactConfig(Table):
    """`[runners.artifact]`."""

    upload_timeout: Annotated[Duration | None, Key("limit of an upload; default 1h")] = None
    response_header_timeout: Annotated[Duration | None, Key("wait for the answer's start; default 10m")] = None

    @property
    def effective_upload_timeout(self) -> float:
        """Seconds."""
        return 3600.0 if self.upload_timeout is None else self.upload_timeout

    @property
    def effective_response_header_timeout(self) -> float:
        """Seconds."""
        return 600.0 if self.response_header_timeout is None else self.response_header_timeout


class MetricsReferee(Table):
    """`[runners.referees.metrics]`."""

    prometheus_address: Annotated[str, Key("base URL or host:port of Prometheus")] = ""
    query_interval: Annotated[int, Key("step in seconds", always=True)] = 0
    queries: Annotated[list[str], Key("name:promql")] = []


class Referees(Table):
    """`[runners.referees]`."""

    metrics: Annotated[MetricsReferee | None, Key("metrics of the job's machine")] = None


class JobQueuingDuration(Table):
    """`[[runners.monitoring.job_queuing_durations]]`: the last entry whose period matches wins."""

    periods: Annotated[list[str], Key("cron expressions of 7 fields")] = []
    timezone: Annotated[str, Key("default Local", always=True)] = ""
    threshold: Annotated[Duration, Key("acceptable time in the queue; 0 = off", always=True)] = 0.0
    jobs_running_for_project: Annotated[str, Key("regular expression of the running jobs count")] = ""


class Monitoring(Table):
    """`[runners.monitoring]`."""

    job_queuing_durations: Annotated[list[JobQueuingDuration], Key("what is too long in the queue")] = []


class BootVerify(Table):
    """`[runners.experimental.boot_verify]`."""

    enabled: Annotated[bool, Key("run a synthetic job before turning ready")] = False
    timeout: Annotated[Duration, Key("0 = 5m", always=True)] = 0.0
    acquire_min_backoff: Annotated[Duration, Key("0 = 1s", always=True)] = 0.0
    acquire_max_backoff: Annotated[Duration, Key("0 = 10s", always=True)] = 0.0


class RunnerExperimental(Table):
    """`[runners.experimental]`."""

    boot_verify: Annotated[BootVerify | None, Key("check the runner at the start")] = None
