"""Runs work in a process that dies right before its n-th rename, exchange or delete, or counts these points.

The processes are forked from a clean one, so that no threads of the caller are in them. Work must be
picklable: a function of a module, or a partial of one.
"""

import itertools
import multiprocessing
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawValue
from pathlib import Path
from typing import Any

Work = Callable[[], object]

DIED = 86
"""The exit code of a process that died at its point."""

_FORKS = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a process ended: its exit code, how many renames and deletes it had begun, and what it printed."""

    code: int
    points: int
    output: str


def crash_at(work: Work, point: int | None) -> Outcome:
    """Does the work in a process that dies right before its point of this number, from 1; never if it is None."""
    points = RawValue("i", 0)
    _FORKS.set_forkserver_preload(["citerec.cli.main", getattr(work, "func", work).__module__])  # children have them
    with tempfile.NamedTemporaryFile(prefix="crash-") as output:
        process = _FORKS.Process(target=_run, args=(work, point, points, output.name))
        process.start()
        process.join()
        return Outcome(process.exitcode or 0, points.value, output.read().decode(errors="replace"))


def crashes(work: Work, prepare: Callable[[], object]) -> Iterator[Outcome]:
    """Does the work again and again, prepared anew each time, and lets it die at each of its points in turn."""
    for number in itertools.count(1):
        prepare()
        outcome = crash_at(work, number)
        yield outcome
        if outcome.code != DIED:
            return


def cli(folder: Path, *arguments: object) -> None:
    """Runs `citerec` in a folder; to be used in a partial."""
    from citerec.cli.main import main

    os.chdir(folder)
    sys.argv = ["citerec", *map(str, arguments)]
    main()


def _run(work: Work, last: int | None, points: Any, output: str) -> None:
    """Does the work and counts its points; the process ends before one of them."""
    signal.alarm(300)
    said = os.open(output, os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(said, standard)
    process = os.getpid()

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if os.getpid() == process:  # not in the workers that it starts
                points.value += 1
                if points.value == last:
                    os._exit(DIED)
            return step(*arguments, **more)

        return call

    for name in ("rename", "replace", "unlink", "remove", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    code = 0
    try:
        work()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)
