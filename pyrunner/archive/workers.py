"""Many small files at a time: the work is spread over forked processes.

Reading, writing and checking five thousand small files is mostly Python between short system calls, where threads only
hand each other the interpreter lock. A fork of these small commands costs about a millisecond and gives a core each.
"""

from __future__ import annotations

import marshal
import os
import select
import struct
import sys

from pyrunner.archive.errors import ArchiveError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    B = TypeVar("B")
    #: What a batch gives: a value made of plain types, and bytes.
    Result = tuple[object, list[bytes]]

_FRAME = struct.Struct("<cIQ")
_RESULT, _ERROR, _DONE = b"r", b"e", b"d"
_F_SETPIPE_SZ = 1031
_PIPE_SIZE = 1 << 20
#: More do not help: the disk, and the process that collects, come first.
_MOST_WORKERS = 8


def worker_count(variable: str = "") -> int:
    """How many workers this machine gives us; the environment variable `variable` overrides it."""
    text = os.environ.get(variable, "") if variable else ""
    if text.isdigit() and int(text) > 0:
        return min(int(text), 64)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_WORKERS)


def spread(batches: Sequence[B], work: Callable[[B], Result], workers: int) -> Iterator[Result]:
    """``work(batch)`` for every batch, in no particular order, by up to `workers` processes.

    An error of `work` is raised here as an `ArchiveError` with its text. Where forking is not safe (other threads) or
    does not pay, the work is done in this process.
    """
    workers = min(workers, len(batches))
    if workers < 2 or not _may_fork():
        yield from map(work, batches)
        return
    children: dict[int, int] = {}
    try:
        for number in range(workers):
            fd, pid = _start(batches[number::workers], work, list(children))
            children[fd] = pid
        yield from _collect(list(children))
    finally:
        for fd, pid in children.items():
            # a child that still writes gets EPIPE and ends
            os.close(fd)
            os.waitpid(pid, 0)


def _may_fork() -> bool:
    threading = sys.modules.get("threading")  # not imported: there are no threads
    return sys.platform == "linux" and (threading is None or threading.active_count() == 1)


def _start(batches: Sequence[B], work: Callable[[B], Result], inherited: list[int]) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return reader, pid
    code = 1
    try:
        for fd in (reader, *inherited):
            os.close(fd)
        _widen(writer)
        code = _serve(writer, batches, work)
    except BaseException:  # noqa: BLE001, S110 - nothing may return into the parent's code; it sees the pipe end
        pass
    finally:
        os._exit(code)


def _widen(fd: int) -> None:
    import fcntl

    try:
        fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_SIZE)
    except OSError:
        return  # the user's quota for pipes is used up: the normal size works, too


def _serve(fd: int, batches: Sequence[B], work: Callable[[B], Result]) -> int:
    try:
        for batch in batches:
            value, parts = work(batch)
            head = marshal.dumps(value)  # type: ignore[arg-type]
            _write(fd, [_FRAME.pack(_RESULT, len(head), sum(map(len, parts))), head, *parts])
        _write(fd, [_FRAME.pack(_DONE, 0, 0)])
    except BrokenPipeError:
        return 1
    except Exception as error:  # noqa: BLE001 - the top of a worker: its parent raises it again
        text = str(error).encode("utf-8", "surrogateescape")
        _write(fd, [_FRAME.pack(_ERROR, len(text), 0), text])
        return 1
    return 0


def _write(fd: int, parts: list[bytes]) -> None:
    data = memoryview(b"".join(parts))
    while data:
        data = data[os.write(fd, data) :]


def _collect(fds: list[int]) -> Iterator[Result]:
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    left = len(fds)
    while left:
        for fd, _ in poll.poll():
            kind, head_size, size = _FRAME.unpack(_read(fd, _FRAME.size))
            head = _read(fd, head_size)
            if kind == _ERROR:
                raise ArchiveError(head.decode("utf-8", "surrogateescape"))
            if kind == _DONE:
                poll.unregister(fd)
                left -= 1
                continue
            # from our own child over our own pipe
            yield marshal.loads(head), [_read(fd, size)]  # noqa: S302


def _read(fd: int, size: int) -> bytes:
    first = os.read(fd, size) if size else b""
    if len(first) == size:
        return first
    parts = [first]
    missing = size - len(first)
    while missing:
        part = os.read(fd, min(missing, _PIPE_SIZE))
        if not part:
            raise ArchiveError("a worker process ended before its work was done")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
