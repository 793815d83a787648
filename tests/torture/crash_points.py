"""Runs work in a process that dies right before its n-th rename, exchange or delete, or counts these points.

The processes are forked from a clean one, so that no threads of the caller are in them. Work must be
picklable: a function of a module, or a partial of one.
"""

import functools
import itertools
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Work = Callable[[], object]

DIED = 86
"""The exit code of a process that died at its point."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a process ended: its exit code, how many renames and deletes it had begun, and what it printed."""

    code: int
    points: int
    output: str


def crash_at(work: Work, point: int | None) -> Outcome:
    """Does the work in a process that dies right before its point of this number, from 1; never if it is None."""
    server = _server()
    assert server.stdin and server.stdout
    with tempfile.NamedTemporaryFile(prefix="crash-") as output:
        try:
            pickle.dump((work, point, output.name), server.stdin)
            server.stdin.flush()
            code, points = pickle.load(server.stdout)
        except BaseException:  # such as a timeout of pytest: its answer must not be taken for that of the next
            _server.cache_clear()
            raise
        return Outcome(code, points, output.read().decode(errors="replace"))


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


@functools.cache
def _server() -> "subprocess.Popen[bytes]":
    """The clean process, which ends when this one does."""
    command = [sys.executable, "-m", "tests.torture.crash_points"]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _serve() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while True:
        try:
            work, point, output = pickle.load(requests)
        except EOFError:
            return
        here, there = os.pipe()
        child = os.fork()
        if not child:
            _run(work, point, there, output)
        os.close(there)
        _, status = os.waitpid(child, 0)
        with os.fdopen(here, "rb") as counted:
            pickle.dump((os.waitstatus_to_exitcode(status), len(counted.read())), answers)
        answers.flush()


def _run(work: Work, last: int | None, there: int, output: str) -> None:
    """Does the work; its points are counted by a byte each in a pipe, and the process ends before one of them."""
    signal.alarm(300)
    said = os.open(output, os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(said, standard)
    process, points = os.getpid(), itertools.count(1)

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if os.getpid() == process:  # not in the workers that it starts
                os.write(there, b".")
                if next(points) == last:
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


if __name__ == "__main__":
    _serve()
