"""Work in several processes: the same result, also where one of them dies."""

import functools
import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from citerec.texts.metrics.processes import in_processes


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


def doubled_once_another_died(folder: Path, number: int) -> int:
    """Ends the process where it is not the first, which works only when that has happened."""
    if multiprocessing.parent_process():
        (folder / str(os.getpid())).touch()
        os._exit(1)
    while not (died := {path.name for path in folder.iterdir()}) or any(
        str(child.pid) in died for child in multiprocessing.active_children()
    ):
        time.sleep(0.01)
    return 2 * number


def test_the_executors_own_thread_survives_a_dead_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it fails, it speaks on standard error and leaves processes behind."""
    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = set(threading.enumerate())
    work = functools.partial(doubled_once_another_died, tmp_path)
    assert in_processes(work, range(1200), 2, lambda _: None) == [2 * number for number in range(1200)]
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert failed == []
