"""``artifacts-uploader``: archive files of a job and send them to its server."""

from __future__ import annotations

from pyrunner.cli.file_flags import LEVELS, SELECTION_FLAGS
from pyrunner.cli.job_flags import METER_FLAG, SERVER_FLAGS, server_of
from pyrunner.cli.spec import Command, Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation
    from pyrunner.helper.artifacts_upload import Upload
    from pyrunner.helper.provenance import Provenance

_PROVENANCE = "Provenance"
_FLAGS = (
    *SERVER_FLAGS,
    *SELECTION_FLAGS,
    Flag("name", help="name of the archive, without suffix", default="artifacts", metavar="NAME"),
    Flag("expire-in", help="when the server may delete it", metavar="TIME"),
    Flag("artifact-format", help="format", metavar="FORMAT", choices=["zip", "gzip", "raw", "tarzstd", "zipzstd"]),
    Flag("artifact-type", help="what it is, such as archive or junit", metavar="TYPE"),
    Flag(
        "compression-level", help="compression level", env=["ARTIFACT_COMPRESSION_LEVEL"], metavar="LEVEL",
        choices=LEVELS,
    ),
    Flag("timeout", "duration", help="limit of one request", default=3600.0),
    Flag("response-header-timeout", "duration", help="limit for the start of the answer", default=600.0),
    Flag("ci-debug-trace", "bool", help="log what the server answers", env=["CI_DEBUG_TRACE"]),
    METER_FLAG,
    Flag("generate-artifacts-metadata", "bool", help="add a provenance statement", section=_PROVENANCE),
    Flag("runner-id", help="number of the runner", metavar="ID", section=_PROVENANCE),
    Flag("repo-url", help="URL of the repository", metavar="URL", section=_PROVENANCE),
    Flag("repo-digest", help="commit that was built", metavar="SHA", section=_PROVENANCE),
    Flag("job-name", help="name of the job", metavar="NAME", section=_PROVENANCE),
    Flag("executor-name", help="executor of the job", metavar="NAME", section=_PROVENANCE),
    Flag("runner-name", help="name of the runner", metavar="NAME", section=_PROVENANCE),
    Flag("metadata-parameter", "list", help="name of a job variable; repeatable", metavar="NAME", section=_PROVENANCE),
    Flag("started-at", help="when the job began (RFC 3339)", metavar="TIME", section=_PROVENANCE),
    Flag("ended-at", help="when the job ended (RFC 3339)", metavar="TIME", section=_PROVENANCE),
    Flag("schema-version", help="version of the statement", metavar="VERSION", default="v1", section=_PROVENANCE),
)  # fmt: skip


def _run(call: Invocation) -> int:
    from pyrunner.cli.helper_session import run_helper

    return run_helper(lambda: _upload(call).run())


def _upload(call: Invocation) -> Upload:
    from pyrunner.helper.artifacts_upload import Upload

    upload = Upload(server_of(call))
    upload.paths = call.items("path")
    upload.excludes = call.items("exclude")
    upload.untracked = call.flag("untracked")
    upload.verbose = call.flag("verbose")
    upload.name = call.text("name")
    upload.expire_in = call.text("expire-in")
    upload.format = call.text("artifact-format")
    upload.type = call.text("artifact-type")
    upload.level = call.text("compression-level")
    upload.timeout = call.seconds("timeout")
    upload.header_timeout = call.seconds("response-header-timeout")
    upload.show_answers = call.flag("ci-debug-trace")
    upload.meter_frequency = call.seconds("transfer-meter-frequency")
    if call.flag("generate-artifacts-metadata"):
        upload.provenance = _provenance(call)
    return upload


def _provenance(call: Invocation) -> Provenance:
    from pyrunner.helper.provenance import Provenance

    provenance = Provenance()
    provenance.runner_id = call.text("runner-id")
    provenance.repo_url = call.text("repo-url")
    provenance.repo_digest = call.text("repo-digest")
    provenance.job_name = call.text("job-name")
    provenance.executor_name = call.text("executor-name")
    provenance.runner_name = call.text("runner-name")
    provenance.parameters = call.items("metadata-parameter")
    provenance.started_at = call.text("started-at")
    provenance.ended_at = call.text("ended-at")
    provenance.schema_version = call.text("schema-version")
    return provenance


COMMAND = Command(
    "artifacts-uploader",
    "Create and upload build artifacts (internal)",
    _run,
    flags=_FLAGS,
    description="""
        Runs inside a job. Paths are doublestar globs relative to the working directory; variables in them are expanded
        as a shell would. Without matching files nothing is uploaded and the exit code is 0.
    """,
    examples=[
        (
            "artifacts-uploader --url https://gitlab.example.com --id 7 --token $CI_JOB_TOKEN --path 'out/**/*.log'",
            "upload all logs below out",
        )
    ],
)
