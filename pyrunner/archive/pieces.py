"""Large files at a time: pieces are worked on by threads and come back in order.

Compressing, checking and reading a megabyte releases the interpreter lock, so threads are enough here and share memory.
"""

from __future__ import annotations

import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    T = TypeVar("T")


def in_order(work: Callable[[int], T], count: int, threads: int) -> Iterator[T]:
    """``work(0)``, ``work(1)`` … up to ``work(count - 1)`` done by `threads`, a few ahead of what has been taken.

    The first error stops everything and is raised at its place. Leaving the iterator early joins the threads.
    """
    if threads < 2 or count < 2:
        yield from map(work, range(count))
        return
    pool = _Pool(work, count, min(threads, count), threads * 2)
    try:
        for number in range(count):
            yield pool.take(number)  # type: ignore[misc]
    finally:
        pool.close()


def ahead(items: Iterable[T], depth: int = 8) -> Iterator[T]:
    """`items`, made in a thread of their own up to `depth` ahead of what has been taken.

    An error is raised at its place. Leaving the iterator early ends and joins the thread; `items` is closed by it.
    """
    done = object()
    iterator = iter(items)

    def following(_: int) -> object:
        return next(iterator, done)

    pool = _Pool(following, sys.maxsize, 1, depth)
    try:
        number = 0
        while (item := pool.take(number)) is not done:
            yield item  # type: ignore[misc]
            number += 1
    finally:
        pool.close()


class _Pool:
    def __init__(self, work: Callable[[int], object], count: int, threads: int, ahead: int) -> None:
        self._work = work
        self._count = count
        self._ahead = ahead
        self._changed = threading.Condition()
        self._results: dict[int, tuple[object, BaseException | None]] = {}
        self._next = 0
        self._taken = 0
        self._closed = False
        self._threads = [threading.Thread(target=self._run, name=f"pieces/{index}") for index in range(threads)]
        for thread in self._threads:
            thread.start()

    def take(self, number: int) -> object:
        with self._changed:
            while number not in self._results:
                self._changed.wait()
            result, error = self._results.pop(number)
            self._taken = number + 1
            self._changed.notify_all()
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (number := self._claim()) is not None:
            result: object = None
            failure: BaseException | None = None
            try:
                result = self._work(number)
            except BaseException as error:  # noqa: BLE001 - a thread's top: raised again where it is taken
                failure = error
            with self._changed:
                self._results[number] = (result, failure)
                self._changed.notify_all()

    def _claim(self) -> int | None:
        with self._changed:
            while not self._closed and self._next < self._count and self._next >= self._taken + self._ahead:
                self._changed.wait()
            if self._closed or self._next >= self._count:
                return None
            self._next += 1
            return self._next - 1
