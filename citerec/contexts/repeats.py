"""Steps over many full texts. Some texts occur more than once: of several with one corpusid the last counts."""

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.contexts.full_text import FullText, read_s2orc
from citerec.corpus.reading import QUARANTINE, BadRecord, Write, quarantine_line, reading_lines, writing_lines
from citerec.files.parallel import Parallelism
from citerec.files.progress import Rejected, fault_at
from citerec.files.resume import Result, Step, run_stage

OUTCOMES = "outcomes"
"""The key of counts of outcomes in the counts of a shard."""

FIRST_BAD = "first_bad"
"""The key of what is wrong with the first bad line, and where, in the counts of a shard."""


def list_texts(shard: Path, out: Path, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes the ids of the texts of a shard of S2ORC with their lines, in order."""
    lines = read_s2orc(shard)
    texts = [(line.record.paper_id, line.number) for line in lines if isinstance(line.record, FullText)]
    with writing_lines(out) as write:
        for text in sorted(texts):
            write(orjson.dumps(text))
    return {}


LIST_TEXTS = Step(list_texts, version=1)


def _texts(result: Result) -> Iterator[tuple[str, str, int]]:
    """The texts of a shard: paper, shard and line."""
    return ((paper_id, str(result.shard), line) for paper_id, line in map(orjson.loads, reading_lines(result.path)))


def _repeated(listed: Sequence[Result]) -> dict[str, list[int]]:
    """The lines of each shard that a later line, there or in a later shard, replaces; memory stays flat."""
    lost = defaultdict[str, list[int]](list)
    texts = heapq.merge(*map(_texts, listed), key=lambda text: text[0])  # texts of one paper in the order of shards
    for _, places in itertools.groupby(texts, key=lambda text: text[0]):
        for _, shard, line in list(places)[:-1]:
            lost[shard].append(line)
    return lost


class OfTexts(NamedTuple):
    """The results of a step over full texts.

    Attributes:
        results: The result of each shard.
        counts: Counts of all shards together: `texts`, `bad`, and the step's own.
        outcomes: Outcomes of sentences or sections.
    """

    results: Sequence[Result]
    counts: "Counter[str]"
    outcomes: "Counter[str]"


def run_over_texts(
    work: Path,
    shards: Sequence[Path],
    step: Step,
    parameters: Mapping[str, Any],
    *,
    max_bad: float,
    workers: Parallelism,
    on_progress: Callable[[float, float], None],
) -> OfTexts:
    """Runs a step over shards of S2ORC; its parameter `repeated` is for `full_texts`.

    Raises:
        BuildError: Too many of the texts are bad, as for `Rejected`.
    """
    listed = run_stage(work, shards, LIST_TEXTS, {}, workers=workers, on_progress=lambda *_: on_progress(0, 1))
    whole = {**parameters, "repeated": _repeated(listed)}
    results = run_stage(work, shards, step, whole, workers=workers, on_progress=on_progress)
    counts, outcomes = Counter[str](), Counter[str]()
    for result in results:
        outcomes.update(result.counts[OUTCOMES])
        counts.update({name: value for name, value in result.counts.items() if name not in (OUTCOMES, FIRST_BAD)})
    stop_if_bad(results, "texts", max_bad)
    return OfTexts(results, counts, outcomes)


def stop_if_bad(results: Sequence[Result], what: str, max_bad: float) -> None:
    """Stops the work, as `Rejected` does, if too many records of shards are bad; the first of them is named.

    Args:
        results: With the counts `bad` and `what`, and a quarantine.
        what: What is counted, in the plural.
        max_bad: The share that is allowed, 0 to 1.
    """
    rejected = Rejected(max_bad, what)
    for result in results:
        rejected.add(result.counts.get(what, 0), result.counts.get("bad", 0), result.counts.get(FIRST_BAD, ""))
    rejected.check()


def bad_records(result: Result) -> Iterator[dict[str, Any]]:
    """The quarantine of a result."""
    lines = (line for line in reading_lines(result.path) if line.startswith(QUARANTINE))
    return (orjson.loads(line.removeprefix(QUARANTINE)) for line in lines)


def set_aside(bad: BadRecord, shard: Path, line: int, counts: "Counter[str]", write: Write) -> None:
    """Counts a bad record of a shard, and writes it to the quarantine."""
    counts["bad"] += 1
    counts.setdefault(FIRST_BAD, fault_at(shard.name, line, bad.reason))  # type: ignore[arg-type]  # no count
    write(QUARANTINE + quarantine_line(shard.name, line, bad))


def full_texts(shard: Path, parameters: Mapping[str, Any], counts: "Counter[str]", write: Write) -> Iterator[FullText]:
    """The texts of a shard that count, for a step of `run_over_texts`.

    Counts `texts`, `bad` and `faults`; bad lines and faults are written to the quarantine.
    """
    lost = frozenset(parameters["repeated"].get(str(shard), ()))
    for line in read_s2orc(shard):
        if line.number in lost:
            continue
        if isinstance(line.record, BadRecord):
            set_aside(line.record, shard, line.number, counts, write)
            continue
        counts["texts"] += 1
        counts["faults"] += len(line.record.faults)
        for fault in line.record.faults:
            write(QUARANTINE + quarantine_line(shard.name, line.number, BadRecord(fault, line.beginning)))
        yield line.record
