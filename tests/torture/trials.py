"""What a command starts from, and whether what it left behind is sound; shared by all that disturb commands."""

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.torture.commands import Command, call, digest
from tests.torture.tally import Tally

_NOTHING = "nothing"


@dataclass(frozen=True)
class Known:
    """What is known of an undisturbed command.

    Attributes:
        start: The folder that it starts from; to be copied.
        before: Digest of its outcome there.
        after: Digest of its outcome when nothing disturbed it.
        by_hand: Digest of what people made.
        seconds: How long it takes.
    """

    start: Path
    before: str
    after: str
    by_hand: str
    seconds: float


class Trials:
    """Gives each command a fresh folder, again and again, and judges what is in it afterwards.

    Args:
        work: A folder for all of it.
    """

    def __init__(self, work: Path) -> None:
        self.work = work
        self._known: dict[str, Known] = {}

    @contextlib.contextmanager
    def folder(self, command: Command) -> Iterator[Path]:
        """A copy of what a command starts from."""
        known = self.known(command)
        with tempfile.TemporaryDirectory(dir=self.work) as name:
            folder = Path(name) / "here"
            shutil.copytree(known.start, folder)
            yield folder

    def known(self, command: Command) -> Known:
        """What is known of a command; it is run once for that."""
        if command.name not in self._known:
            start, undisturbed = self.work / command.name.replace(" ", "-"), self.work / "undisturbed"
            start.mkdir()
            command.prepare(start)
            shutil.copytree(start, undisturbed)
            begun = time.monotonic()
            done = call(undisturbed, *command.arguments)
            seconds = time.monotonic() - begun
            if done.returncode:
                raise RuntimeError(f"{command.name}: {done.stderr}")
            before, after = _outcome(command, start), _outcome(command, undisturbed)
            if after == before:
                raise RuntimeError(f"{command.name} changes nothing: a loss could not be seen")
            self._known[command.name] = Known(start, before, after, digest(command.by_hand(start)), seconds)
            shutil.rmtree(undisturbed)
        return self._known[command.name]

    def judge(self, command: Command, folder: Path, where: str, tally: Tally, *, finished: bool = False) -> None:
        """Notes a loss unless the old or the new outcome is there, whole; if `finished`, only the new one will do."""
        known = self.known(command)
        try:
            found = _outcome(command, folder)
            if found not in ((known.after,) if finished else (known.before, known.after)):
                tally.fault("loss", f"{where}: {'another outcome' if finished else 'neither the old nor the new'}")
            if digest(command.by_hand(folder)) != known.by_hand:
                tally.fault("loss", f"{where}: what people made has changed")
        except Exception as error:  # it cannot be read, for whatever reason
            tally.fault("loss", f"{where}: {type(error).__name__}: {error}")

    def finish(self, command: Command, folder: Path, where: str, tally: Tally) -> None:
        """Calls a disturbed command again: it must give what an undisturbed one gives."""
        where = f"{where}, then called again"
        try:
            done = call(folder, *command.arguments)
        except subprocess.TimeoutExpired:
            tally.fault("hang", where)
            return
        if "Traceback" in done.stderr:
            tally.fault("traceback", f"{where}: {done.stderr.splitlines()[-1]}")
        elif done.returncode and (command.replaces or " exists" not in done.stderr):
            tally.fault("loss", f"{where}: {done.stderr.strip()}")
        else:
            self.judge(command, folder, where, tally, finished=not done.returncode)


def _outcome(command: Command, folder: Path) -> str:
    try:
        return digest(command.outcome(folder))
    except FileNotFoundError:
        return _NOTHING
