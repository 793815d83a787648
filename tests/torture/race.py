"""An index that is built again and again while others open and search it: each answer is of one index only."""

import json
import multiprocessing
import random
import shutil
import time
from multiprocessing.synchronize import Event
from pathlib import Path

from citerec.library import Index
from citerec.recommend import Recommender
from tests.conftest import write_lines
from tests.torture.tally import Tally

_READERS = 2
_SECONDS = 4.0
_PAUSE = 0.05
_PAPERS = 40


class Race:
    """An index of one set of papers and of another, in turns.

    Args:
        work: A folder for all of it.
    """

    def __init__(self, work: Path) -> None:
        self._work = work
        for name, offset in (("even", 0), ("odd", 1)):
            papers = [{"paper_id": 2 * n + offset, "title": f"Ranking papers {n}"} for n in range(_PAPERS)]
            write_lines(work / f"{name}.jsonl", papers)

    def turn(self, draws: random.Random, tally: Tally) -> None:
        """Lets readers and the writer run for some seconds."""
        place = self._work / "raced"
        shutil.rmtree(place, ignore_errors=True)
        Index.build(self._work / "even.jsonl", place)
        context = multiprocessing.get_context("spawn")
        stop, results = context.Event(), context.SimpleQueue()
        readers = [context.Process(target=_read, args=(place, stop, results)) for _ in range(_READERS)]
        for reader in readers:
            reader.start()
        for _ in readers:
            results.get()  # each is ready
        pauses = random.Random(
            draws.random()
        )  # how many there are is a matter of time: later turns must not depend on it
        begun, builds = time.monotonic(), 0
        while time.monotonic() - begun < _SECONDS:
            Index.build(self._work / ("odd.jsonl" if builds % 2 == 0 else "even.jsonl"), place)
            builds += 1
            time.sleep(pauses.random() * _PAUSE)
        stop.set()
        tally.tried["builds"] += builds
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
