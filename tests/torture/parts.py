"""The ways to disturb commands, and whether what they leave behind is sound."""

import contextlib
import functools
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from citerec.recommend import Index, Recommender
from tests.conftest import write_lines
from tests.torture import crash_points
from tests.torture.commands import CITEREC, COMMANDS, Command, call, digest

QUIET = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)


@dataclass
class Tally:
    """How often something was tried, by name; and the faults, each with what is needed to repeat it."""

    tried: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def fault(self, description: str) -> None:
        """Notes a fault."""
        self.faults.append(description)
        print(f"  {description}", flush=True)

    def __str__(self) -> str:
        tried = ", ".join(f"{count:,} {name}" for name, count in sorted(self.tried.items()))
        return f"{tried}; faults: {len(self.faults)}"


@dataclass(frozen=True)
class Known:
    """Of an undisturbed command: the folder it starts from, digests of outcomes, and the seconds that it takes.

    `points` counts its renames, exchanges and deletes.
    """

    start: Path
    before: str
    after: str
    by_hand: str
    seconds: float
    points: int


class Trials:
    """Gives commands a fresh folder, again and again, disturbs them, and judges what is in it afterwards."""

    def __init__(self, work: Path, tally: Tally) -> None:
        self.work, self.tally = work, tally
        self._known: dict[str, Known] = {}

    def kill(self, draws: random.Random) -> None:
        """Kills a command at random moments, perhaps several times."""
        name = draws.choice(list(COMMANDS))
        moments = [draws.uniform(0, self._of(name).seconds) for _ in range(draws.randint(1, 3))]
        with self._disturbed(name, f"killed after {', '.join(f'{moment:.2f}' for moment in moments)} s") as folder:
            for moment in moments:
                self.tally.tried["kills"] += 1
                command = [CITEREC, *COMMANDS[name].line.split()]
                with subprocess.Popen(command, cwd=folder, start_new_session=True, **QUIET) as process:
                    try:
                        process.wait(timeout=moment)
                    except subprocess.TimeoutExpired:
                        os.killpg(process.pid, signal.SIGKILL)

    def crash(self, draws: random.Random) -> None:
        """Ends a command right before one of its renames, exchanges and deletes."""
        name = draws.choice(list(COMMANDS))
        while not (points := self._of(name).points):  # it only writes new files
            name = draws.choice(list(COMMANDS))
        point = draws.randint(1, points)
        where = f"crashed at point {point} of {points}"
        with self._disturbed(name, where) as folder:
            self.tally.tried["crash points"] += 1
            outcome = crash_points.crash_at(_work(folder, COMMANDS[name]), point)
            if outcome.code not in (0, crash_points.DIED):
                self.tally.fault(f"{name}, {where}: {outcome.output.strip()[-300:]}")

    def _of(self, name: str) -> Known:
        """What is known of a command; it is run twice for that."""
        if name not in self._known:
            command, start = COMMANDS[name], self.work / name.replace(" ", "-")
            start.mkdir()
            command.prepare(start)
            with self._copy(start) as folder:
                begun = time.monotonic()
                done = call(folder, command.line)
                seconds = time.monotonic() - begun
                if done.returncode:
                    raise RuntimeError(f"{name}: {done.stderr}")
                before, after = _outcome(command, start), _outcome(command, folder)
            if after == before:
                raise RuntimeError(f"{name} changes nothing: a loss could not be seen")
            with self._copy(start) as folder:
                counted = crash_points.crash_at(_work(folder, command), None)
                if counted.code:
                    raise RuntimeError(f"{name}: {counted.output}")
            by_hand = digest(command.by_hand(start))
            self._known[name] = Known(start, before, after, by_hand, seconds, counted.points)
        return self._known[name]

    @contextlib.contextmanager
    def _copy(self, start: Path) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.work) as name:
            yield shutil.copytree(start, Path(name) / "here")

    @contextlib.contextmanager
    def _disturbed(self, name: str, where: str) -> Iterator[Path]:
        """A folder in which a command is disturbed. Called again, it must give what an undisturbed one gives."""
        command, where = COMMANDS[name], f"{name}, {where}"
        with self._copy(self._of(name).start) as folder:
            yield folder
            self._judge(name, folder, where, finished=False)
            where += ", then called again"
            try:
                done = call(folder, command.line)
            except subprocess.TimeoutExpired:
                self.tally.fault(f"{where}: it hangs")
                return
            if done.returncode:
                self.tally.fault(f"{where}: {done.stderr.strip()[-300:]}")
            else:
                self._judge(name, folder, where, finished=True)

    def _judge(self, name: str, folder: Path, where: str, *, finished: bool) -> None:
        """Notes a fault unless the old or the new outcome is there, whole; if `finished`, only the new one will do."""
        known, command = self._of(name), COMMANDS[name]
        try:
            found = _outcome(command, folder)
            if found not in ((known.after,) if finished else (known.before, known.after)):
                self.tally.fault(f"{where}: {'another outcome' if finished else 'neither the old nor the new'}")
            if digest(command.by_hand(folder)) != known.by_hand:
                self.tally.fault(f"{where}: what people made has changed")
        except Exception as error:  # it cannot be read, for whatever reason
            self.tally.fault(f"{where}: {type(error).__name__}: {error}")


def _outcome(command: Command, folder: Path) -> str:
    try:
        return digest(command.outcome(folder))
    except FileNotFoundError:
        return "nothing"


def _work(folder: Path, command: Command) -> "functools.partial[None]":
    return functools.partial(crash_points.cli, folder, *command.line.split())


def race(work: Path, tally: Tally, draws: random.Random) -> None:
    """An index is built of one set of papers and of another, in turns, while others search it for four seconds."""
    place, sources = work / "raced", []
    shutil.rmtree(place, ignore_errors=True)
    for offset in (0, 1):
        papers = [{"paper_id": 2 * n + offset, "title": f"Ranking papers {n}"} for n in range(40)]
        sources.append(write_lines(work / f"{offset}.jsonl", papers))
    Index.build(sources[0], place)
    pauses = random.Random(draws.random())  # how many there are is a matter of time: later turns must not depend on it
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        readers = [pool.submit(_read, place) for _ in range(2)]
        while not all(reader.done() for reader in readers):
            tally.tried["builds"] += 1
            Index.build(sources[tally.tried["builds"] % 2], place)
            time.sleep(pauses.random() * 0.05)
    for reader in readers:
        opens, faults = reader.result()
        tally.tried["opens"] += opens
        for fault in faults:
            tally.fault(f"torn read: {fault}")


def _read(place: Path) -> tuple[int, list[str]]:
    """How often the index was opened, and the faults found."""
    opens, faults, until = 0, [], time.monotonic() + 4
    while time.monotonic() < until:
        opens += 1
        try:
            with Recommender.open(place) as recommender:
                hits = [hit for _ in range(3) for hit in recommender.search("Ranking papers <REF>", 20)]
            ids = {int(hit.paper.paper_id) % 2 for hit in hits}
            if len(ids) != 1 or not all(hit.paper.title for hit in hits):
                faults.append(f"an answer from two indexes: {sorted(ids)}")
        except Exception as error:
            faults.append(f"{type(error).__name__}: {error}")
    return opens, faults
