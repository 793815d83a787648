"""Commands on a disk that becomes full: they say so in one line, and the old outcome stays."""

import contextlib
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.torture.commands import COMMANDS, call
from tests.torture.tally import Tally
from tests.torture.trials import Trials

_PAGE = 4096


class FullDisk:
    """Gives commands a disk with hardly more room than what they start from.

    Args:
        trials: What the commands start from.
    """

    def __init__(self, trials: Trials) -> None:
        self._trials = trials

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Runs a command on a disk that is nearly full; nothing where no disk may be mounted."""
        command, room = draws.choice(COMMANDS), draws.choice((0, 8192, 65_536, 524_288))
        where = f"{command.name} with {room:,} bytes of room"
        start = self._trials.known(command).start
        with _small_disk(_needed(start) + room) as disk:
            if disk is None:
                return
            shutil.copytree(start, disk / "here")
            tally.tried["full disks"] += 1
            try:
                done = call(disk / "here", *command.arguments)
            except subprocess.TimeoutExpired:
                tally.fault("hang", where)
                return
            if "Traceback" in done.stderr or done.returncode < 0:
                tally.fault("traceback", f"{where}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
            self._trials.judge(command, disk / "here", where, tally, finished=not done.returncode)


@contextlib.contextmanager
def _small_disk(size: int) -> Iterator[Path | None]:
    """A folder on a disk of so many bytes; None where none may be mounted."""
    with tempfile.TemporaryDirectory() as place:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            yield None
            return
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", "-l", place], check=True)


def _needed(folder: Path) -> int:
    """Bytes that a copy of a folder takes on such a disk: whole pages, and some for names."""
    sizes = [path.stat().st_size for path in folder.rglob("*")]
    return sum((size // _PAGE + 2) * _PAGE for size in sizes) + 16 * _PAGE
