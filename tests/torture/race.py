"""An index that is exchanged again and again while others open and search it: each answer is of one index only."""

import json
import multiprocessing
import os
import random
import shutil
import time
from multiprocessing.synchronize import Event
from pathlib import Path

from citerec.files.writing import exchange
from citerec.recommend import Recommender
from tests.conftest import write_lines
from tests.torture.commands import call
from tests.torture.tally import Tally

_READERS = 2
_SECONDS = 4.0
_PAUSE = 0.05
_PAPERS = 40


class Race:
    """Two indexes of other papers under one name, in turns.

    Args:
        work: A folder for all of it.
    """

    def __init__(self, work: Path) -> None:
        self._work = work
        for name, offset in (("even", 0), ("odd", 1)):
            papers = [{"paper_id": 2 * n + offset, "title": f"Ranking papers {n}"} for n in range(_PAPERS)]
            write_lines(work / f"{name}.jsonl", papers)
            done = call(work, "index", "build", f"{name}.jsonl", "--out", name)
            if done.returncode:
                raise RuntimeError(done.stderr)

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Lets readers and the writer run for some seconds."""
        place = self._work / "raced"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._work / "even", place)
        context = multiprocessing.get_context("spawn")  # each reader starts a Java machine of its own
        stop, results = context.Event(), context.SimpleQueue()
        readers = [context.Process(target=_read, args=(place, stop, results)) for _ in range(_READERS)]
        for reader in readers:
            reader.start()
        for _ in readers:
            results.get()  # each is ready
        pauses = random.Random(
            draws.random()
        )  # how many there are is a matter of time: later turns must not depend on it
        begun, exchanges = time.monotonic(), 0
        while time.monotonic() - begun < _SECONDS:
            other = self._work / ("odd" if exchanges % 2 == 0 else "even")
            shutil.copytree(other, self._work / "next", copy_function=os.link)
            exchange(self._work / "next", place)
            exchanges += 1
            # A reader that meets an exchange at each try would never open.
            time.sleep(pauses.random() * _PAUSE)
        stop.set()
        tally.tried["exchanges"] += exchanges
        for _ in readers:
            opens, faults = results.get()
            tally.tried["opens"] += opens
            for kind, fault in faults:
                tally.fault(kind, fault)
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
                run = [recommender.search("Ranking papers <REF>", 20) for _ in range(3)]
                ids = {int(hit.paper.paper_id) % 2 for answer in run for hit in answer}
                titles = {hit.paper.title == "" for answer in run for hit in answer}
            if len(ids) != 1 or any(titles):
                faults.append(("torn read", f"an answer from two indexes: {json.dumps(sorted(ids))}"))
        except Exception as error:
            faults.append(("torn read", f"{type(error).__name__}: {error}"))
    results.put((opens, faults))
