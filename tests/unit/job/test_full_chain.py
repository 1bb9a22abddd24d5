"""The flag that asks for the server's certificates up to the root."""

from __future__ import annotations

import pytest

from pyrunner.api.wire import JobResponse, JobVariable
from pyrunner.config.model import RunnerConfig
from pyrunner.executors.loader import executor_provider
from pyrunner.job.context import JobContext, JobSetting, job_context
from pyrunner.job.variables import TlsFiles


def context(flag: str, ca: str) -> JobContext:
    job = JobResponse(variables=[JobVariable(key="FF_RESOLVE_FULL_TLS_CHAIN", value=flag)])
    setting = JobSetting(config=RunnerConfig(), provider=executor_provider("shell"), tls=TlsFiles(ca=ca))
    return job_context(job, setting)


@pytest.mark.parametrize(
    ("flag", "ca", "expected"), [("true", "leaf", "leaf+root"), ("false", "leaf", "leaf"), ("true", "", "")]
)
def test_the_chain_is_completed_only_where_the_flag_asks(flag: str, ca: str, expected: str) -> None:
    resolved = context(flag, ca).with_full_chain(lambda chain: f"{chain}+root")
    assert resolved.variables.get("CI_SERVER_TLS_CA_FILE") == expected
