"""``cache-extractor``: restore the cache of a job."""

from __future__ import annotations

from pyrunner.cli.job_flags import METER_FLAG
from pyrunner.cli.spec import Command, Flag
from pyrunner.cli.storage_flags import TRANSFER_FLAGS, refuse_cloud_urls, take_env_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation
    from pyrunner.helper.cache_extract import CacheExtract

_TRANSFER = "Transfer"
_FLAGS = (
    Flag("file", help="the archive", metavar="FILE", complete="file"),
    Flag("url", help="presigned URL to GET the archive from", metavar="URL", section=_TRANSFER),
    Flag("head-url", help="presigned URL to HEAD it", metavar="URL", section=_TRANSFER),
    Flag("alternate-url", help="the same cache under its other name", metavar="URL", section=_TRANSFER),
    Flag("alternate-head-url", help="presigned URL to HEAD that", metavar="URL", section=_TRANSFER),
    Flag("gocloud-url", help="URL of a cloud storage", metavar="URL", section=_TRANSFER),
    Flag("alternate-gocloud-url", help="URL of a cloud storage", metavar="URL", section=_TRANSFER),
    *TRANSFER_FLAGS,
    METER_FLAG,
)


def _run(call: Invocation) -> int:
    from pyrunner.cli.helper_session import run_helper

    return run_helper(lambda: _extract(call).run())


def _extract(call: Invocation) -> CacheExtract:
    from pyrunner.helper.cache_extract import CacheExtract
    from pyrunner.helper.environment import switched_on

    refuse_cloud_urls(call, "gocloud-url", "alternate-gocloud-url")
    take_env_file(call)
    extract = CacheExtract(call.text("file"))
    extract.url = call.text("url")
    extract.head_url = call.text("head-url")
    extract.alternate_url = call.text("alternate-url")
    extract.alternate_head_url = call.text("alternate-head-url")
    extract.timeout = call.number("timeout")
    extract.retries = call.number("retry")
    extract.retry_pause = call.seconds("retry-time")
    extract.chunk_size = call.number("chunk-size")
    extract.concurrency = call.number("concurrency")
    extract.parallel = switched_on("FF_USE_PARALLEL_CACHE_TRANSFER")
    extract.meter_frequency = call.seconds("transfer-meter-frequency")
    return extract


COMMAND = Command(
    "cache-extractor",
    "Download and extract cache artifacts (internal)",
    _run,
    flags=_FLAGS,
    description="""
        Runs inside a job. The stored archive is downloaded only when it is newer than the local one. The exit code is 1
        when there is no cache, which the job takes as a hint and not as a failure.
    """,
    examples=[("cache-extractor --file ../cache/main/cache.zip", "restore a local cache")],
)
