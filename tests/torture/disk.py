"""Commands on a disk that becomes full: they say so in one line, and what stood there stays."""

import contextlib
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.torture.commands import COMMANDS, call, digest
from tests.torture.tally import Tally


@contextlib.contextmanager
def small_disk(size: int) -> Iterator[Path | None]:
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


class FullDisk:
    """Gives one command after the other a disk that has hardly more room than what it starts from.

    Args:
        work: A folder for what each starts from.
    """

    def __init__(self, work: Path) -> None:
        self._work = work
        self._turn = 0

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Runs the next command on a disk that is nearly full."""
        command = COMMANDS[self._turn % len(COMMANDS)]
        self._turn += 1
        start = self._work / command.name.replace(" ", "-")
        if not start.exists():
            start.mkdir()
            command.prepare(start)
        room = draws.choice((0, 8192, 65536, 524288))
        where = f"{command.name} with {room:,} bytes of room"
        with small_disk(_needed(start) + room) as disk:
            if disk is None:
                return
            try:
                shutil.copytree(start, disk / "here")
            except (OSError, shutil.Error):
                return  # the copy itself did not fit
            folder = disk / "here"
            with contextlib.suppress(FileNotFoundError):
                before = digest(command.outcome(folder))
            by_hand = digest(command.by_hand(folder))
            tally.tried["full disks"] += 1
            try:
                done = call(folder, *command.arguments)
            except subprocess.TimeoutExpired:
                tally.fault("hang", where)
                return
            if "Traceback" in done.stderr or done.returncode < 0:
                tally.fault("traceback", f"{where}: exit {done.returncode}: {done.stderr[-300:]}")
            if digest(command.by_hand(folder)) != by_hand:
                tally.fault("loss", f"{where}: what people made is another")
            if done.returncode:
                with contextlib.suppress(FileNotFoundError):
                    if digest(command.outcome(folder)) != before:
                        tally.fault("loss", f"{where}: it failed, and the old does not stand there any more")


def _needed(folder: Path) -> int:
    """Bytes that a copy of a folder takes on such a disk: whole pages, and some for names."""
    page = 4096
    sizes = [path.stat().st_size for path in folder.rglob("*")]
    return sum((size // page + 2) * page for size in sizes) + 16 * page
