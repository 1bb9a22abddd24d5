"""``cache-archiver``: save the cache of a job."""

from __future__ import annotations

import os

from pyrunner.base.errors import UsageError
from pyrunner.cli.file_flags import LEVELS, SELECTION_FLAGS
from pyrunner.cli.job_flags import METER_FLAG
from pyrunner.cli.spec import Command, Flag
from pyrunner.cli.storage_flags import TRANSFER_FLAGS, refuse_cloud_urls, take_env_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyrunner.cli.parse import Invocation
    from pyrunner.helper.cache_archive import CacheArchive

_FLAGS = (
    Flag("file", help="the archive", metavar="FILE", complete="file"),
    Flag(
        "alternate-file", help="the same cache under its other name; renamed when --file is missing", metavar="FILE",
        complete="file",
    ),
    *SELECTION_FLAGS,
    Flag("url", help="presigned URL to PUT the archive to", metavar="URL", section="Transfer"),
    Flag("check-url", help="presigned URL to HEAD the stored archive", metavar="URL", section="Transfer"),
    Flag("gocloud-url", help="URL of a cloud storage", metavar="URL", section="Transfer"),
    Flag("header", "list", help="header of the upload; repeatable", metavar="'K: V'", section="Transfer"),
    *TRANSFER_FLAGS,
    METER_FLAG,
    Flag("metadata", help="what to note beside the archive", env=["CACHE_METADATA"], metavar="JSON"),
    Flag(
        "compression-level", help="compression level", env=["CACHE_COMPRESSION_LEVEL"], metavar="LEVEL", choices=LEVELS
    ),
    Flag(
        "compression-format", help="format; anything unknown is zip", env=["CACHE_COMPRESSION_FORMAT"],
        metavar="FORMAT", choices=["zip", "zipzstd", "tarzstd"],
    ),
    Flag(
        "max-uploaded-archive-size", "int", help="largest archive that is uploaded, in bytes; 0 = no limit",
        env=["CACHE_MAX_UPLOADED_ARCHIVE_SIZE"],
    ),
)  # fmt: skip


def _run(call: Invocation) -> int:
    from pyrunner.cli.helper_session import run_helper

    return run_helper(lambda: _archive(call).run())


def _archive(call: Invocation) -> CacheArchive:
    from pyrunner.helper.cache_archive import CacheArchive

    refuse_cloud_urls(call, "gocloud-url")
    take_env_file(call)
    archive = CacheArchive(call.text("file"))
    archive.alternate = call.text("alternate-file")
    archive.paths = call.items("path")
    archive.excludes = call.items("exclude")
    archive.untracked = call.flag("untracked")
    archive.verbose = call.flag("verbose")
    archive.format = call.text("compression-format")
    archive.level = call.text("compression-level")
    archive.metadata = _metadata(call.text("metadata") or os.environ.get("CACHE_METADATA", ""))
    archive.url = call.text("url")
    archive.check_url = call.text("check-url")
    archive.headers = _headers(call.items("header"))
    archive.largest = call.number("max-uploaded-archive-size")
    archive.timeout = call.number("timeout")
    archive.retries = call.number("retry")
    archive.retry_pause = call.seconds("retry-time")
    archive.meter_frequency = call.seconds("transfer-meter-frequency")
    return archive


def _metadata(text: str) -> dict[str, str]:
    if not text:
        return {}
    import json

    try:
        values = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--metadata: not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise UsageError('--metadata: expected a JSON object such as {"cachekey": "main"}')
    return {str(key): str(value) for key, value in values.items()}


def _headers(lines: Iterable[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise UsageError("--header: expected 'Name: value'")
        headers[name.strip()] = value.strip()
    return headers


COMMAND = Command(
    "cache-archiver",
    "Create and upload cache artifacts (internal)",
    _run,
    flags=_FLAGS,
    description="""
        Runs inside a job. The archive is only made when a chosen file is newer than it; it replaces the earlier one
        when it is whole.
    """,
    examples=[("cache-archiver --file ../cache/main/cache.zip --path vendor", "save the directory vendor")],
)
