"""Commands that are killed at random moments, or right before a rename or a delete: nothing is lost, they finish."""

import functools
import os
import random
import signal
import subprocess
from pathlib import Path

from tests.torture import crash_points
from tests.torture.commands import CITEREC, COMMANDS, Command
from tests.torture.tally import Tally
from tests.torture.trials import Trials

_SEVERAL = 3


class Kills:
    """Kills commands at random moments, some of them several times.

    Args:
        trials: What the commands start from.
    """

    def __init__(self, trials: Trials) -> None:
        self._trials = trials

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Kills a command."""
        command = draws.choice(COMMANDS)
        seconds = self._trials.known(command).seconds
        moments = [draws.uniform(0, seconds) for _ in range(draws.randint(1, _SEVERAL))]
        where = f"{command.name}, killed after {', '.join(f'{moment:.2f}' for moment in moments)} s"
        with self._trials.folder(command) as folder:
            for moment in moments:
                tally.tried["kills"] += 1
                _killed(folder, command, moment)
            self._trials.judge(command, folder, where, tally)
            self._trials.finish(command, folder, where, tally)


class Crashes:
    """Ends commands right before one of their renames, exchanges and deletes; each point comes once before any again.

    Args:
        trials: What the commands start from.
    """

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._points: dict[str, int] = {}
        self._left: dict[str, list[int]] = {}

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Lets a command crash at one of its points."""
        command = draws.choice(COMMANDS)
        while not (points := self._points_of(command)):  # it only writes new files
            command = draws.choice(COMMANDS)
        left = self._left.setdefault(command.name, [])
        if not left:
            left += draws.sample(range(1, points + 1), points)
        where = f"{command.name}, crashed at point {left[-1]} of {points}"
        with self._trials.folder(command) as folder:
            tally.tried["crash points"] += 1
            outcome = crash_points.crash_at(_work(folder, command), left.pop())
            if not outcome.died and outcome.code:
                tally.fault("traceback", f"{where}: {outcome.output.strip()[-300:]}")
            self._trials.judge(command, folder, where, tally)
            self._trials.finish(command, folder, where, tally)

    def _points_of(self, command: Command) -> int:
        if command.name not in self._points:
            with self._trials.folder(command) as folder:
                self._points[command.name] = crash_points.count_points(_work(folder, command))
        return self._points[command.name]


def _work(folder: Path, command: Command) -> "functools.partial[None]":
    return functools.partial(crash_points.cli, folder, *command.arguments)


def _killed(folder: Path, command: Command, moment: float) -> None:
    process = subprocess.Popen(
        [CITEREC, *command.arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
