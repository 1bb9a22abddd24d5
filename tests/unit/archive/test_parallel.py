from __future__ import annotations

import os
import threading

import pytest

from pyrunner.archive.errors import ArchiveError
from pyrunner.archive.pieces import in_order
from pyrunner.archive.workers import spread, worker_count


def _double(batch: list[int]) -> tuple[object, list[bytes]]:
    return [number * 2 for number in batch], [b"%d," % number for number in batch]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_batch_is_done_once(workers: int) -> None:
    batches = [[number, number + 100] for number in range(40)]
    values = [value for value, _ in spread(batches, _double, workers)]
    assert sorted(map(str, values)) == sorted(str([number * 2, number * 2 + 200]) for number in range(40))


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_of_a_worker_is_raised(workers: int) -> None:
    def fail(batch: int) -> tuple[object, list[bytes]]:
        if batch == 7:
            raise ArchiveError("the seventh is broken")
        return None, [b""]

    with pytest.raises(ArchiveError, match="the seventh is broken"):
        list(spread(range(20), fail, workers))


def test_a_worker_that_dies_is_noticed() -> None:
    def die(batch: int) -> tuple[object, list[bytes]]:
        os._exit(9)

    with pytest.raises(ArchiveError, match="ended before its work was done"):
        list(spread(range(4), die, 2))


def test_leaving_early_leaves_no_process() -> None:
    def much(batch: int) -> tuple[object, list[bytes]]:
        return None, [bytes(4 << 20)]

    results = spread(range(50), much, 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_it_does_not_fork_beside_other_threads() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        pids = {value for value, _ in spread(range(10), lambda batch: (os.getpid(), []), 4)}
    finally:
        stop.set()
        thread.join()
    assert pids == {os.getpid()}


def test_the_environment_sets_the_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKERS", "3")
    assert worker_count("WORKERS") == 3
    monkeypatch.setenv("WORKERS", "none")
    assert worker_count("WORKERS") == worker_count()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_pieces_come_in_order(threads: int) -> None:
    assert list(in_order(lambda number: number * number, 100, threads)) == [number**2 for number in range(100)]


def test_no_more_than_a_few_pieces_are_ahead() -> None:
    started: list[int] = []
    pieces = in_order(lambda number: started.append(number) or number, 1000, 2)
    assert [next(pieces), next(pieces)] == [0, 1]
    pieces.close()  # type: ignore[attr-defined]
    assert len(started) <= 10


def test_the_first_error_is_raised_at_its_place() -> None:
    def work(number: int) -> int:
        if number == 5:
            raise ValueError("five")
        return number

    pieces = in_order(work, 100, 3)
    assert [next(pieces) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="five"):
        next(pieces)
