"""How fast a hybrid search is beside its parts, and two worker processes beside one.

    python benchmarks/road.py --index INDEX --contexts FILE [--systems bm25 dense hybrid] [--queries 300] [--rounds 3]

All systems are measured by `citerec.evaluate`, in turns, on the same contexts under the leak rules, k = 100, by one
process and by two; of several rounds the best counts. One line for each system: processor time of a query, its median
time, queries a second of one process and of two, and the memory that each of two processes has of its own (without the
pages of the index, which they share). Then the ratios:

- processor time of `hybrid` to that of `bm25` and `dense` together
- processor time of `hybrid+ltr` to that of `hybrid`
- queries a second of two processes to those of one
"""

import argparse
import functools
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from joblib.externals.loky import get_reusable_executor

import citerec
from citerec import LeakRules, Recommender, SearchOptions
from citerec.contexts.read import read_contexts
from citerec.files.parallel import outcomes_of
from citerec.records import Context

K = 100
PROCESSES = (1, 2)


@dataclass
class Speed:
    """The best figures of a system.

    Attributes:
        processor: Milliseconds of processor time of a query.
        median: Median milliseconds of a query.
        queries: Queries a second, by the number of processes.
        memory: Bytes that each of two processes has of its own.
    """

    processor: float = float("inf")
    median: float = float("inf")
    queries: dict[int, float] = field(default_factory=dict)
    memory: int = 0

    def take(self, index: Path, system: str, contexts: list[Context]) -> None:
        """Measures once."""
        for processes in PROCESSES:
            results = citerec.evaluate(
                {"system": system}, contexts, index=index, k=K, resamples=100, parallelism=processes,
                include_training_contexts=True, on_progress=lambda *_: None,
            )  # fmt: skip
            cost = results.systems["system"].cost
            assert cost is not None
            assert cost.latency_median_ms is not None
            self.queries[processes] = max(self.queries.get(processes, 0), cost.queries_per_second)
            if processes == 1:
                self.processor = min(self.processor, 1000 * cost.cpu_seconds / cost.queries)
                self.median = min(self.median, cost.latency_median_ms)


def own_memory(system: Recommender, contexts: list[Context]) -> int:
    """The bytes that a process has of its own after it has answered some contexts: a task."""
    for _ in system.candidates(system.topics(contexts), K, options=SearchOptions(LeakRules())):
        pass
    return int(psutil.Process().memory_full_info().uss)


def ratios(speeds: dict[str, Speed]) -> list[str]:
    """The ratios that the systems allow, a line each."""
    lines = []
    if {"bm25", "dense", "hybrid"} <= speeds.keys():
        parts = speeds["bm25"].processor + speeds["dense"].processor
        lines.append(f"hybrid takes {speeds['hybrid'].processor / parts:.2f} of the processor time of bm25 and dense")
    if {"hybrid", "hybrid+ltr"} <= speeds.keys():
        ratio = speeds["hybrid+ltr"].processor / speeds["hybrid"].processor
        lines.append(f"hybrid+ltr takes {ratio:.2f} of the processor time of hybrid")
    for name, one in speeds.items():
        lines.append(f"{name}: two processes answer {one.queries[2] / one.queries[1]:.2f} of one")
    return lines


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--contexts", type=Path, required=True)
    parser.add_argument("--systems", nargs="+", default=["bm25", "dense", "hybrid"])
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    contexts = list(read_contexts(given.contexts))
    contexts = contexts[:: max(1, len(contexts) // given.queries)][: given.queries]
    speeds = {name: Speed() for name in given.systems}
    for _ in range(given.rounds):
        for name, speed in speeds.items():
            speed.take(given.index, name, contexts)
    for name, speed in speeds.items():
        with Recommender.open(given.index, name) as system:
            work: Callable[[list[Context]], int] = functools.partial(own_memory, system)
            get_reusable_executor().shutdown()  # new processes: these hold nothing of the systems before
            speed.memory = max(memory for _, memory in outcomes_of(work, [contexts[:50], contexts[50:100]], 2))
    print(f"{given.index}, {len(contexts)} contexts, load {os.getloadavg()[0]:.1f}\n")
    print(f"{'':24}{'CPU ms':>8}{'p50 ms':>8}{'1 process':>11}{'2 processes':>13}{'own MB':>8}")
    for name, one in speeds.items():
        rates = f"{one.queries[1]:11.1f}{one.queries[2]:13.1f}"
        print(f"{name:24}{one.processor:8.1f}{one.median:8.1f}{rates}{one.memory / 1e6:8.0f}")
    print("", *ratios(speeds), sep="\n")
    if given.json:
        figures = {name: asdict(one) for name, one in speeds.items()}
        given.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
