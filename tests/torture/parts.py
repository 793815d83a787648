"""What commands start from, the ways to disturb them, and whether what they leave behind is sound."""

import contextlib
import functools
import json
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
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path

from citerec.recommend import Index, Recommender
from tests.conftest import write_lines
from tests.torture import crash_points
from tests.torture.commands import CITEREC, COMMANDS, Command, call, digest


@dataclass
class Tally:
    """How often something was tried, by name; and the faults by kind, each with what is needed to repeat it."""

    tried: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[str]] = field(
        default_factory=lambda: {kind: [] for kind in ("loss", "traceback", "hang", "torn read")}
    )

    def fault(self, kind: str, description: str) -> None:
        """Notes a fault."""
        self.faults[kind].append(description)
        print(f"  {kind}: {description}", flush=True)

    @property
    def sound(self) -> bool:
        """Whether no fault was found."""
        return not any(self.faults.values())

    def __str__(self) -> str:
        tried = ", ".join(f"{count:,} {name}" for name, count in sorted(self.tried.items()))
        return f"{tried}\n{', '.join(f'{kind}: {len(found)}' for kind, found in self.faults.items())}"


@dataclass(frozen=True)
class Known:
    """Of an undisturbed command: the folder it starts from, digests of outcomes, and the seconds that it takes."""

    start: Path
    before: str
    after: str
    by_hand: str
    seconds: float


class Trials:
    """Gives each command a fresh folder, again and again, and judges what is in it afterwards."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self._known: dict[str, Known] = {}

    @contextlib.contextmanager
    def folder(self, command: Command) -> Iterator[Path]:
        """A copy of what a command starts from."""
        with tempfile.TemporaryDirectory(dir=self.work) as name:
            yield shutil.copytree(self.known(command).start, Path(name) / "here")

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
        return "nothing"


class Kills:
    """Kills commands at random moments, some of them several times."""

    def __init__(self, trials: Trials) -> None:
        self._trials = trials

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Kills a command."""
        command = draws.choice(COMMANDS)
        seconds = self._trials.known(command).seconds
        moments = [draws.uniform(0, seconds) for _ in range(draws.randint(1, 3))]
        where = f"{command.name}, killed after {', '.join(f'{moment:.2f}' for moment in moments)} s"
        with self._trials.folder(command) as folder:
            for moment in moments:
                tally.tried["kills"] += 1
                with subprocess.Popen(
                    [CITEREC, *command.arguments],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                ) as process:
                    try:
                        process.wait(timeout=moment)
                    except subprocess.TimeoutExpired:
                        os.killpg(process.pid, signal.SIGKILL)
            self._trials.judge(command, folder, where, tally)
            self._trials.finish(command, folder, where, tally)


class Crashes:
    """Ends commands right before one of their renames, exchanges and deletes: each point once before any again."""

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
            if outcome.code not in (0, crash_points.DIED):
                tally.fault("traceback", f"{where}: {outcome.output.strip()[-300:]}")
            self._trials.judge(command, folder, where, tally)
            self._trials.finish(command, folder, where, tally)

    def _points_of(self, command: Command) -> int:
        if command.name not in self._points:
            with self._trials.folder(command) as folder:
                outcome = crash_points.crash_at(_work(folder, command), None)
                assert outcome.code == 0, outcome.output
                self._points[command.name] = outcome.points
        return self._points[command.name]


def _work(folder: Path, command: Command) -> "functools.partial[None]":
    return functools.partial(crash_points.cli, folder, *command.arguments)


class Race:
    """An index of one set of papers and of another, in turns, while others open and search it."""

    def __init__(self, work: Path) -> None:
        self._work = work
        for name, offset in (("even", 0), ("odd", 1)):
            papers = [{"paper_id": 2 * n + offset, "title": f"Ranking papers {n}"} for n in range(40)]
            write_lines(work / f"{name}.jsonl", papers)

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Lets two readers and the writer run for four seconds."""
        place = self._work / "raced"
        shutil.rmtree(place, ignore_errors=True)
        Index.build(self._work / "even.jsonl", place)
        context = multiprocessing.get_context("spawn")
        stop, results = context.Event(), context.SimpleQueue()
        readers = [context.Process(target=_read, args=(place, stop, results)) for _ in range(2)]
        for reader in readers:
            reader.start()
        for _ in readers:
            results.get()  # each is ready
        # How many there are is a matter of time: later turns must not depend on it.
        pauses = random.Random(draws.random())
        begun, builds = time.monotonic(), 0
        while time.monotonic() - begun < 4:
            Index.build(self._work / ("odd.jsonl" if builds % 2 == 0 else "even.jsonl"), place)
            builds += 1
            time.sleep(pauses.random() * 0.05)
        stop.set()
        tally.tried["builds"] += builds
        for _ in readers:
            opens, faults = results.get()
            tally.tried["opens"] += opens
            for fault in faults:
                tally.fault("torn read", fault)
        for reader in readers:
            reader.join()


def _read(place: Path, stop: Event, results: "multiprocessing.SimpleQueue[object]") -> None:
    Recommender.open(place).close()
    results.put("ready")
    opens, faults = 0, []
    while not stop.is_set():
        opens += 1
        try:
            with Recommender.open(place) as recommender:
                hits = [hit for _ in range(3) for hit in recommender.search("Ranking papers <REF>", 20)]
            ids = {int(hit.paper.paper_id) % 2 for hit in hits}
            if len(ids) != 1 or not all(hit.paper.title for hit in hits):
                faults.append(f"an answer from two indexes: {json.dumps(sorted(ids))}")
        except Exception as error:
            faults.append(f"{type(error).__name__}: {error}")
    results.put((opens, faults))
