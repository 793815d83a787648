"""How fast a hybrid search is beside its parts, and two threads beside one.

    python benchmarks/road.py --index INDEX --contexts FILE [--systems bm25 dense hybrid] [--queries 300] [--rounds 3]
        [--set lucene.engine=bm25s]

All systems run in one process, in turns, on the same contexts under the leak rules, k = 100; of several rounds the best
counts. `--set` changes every system but `bm25` and `dense`, which stay the peers. `search` leaves out the encoding of
the query, which `dense` and `hybrid` share; `whole` has it. One line for each system: processor time of a query,
queries a second on one thread and on two, and the median of a query that comes alone. Then the ratios, with the
system's parts one after the other as the peer:

- queries a second of `hybrid` to 1 / (1 / bm25 + 1 / dense), on two threads
- median of `hybrid` alone to the sum of the medians of `bm25` and `dense`
- processor time of `hybrid+ltr` to that of `hybrid`
- queries a second on two threads to those on one
"""

import argparse
import contextlib
import json
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from citerec import LeakRules, Recipe, Recommender
from citerec.contexts.read import read_contexts
from citerec.errors import QueryError
from citerec.records import NO_FILTERS

K = 100


@dataclass
class Speed:
    """The best figures of a system: ms of processor time, queries a second by threads, ms of a lone query."""

    processor: float = float("inf")
    queries: dict[int, float] = field(default_factory=dict)
    alone: float = float("inf")


class Measured:
    """A system and the topics it answers."""

    def __init__(self, recommender: Recommender, contexts: list[Any]) -> None:
        self._recommender = recommender
        self._topics = list(recommender.topics(contexts))
        self._filters = [LeakRules().restrict(topic, NO_FILTERS) for topic in self._topics]
        self._made = list(recommender._retriever.prepare(self._topics))
        self.search, self.whole = Speed(), Speed()

    def round(self) -> None:
        """Measures everything once."""
        for speed, made in ((self.search, self._made), (self.whole, [None] * len(self._topics))):
            for threads in (1, 2):
                begun, used = time.perf_counter(), time.process_time()
                with ThreadPoolExecutor(threads) as pool:
                    list(pool.map(self._answer, range(len(self._topics)), made))
                rate = len(self._topics) / (time.perf_counter() - begun)
                speed.queries[threads] = max(speed.queries.get(threads, 0), rate)
                if threads == 1:
                    speed.processor = min(speed.processor, 1000 * (time.process_time() - used) / len(self._topics))
            lone = [self._timed(number, made[number]) for number in range(0, len(self._topics), 3)]
            speed.alone = min(speed.alone, statistics.median(lone))

    def _answer(self, number: int, made: Any, *, alone: bool = False) -> None:
        with contextlib.suppress(QueryError):
            self._recommender._ranked(self._topics[number], K, self._filters[number], made, alone=alone)

    def _timed(self, number: int, made: Any) -> float:
        begun = time.perf_counter()
        self._answer(number, made, alone=True)
        return 1000 * (time.perf_counter() - begun)


def ratios(speed_of: Callable[[str], Speed], systems: list[str]) -> list[str]:
    """The ratios that the systems allow, a line each."""
    lines = []
    if {"bm25", "dense", "hybrid"} <= set(systems):
        words, vectors, both = (speed_of(name) for name in ("bm25", "dense", "hybrid"))
        allowed = 1 / (1 / words.queries[2] + 1 / vectors.queries[2])
        lines.append(f"hybrid answers {both.queries[2] / allowed:.2f} of what bm25 and dense would, two threads")
        lines.append(f"hybrid alone takes {both.alone / (words.alone + vectors.alone):.2f} of bm25 and dense")
    if {"hybrid", "hybrid+ltr"} <= set(systems):
        ratio = speed_of("hybrid+ltr").processor / speed_of("hybrid").processor
        lines.append(f"hybrid+ltr takes {ratio:.2f} of the processor time of hybrid")
    for name in systems:
        lines.append(f"{name}: two threads answer {speed_of(name).queries[2] / speed_of(name).queries[1]:.2f} of one")
    return lines


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--contexts", type=Path, required=True)
    parser.add_argument("--systems", nargs="+", default=["bm25", "dense", "hybrid"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    contexts = list(read_contexts(given.contexts))
    contexts = contexts[:: max(1, len(contexts) // given.queries)][: given.queries]
    recipes = {name: Recipe.load(name, () if name in ("bm25", "dense") else given.set) for name in given.systems}
    measured = {name: Measured(Recommender.open(given.index, one), contexts) for name, one in recipes.items()}
    for one in measured.values():  # Java compiles what runs often
        one.round()
        one.search, one.whole = Speed(), Speed()
    for _ in range(given.rounds):
        for one in measured.values():
            one.round()
    print(f"{given.index}, {len(contexts)} contexts, load {os.getloadavg()[0]:.1f}")
    for part in ("search", "whole"):
        print(f"\n{part:12}{'CPU ms':>8}{'1 thread':>10}{'2 threads':>11}{'alone ms':>10}")
        for name, one in measured.items():
            speed = getattr(one, part)
            line = f"{speed.processor:8.1f}{speed.queries[1]:10.1f}{speed.queries[2]:11.1f}{speed.alone:10.1f}"
            print(f"{name:12}{line}")
        print(*ratios(lambda name, part=part: getattr(measured[name], part), given.systems), sep="\n")
    if given.json:
        figures = {name: {"search": vars(one.search), "whole": vars(one.whole)} for name, one in measured.items()}
        given.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
