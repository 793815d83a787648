"""Commands that are killed at random moments, some several times: nothing is lost, and they still finish."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.torture.commands import CITEREC, COMMANDS, Command, call, digest
from tests.torture.tally import Tally

_SEVERAL = 3
_PATIENCE_SECONDS = 300


class Kills:
    """Kills one command after the other; what each starts from is prepared once.

    Args:
        work: A folder for all of it.
    """

    def __init__(self, work: Path) -> None:
        self._work = work
        self._known: dict[str, tuple[Path, str, str, str, float]] = {}
        self._turn = 0

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Kills the next command."""
        command = COMMANDS[self._turn % len(COMMANDS)]
        self._turn += 1
        start, before, after, by_hand, seconds = self._of(command)
        moments = sorted(draws.uniform(0, seconds) for _ in range(draws.randint(1, _SEVERAL)))
        where = f"{command.name}, killed after {', '.join(f'{moment:.2f}' for moment in moments)} s"
        with tempfile.TemporaryDirectory(dir=self._work) as name:
            folder = Path(name) / "here"
            shutil.copytree(start, folder)
            for moment in moments:
                tally.tried["kills"] += 1
                _killed(folder, command, moment)
            try:
                if digest(command.outcome(folder)) not in (before, after):
                    tally.fault("loss", f"{where}: neither the old nor the new stands there")
                if digest(command.by_hand(folder)) != by_hand:
                    tally.fault("loss", f"{where}: what people made is another")
            except FileNotFoundError:
                if before != _NOTHING:
                    tally.fault("loss", f"{where}: nothing stands there")
            except Exception as error:  # whatever it is, it stands for something that cannot be read
                tally.fault("loss", f"{where}: {type(error).__name__}: {error}")
            self._to_its_end(command, folder, after, by_hand, where, tally)

    def _to_its_end(self, command: Command, folder: Path, after: str, by_hand: str, where: str, tally: Tally) -> None:
        try:
            done = call(folder, *command.arguments, timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            tally.fault("hang", f"{where}, and called again")
            return
        if "Traceback" in done.stderr:
            tally.fault("traceback", f"{where}, and called again: {done.stderr.splitlines()[-1]}")
        elif done.returncode:
            tally.fault("loss", f"{where}, and called again: {done.stderr.strip()}")
        elif (digest(command.outcome(folder)), digest(command.by_hand(folder))) != (after, by_hand):
            tally.fault("loss", f"{where}, and called again: it does not give what an undisturbed one gives")

    def _of(self, command: Command) -> tuple[Path, str, str, str, float]:
        """Where it starts from, its outcome before and after, what people made there, and how long it takes."""
        if command.name not in self._known:
            start = self._work / command.name.replace(" ", "-")
            start.mkdir()
            command.prepare(start)
            undisturbed = self._work / "undisturbed"
            shutil.copytree(start, undisturbed)
            begun = time.monotonic()
            done = call(undisturbed, *command.arguments)
            seconds = time.monotonic() - begun
            if done.returncode:
                raise RuntimeError(f"{command.name}: {done.stderr}")
            try:
                before = digest(command.outcome(start))
            except FileNotFoundError:
                before = _NOTHING
            after, by_hand = digest(command.outcome(undisturbed)), digest(command.by_hand(start))
            if after == before:
                raise RuntimeError(f"{command.name} changes nothing: a loss could not be seen")
            shutil.rmtree(undisturbed)
            self._known[command.name] = start, before, after, by_hand, seconds
        return self._known[command.name]


_NOTHING = "nothing"


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
