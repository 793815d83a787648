"""Work on many texts in several processes."""

import functools
import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from citerec.corpus.shard_work import begin_worker, ctrl_c_held
from citerec.groundwork.processors import available_processors

Item = TypeVar("Item")
Result = TypeVar("Result")

# A process takes a second and more to begin: it must have something to do. Parts are small, so that all end together.
_WORTH_A_PROCESS, _PART = 500, 50
# Parts in the hands of each process: one at work, one waiting. The rest is handed out later, so that nothing has to be
# cancelled: when a process dies, the executor's own thread fails on a future that was cancelled (Python 3.11.7).
_HANDED_OUT = 2


def in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int | None, on_progress: Callable[[int], None]
) -> list[Result]:
    """The results of some work on each item, in their order, the same however many processes there are.

    This process works too, from the end, while others work from the beginning. They are spawned, as it is not safe to
    fork a process that may hold a Java machine or torch: a script that calls this needs its `if __name__ ==
    "__main__":`. What a process that died has left undone is done here.

    Args:
        work: A function of a module, or a partial of one.
        items: What it is called with.
        workers: Processes, this one included; None for as many as there are processors. Few items get fewer.
        on_progress: Called with how many items are done.
    """
    wanted = min(workers or available_processors(), len(items) // _WORTH_A_PROCESS)
    parts = [items[start : start + _PART] for start in range(0, len(items), _PART)]
    results: dict[int, list[Result]] = {}
    on_progress(0)
    if wanted > 1:
        for number, result in _shared(work, parts, wanted - 1):
            results[number] = result
            on_progress(sum(map(len, results.values())))
    for number, part in enumerate(parts):
        if number not in results:
            results[number] = _do(work, part)
            on_progress(sum(map(len, results.values())))
    return [result for number in range(len(parts)) for result in results[number]]


def _do(work: Callable[[Item], Result], part: Sequence[Item]) -> list[Result]:
    return [work(item) for item in part]


def _shared(
    work: Callable[[Item], Result], parts: Sequence[Sequence[Item]], others: int
) -> Iterator[tuple[int, list[Result]]]:
    """Works on the parts together with other processes; yields number and result of each that gets done."""
    waiting: dict[Future[list[Result]], int] = {}
    left = deque(range(len(parts)))

    def hand_out() -> None:
        while left and len(waiting) < others * _HANDED_OUT:
            number = left.popleft()
            waiting[_pool(others).submit(_do, work, parts[number])] = number

    try:
        with ctrl_c_held():  # here the processes are begun
            hand_out()
        while left:
            number = left.pop()
            yield number, _do(work, parts[number])
            for finished in wait(waiting, timeout=0).done:
                yield waiting.pop(finished), finished.result()
            hand_out()
        for finished in as_completed(waiting):
            yield waiting[finished], finished.result()
    except BrokenProcessPool:
        _pool.cache_clear()


@functools.cache
def _pool(others: int) -> ProcessPoolExecutor:
    """Processes that stay for what comes next: each spends two seconds on importing nltk, as rouge-score does."""
    return ProcessPoolExecutor(others, mp_context=multiprocessing.get_context("spawn"), initializer=begin_worker)
