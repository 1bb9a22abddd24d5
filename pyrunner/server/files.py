"""Where traces and artifacts lie on disk: ``<data dir>/jobs/<id>/trace`` and ``…/artifacts/<type>/<file name>``."""

from __future__ import annotations

import os
import re
import shutil
import zlib
from pathlib import Path

_CHUNK = 1 << 20
_UNSAFE = re.compile(r"[^A-Za-z0-9._+@=,~ -]")


class JobFiles:
    """The files of all jobs below one directory; readable by the owner only, they hold what jobs print."""

    def __init__(self, data_dir: str | os.PathLike[str]) -> None:
        self._root = Path(data_dir) / "jobs"

    def directory(self, job_id: int) -> Path:
        """The directory of one job, which may not exist yet."""
        return self._root / str(job_id)

    def trace_path(self, job_id: int) -> Path:
        """The file with the job's trace, which may not exist yet."""
        return self.directory(job_id) / "trace"

    def clear(self, job_id: int) -> None:
        """Forget what an earlier try of the job left."""
        shutil.rmtree(self.directory(job_id), ignore_errors=True)

    def write_trace(self, job_id: int, start: int, content: bytes) -> None:
        """Put `content` at `start`. A write that fails half way is repaired by repeating it at the same place."""
        path = f"{self._root}/{job_id}/trace"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        except FileNotFoundError:
            self.directory(job_id).mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            view = memoryview(content)
            while view:
                written = os.pwrite(descriptor, view, start)
                view, start = view[written:], start + written
        finally:
            os.close(descriptor)

    def drop_trace(self, job_id: int) -> None:
        """Empty the trace."""
        if self.trace_path(job_id).exists():
            os.truncate(self.trace_path(job_id), 0)

    def read_trace(self, job_id: int, start: int, end: int | None = None) -> bytes:
        """Bytes `start` to `end` (exclusive) of the trace; to its end when `end` is None; fewer when it is shorter."""
        try:
            with self.trace_path(job_id).open("rb") as file:
                file.seek(start)
                return file.read() if end is None else file.read(max(0, end - start))
        except FileNotFoundError:
            return b""

    def measure_trace(self, job_id: int) -> tuple[int, int]:
        """Size and CRC-32 of the stored trace."""
        size = crc = 0
        try:
            with self.trace_path(job_id).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    size += len(chunk)
                    crc = zlib.crc32(chunk, crc)
        except FileNotFoundError:
            return 0, 0
        return size, crc

    def artifact_directory(self, job_id: int, kind: str) -> Path:
        """Where the file of one artifact type lies; made when missing."""
        path = self.directory(job_id) / "artifacts" / safe_name(kind)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


def safe_name(name: str) -> str:
    """`name` as a single path component that stays where it is put, whatever a client sent."""
    base = _UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2])[:200]
    return base if base.strip(". ") else "_" + base
