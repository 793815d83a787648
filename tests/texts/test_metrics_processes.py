"""Work in several processes: the same result, also where one of them dies."""

import multiprocessing
import os

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


def test_errors_come_through() -> None:
    with pytest.raises(ZeroDivisionError):
        in_processes(halved, [0, *range(1, 1200)], 2, lambda _: None)
