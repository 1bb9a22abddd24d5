"""``artifacts-downloader``: get the artifacts of a job and extract them here."""

from __future__ import annotations

from pyrunner.cli.job_flags import METER_FLAG, SERVER_FLAGS, server_of
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation
    from pyrunner.helper.artifacts_download import Download

_FLAGS = (
    *SERVER_FLAGS,
    Flag("retry", "int", help="how often to try again", default=2),
    Flag("retry-time", "duration", help="pause before another try", default=1.0),
    Flag(
        "direct-download", "bool", help="let the server send us to its object storage",
        env=["FF_USE_DIRECT_DOWNLOAD"], default=True,
    ),
    Flag(
        "archiver-staging-dir", help="directory for the archive until it is extracted", env=["ARCHIVER_STAGING_DIR"],
        metavar="DIR", complete="dir",
    ),
    METER_FLAG,
)  # fmt: skip


def _run(call: Invocation) -> int:
    from pyrunner.cli.helper_session import run_helper

    return run_helper(lambda: _download(call).run())


def _download(call: Invocation) -> Download:
    from pyrunner.helper.artifacts_download import Download
    from pyrunner.helper.environment import switched_on

    download = Download(server_of(call))
    download.retries = call.number("retry")
    download.retry_pause = call.seconds("retry-time")
    download.direct = call.flag("direct-download")
    download.parallel = switched_on("FF_USE_PARALLEL_ARTIFACT_TRANSFER")
    download.staging_dir = call.text("archiver-staging-dir")
    download.meter_frequency = call.seconds("transfer-meter-frequency")
    return download


COMMAND = Command(
    "artifacts-downloader",
    "Download and extract build artifacts (internal)",
    _run,
    flags=_FLAGS,
    description="""
        Runs inside a job. The archive is extracted into the working directory; one that is damaged or would write
        outside of it is refused before anything is written.
    """,
    examples=[
        (
            "artifacts-downloader --url https://gitlab.example.com --id 7 --token $CI_JOB_TOKEN",
            "fetch the artifacts of job 7",
        )
    ],
)
