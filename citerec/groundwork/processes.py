"""Work in several processes. Only this module starts processes.

The executors of `concurrent.futures` and loky were tried: both wait forever for a process that died while it sent a
large result, and return nothing of an item before all of it is done. Here each process has its own pipe. It breaks when
the process dies, and a process that is faster than its reader waits.
"""

import contextlib
import functools
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Self, TypeVar, cast

from citerec.errors import BuildError

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

# A process takes a second or more to start, so it needs enough work. Parts are small, so that all end together.
_WORTH_A_PROCESS, _PART = 500, 50
_MADE, _FAILED, _DONE = range(3)


class ProcessDiedError(BuildError):
    """A worker process died."""


def available_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """A number of processes that work on items, each on one at a time. They start when they are first needed.

    They are spawned, as it is not safe to fork a process that may hold a Java machine or torch: a script that uses them
    needs its `if __name__ == "__main__":`. Only one thread may use them at a time.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._processes: dict[Connection, BaseProcess] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def outcomes(
        self, work: Callable[[Item], Iterable[Outcome]], items: Iterable[Item]
    ) -> Iterator[tuple[int, Outcome]]:
        """The outcomes of some work for each item, with its number, as they come; those of one item are in order.

        The work is a function of a module, or a partial of one; its outcomes can be pickled. The first error ends all
        processes, and so do Ctrl-C and a caller that stops iterating; unfinished work is not waited for.

        Raises:
            ProcessDiedError: A process died.
            Exception: Whatever the work raises.
        """
        remaining = enumerate(items)
        busy: dict[Connection, int] = {}
        whole = False
        try:
            for pipe in self._started():
                self._give(pipe, work, remaining, busy)
            while busy:
                for ready in wait(list(busy)):
                    pipe = cast("Connection", ready)
                    with self._deaths():
                        kind, value = pipe.recv()
                    if kind == _MADE:
                        yield busy[pipe], value
                    elif kind == _FAILED:
                        raise value
                    else:
                        del busy[pipe]
                        self._give(pipe, work, remaining, busy)
            whole = True
        finally:
            if not whole:
                self.stop()

    def stop(self) -> None:
        """Ends the processes, even at work."""
        for pipe, process in self._processes.items():
            process.terminate()
            pipe.close()
        for process in self._processes.values():
            process.join()
        self._processes = {}

    def _started(self) -> list[Connection]:
        context = multiprocessing.get_context("spawn")
        resource_tracker.ensure_running()  # first: when it starts, it unblocks Ctrl-C again
        # Ctrl-C is blocked meanwhile: the processes inherit this, and get no Ctrl-C before they can ignore it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            while len(self._processes) < self._count:
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs,), daemon=True)
                process.start()
                theirs.close()  # so that the pipe breaks when the process dies
                self._processes[ours] = process
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return list(self._processes)

    def _give(
        self, pipe: Connection, work: Any, remaining: Iterator[tuple[int, Any]], busy: dict[Connection, int]
    ) -> None:
        """Sends the next item, if there is one. An idle process is reading, so this never waits for long."""
        for number, item in remaining:
            busy[pipe] = number
            with self._deaths():
                pipe.send((work, item))
            return

    @contextlib.contextmanager
    def _deaths(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError):
            raise ProcessDiedError(
                "a worker process died",
                "Was there too little memory? Run again with --workers 1: what was saved is not done again.",
            ) from None


def in_processes(
    work: Callable[[Item], Outcome], items: Sequence[Item], workers: int | None, on_progress: Callable[[int], None]
) -> list[Outcome]:
    """The results of some work on each of many small items, in their order, the same for any number of processes.

    The work is a function of a module, or a partial of one. Few items get fewer processes than `workers`, which is the
    number of processors by default. The processes are kept for later calls, as imports may take each of them seconds.
    The unfinished work of a process that died is done here. `on_progress` is called with how many items are done.
    """
    wanted = min(workers or available_processors(), len(items) // _WORTH_A_PROCESS)
    parts = [items[start : start + _PART] for start in range(0, len(items), _PART)]
    results: dict[int, list[Outcome]] = {}
    on_progress(0)

    def take(number: int, result: list[Outcome]) -> None:
        results[number] = result
        on_progress(sum(map(len, results.values())))

    if wanted > 1:
        with _one_at_a_time, contextlib.suppress(ProcessDiedError):
            for number, result in _kept(wanted).outcomes(functools.partial(_each, work), parts):
                take(number, result)
    for number, part in enumerate(parts):
        if number not in results:
            take(number, next(_each(work, part)))
    return [result for number in range(len(parts)) for result in results[number]]


_one_at_a_time = threading.Lock()


@functools.cache
def _kept(count: int) -> Workers:
    return Workers(count)


def _each(work: Callable[[Item], Outcome], part: Sequence[Item]) -> Iterator[list[Outcome]]:
    yield [work(item) for item in part]


def _serve(pipe: Connection) -> None:
    """The loop of a process: it leaves Ctrl-C to its parent, and ends when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, ConnectionError):  # the parent is gone
        while True:
            work, item = pipe.recv()
            try:
                for outcome in work(item):
                    pipe.send((_MADE, outcome))
            except Exception as error:
                pipe.send((_FAILED, portable(error)))
            else:
                pipe.send((_DONE, None))


def portable(error: Exception) -> Exception:
    """An error that can be pickled, with its traceback as a note."""
    error.add_note(traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))  # its own attributes may not be picklable
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def _leave_with_parent() -> None:
    """Ends this process with its parent: a killed parent cannot end its children."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)
