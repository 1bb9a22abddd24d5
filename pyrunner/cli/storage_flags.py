"""Flags of the two cache commands for the storage behind the local archive (facts/commands.md section 15)."""

from __future__ import annotations

import os

from pyrunner.base.errors import UsageError
from pyrunner.cli.spec import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrunner.cli.parse import Invocation

TRANSFER_FLAGS = (
    Flag("timeout", "int", help="minutes for one transfer; 0 = 10", metavar="MINUTES", section="Transfer"),
    Flag("retry", "int", help="how often to try again", default=2, section="Transfer"),
    Flag("retry-time", "duration", help="pause before another try", default=1.0, section="Transfer"),
    Flag(
        "transfer-buffer-size", "int", help="bytes of a buffer", env=["CACHE_TRANSFER_BUFFER_SIZE"],
        default=4 << 20, section="Transfer",
    ),
    Flag(
        "chunk-size", "int", help="bytes of a part in parallel transfers", env=["CACHE_CHUNK_SIZE"],
        default=16 << 20, section="Transfer",
    ),
    Flag(
        "concurrency", "int", help="parts that are transferred at the same time", env=["CACHE_CONCURRENCY"],
        default=16, section="Transfer",
    ),
    Flag(
        "env-file", help="dotenv file with credentials of the storage", metavar="FILE", complete="file",
        section="Transfer",
    ),
)  # fmt: skip


def take_env_file(call: Invocation) -> None:
    """Put the variables of ``--env-file`` into this process's environment."""
    if path := call.text("env-file"):
        from pyrunner.helper.environment import read_env_file

        os.environ.update(read_env_file(path))


def refuse_cloud_urls(call: Invocation, *names: str) -> None:
    """Refuse the flags `names`.

    Raises:
        UsageError: one of them is given.
    """
    for name in names:
        if call.text(name):
            raise UsageError(
                f"--{name}: cloud storage URLs (s3://, gs://, azblob://) are not available in this version.",
                hint="a presigned URL can be given with --url",
            )
