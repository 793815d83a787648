"""Runs work in a process that dies right before its n-th rename, exchange or delete, or counts these points.

The processes are forked from a clean one, so that neither Java nor threads of the caller are in them. Work must be
picklable: a function of a module, or a partial of one.
"""

import contextlib
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from citerec.groundwork import writing

Work = Callable[[], object]

DIED = 86
"""The exit code of a process that died at its point."""

_STEPS = ("rename", "replace", "unlink", "remove", "rmdir")
_PATIENCE = 300
_contexts = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a process ended.

    Attributes:
        code: Its exit code, or minus the signal that ended it; `DIED` if it died at its point.
        points: How many renames and deletes it had begun.
        output: What it wrote to standard output and standard error.
    """

    code: int
    points: int
    output: str

    @property
    def died(self) -> bool:
        """Whether it died at its point: if not, the work ended before."""
        return self.code == DIED


def count_points(work: Work) -> int:
    """How many points the work has; it is done by that."""
    outcome = crash_at(work, None)
    assert outcome.code == 0, outcome.output
    return outcome.points


def crash_at(work: Work, point: int | None) -> Outcome:
    """Does the work in a process that dies right before its point of this number, from 1; never if it is None."""
    here, there = _contexts.Pipe(duplex=False)
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        said = Path(folder) / "output"
        process = _contexts.Process(target=_run, args=(work, point, there, said))  # type: ignore[attr-defined]
        process.start()
        there.close()
        process.join(_PATIENCE)
        if process.exitcode is None:
            process.kill()
            process.join()
        counted = here.recv() if here.poll() else 0
        here.close()
        return Outcome(int(process.exitcode), counted, said.read_text(errors="replace") if said.exists() else "")


def crashes(work: Work, prepare: Callable[[], object], points: Iterable[int] | None = None) -> Iterator[Outcome]:
    """Does the work again and again, prepared anew each time, and lets it die at each of its points in turn."""
    number = 0
    for number in points if points is not None else range(1, sys.maxsize):
        prepare()
        outcome = crash_at(work, number)
        yield outcome
        if not outcome.died:
            return


def cli(folder: Path, *arguments: object) -> None:
    """Runs `citerec` in a folder; to be used in a partial."""
    from citerec.cli.main import main

    os.chdir(folder)
    sys.argv = ["citerec", *map(str, arguments)]
    main()


def _run(work: Work, point: int | None, there: Connection, said: Path) -> None:
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard in (1, 2):
        os.dup2(output, standard)
    counter = _Counter(point, there)
    for name in _STEPS:
        setattr(os, name, counter.counted(getattr(os, name)))
    swapped: Any = writing._swapped  # a call of the C library
    writing._swapped = counter.counted(swapped)
    code = 0
    try:
        work()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        with contextlib.suppress(OSError):
            there.send(counter.points)
    os._exit(code)


class _Counter:
    """Counts calls, and ends the process before one of them."""

    def __init__(self, last: int | None, there: Connection) -> None:
        self.points, self._last, self._there, self._process = 0, last, there, os.getpid()

    def counted(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if os.getpid() == self._process:  # not in the workers that it starts
                self.points += 1
                if self.points == self._last:
                    self._there.send(self.points)
                    os._exit(DIED)
            return step(*arguments, **more)

        return call
