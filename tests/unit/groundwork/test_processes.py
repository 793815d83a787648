"""Work in several processes: the same result, and a clean end, also where one of them dies."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from citerec.groundwork.processes import ProcessDiedError, Workers, in_processes


def doubled_here_only(number: int) -> int:
    if multiprocessing.parent_process():
        os._exit(1)
    return 2 * number


def halved(number: int) -> float:
    return 1 / number


@pytest.mark.parametrize("count", [0, 1, 1200])
@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_dead_process_left_undone_is_done_here(count: int, workers: int) -> None:
    told: list[int] = []
    numbers = list(range(count))
    assert in_processes(doubled_here_only, numbers, workers, told.append) == [2 * number for number in numbers]
    assert told[0] == 0 and told[-1] == count and told == sorted(told)


@pytest.mark.parametrize("bad", [0, 1199])
def test_errors_come_through(bad: int) -> None:
    numbers = list(range(1, 1201))
    numbers[bad] = 0
    with pytest.raises(ZeroDivisionError):
        in_processes(halved, numbers, 2, lambda _: None)


def test_a_dead_process_leaves_no_thread_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one fails, it speaks on standard error and leaves processes behind."""
    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = set(threading.enumerate()), multiprocessing.active_children()
    numbers = list(range(1200))
    assert in_processes(doubled_here_only, numbers, 2, lambda _: None) == [2 * number for number in numbers]
    for thread in set(threading.enumerate()) - before[0]:
        thread.join()
    assert failed == []
    assert set(multiprocessing.active_children()) <= set(before[1])


def counted(number: int) -> Iterator[int]:
    yield from range(number)


def test_each_item_gives_what_it_gives_in_its_order() -> None:
    with Workers(2) as workers:
        found = list(workers.outcomes(counted, [3, 0, 2, 1]))
        assert sorted(found) == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (3, 0)]
        assert [value for number, value in found if number == 0] == [0, 1, 2]
        assert list(workers.outcomes(counted, [])) == []
        assert list(workers.outcomes(counted, [1])) == [(0, 0)]  # the same processes again


def dies_as_it_sends(size: int) -> Iterator[bytes]:
    yield b"begun"
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    yield bytes(size)  # larger than a pipe: its sender waits until it is read
    time.sleep(60)


@pytest.mark.parametrize("size", [1, 10_000_000])
def test_a_process_that_dies_as_it_sends_is_an_error(size: int) -> None:
    """The executors of the standard library and of loky wait without end for the rest of the second."""
    with Workers(2) as workers, pytest.raises(ProcessDiedError, match="a worker process died"):
        for _ in workers.outcomes(dies_as_it_sends, [size]):
            time.sleep(0.5)


def starts(path: str) -> Iterator[str]:
    yield path
    time.sleep(600)


def test_a_caller_that_takes_no_more_ends_what_it_started_and_nothing_else() -> None:
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    other.start()
    before = multiprocessing.active_children()  # tests before this one may keep some too
    try:
        with Workers(2) as workers:
            outcomes = workers.outcomes(starts, ["a", "b"])
            next(outcomes)
            outcomes.close()
            assert other in multiprocessing.active_children()
            assert set(multiprocessing.active_children()) <= set(before)
    finally:
        other.kill()
        other.join()


class OddError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__("odd")


def fails_oddly(number: int) -> Iterator[int]:
    raise OddError(number, number)


def test_an_error_that_cannot_be_sent_is_told() -> None:
    with Workers(1) as workers, pytest.raises(RuntimeError, match="OddError: odd"):
        list(workers.outcomes(fails_oddly, [1]))
