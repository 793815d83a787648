"""ROUGE of 5,000 records of CiteBench's size: ours on one core and on two, against rouge-score called directly.

The records are made of the 50 of data/text/citebench: each takes the sizes of one of them, and sentences of all. Only
ratios within one run mean something; each turn measures all three ways, and the quickest of each counts, as others on
the machine only ever slow one down. The second process is begun once; what that costs is told apart.
"""

import argparse
import itertools
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rouge_score.rouge_scorer import RougeScorer

from citerec.write.metrics import KINDS, MetricOptions, open_rouge
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Prediction, TextTask, sentences_of

SAMPLE = Path(__file__).parents[2] / "shared" / "data" / "text" / "citebench" / "sample.json"


def records(count: int, seed: int) -> list[Prediction]:
    """Predictions of three sentences of cited abstracts, and targets as long as authors write them."""
    tasks = list(read_tasks(SAMPLE))
    targets = [sentences_of(task.targets[0]) for task in tasks]
    of_targets = list(itertools.chain.from_iterable(targets))
    of_sources = [sentence for task in tasks for source in task.sources for sentence in sentences_of(source.text)]
    chance = random.Random(seed)
    made = []
    for number in range(count):
        target = " ".join(chance.choices(of_targets, k=len(chance.choice(targets))))
        prediction = " ".join(chance.choices(of_sources, k=3))
        made.append(Prediction(TextTask(str(number), (), targets=(target,)), prediction, "sampled"))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    texts = records(arguments.records, seed=0)
    scorer = RougeScorer(list(KINDS))

    def directly() -> list[list[float]]:
        scores = (scorer.score(text.task.targets[0], text.text) for text in texts)
        return [[score[kind].fmeasure for kind in KINDS] for score in scores]

    def ours(workers: int) -> Callable[[], object]:
        return lambda: open_rouge(MetricOptions(workers=workers)).scores(texts, lambda *_: None)

    ways: dict[str, Callable[[], object]] = {
        "rouge-score, called directly": directly,
        "citerec, one core": ours(1),
        "citerec, two cores": ours(2),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    processor: dict[str, list[float]] = {way: [] for way in ways}
    begun = time.perf_counter()
    ours(2)()
    first = time.perf_counter() - begun
    for _ in range(arguments.turns):
        found = []
        for way, work in ways.items():
            begun, spent = time.perf_counter(), time.process_time()
            found.append(np.array(work()))
            times[way].append(time.perf_counter() - begun)
            processor[way].append(time.process_time() - spent)
        assert all(np.array_equal(found[0], values) for values in found)
    words = statistics.mean(len(text.task.targets[0].split()) for text in texts)
    print(f"{len(texts):,} records, targets of {words:.0f} words, {os.cpu_count()} cores, {arguments.turns} turns")
    print("| way | s, quickest to slowest | ms a record | processor time of this process, s |\n|---|---|---|---|")
    for way, seconds in times.items():
        spread, each = f"{min(seconds):.1f} to {max(seconds):.1f}", 1000 * min(seconds) / len(texts)
        print(f"| {way} | {spread} | {each:.2f} | {min(processor[way]):.1f} |")
    direct, one, two = ways
    ratio, in_processor = (min(of[one]) / min(of[direct]) for of in (times, processor))
    faster = min(times[one]) / min(times[two])
    print(f"one core against rouge-score: {ratio:.2f} of its time, {in_processor:.2f} of its processor time")
    print(f"two cores against one: {faster:.2f} times as fast; the first time, while a process is begun, {first:.1f} s")


if __name__ == "__main__":
    main()
