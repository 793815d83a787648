"""Built data sets of texts: a folder with one file per split and a manifest, made from shards of S2ORC."""

import contextlib
import functools
import itertools
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from citerec.contexts.full_text import FullText, find_texts
from citerec.contexts.repeats import OUTCOMES, OfTexts, full_texts, run_over_texts
from citerec.contexts.split import splitter_identity
from citerec.corpus.reading import QUARANTINE, reading_lines, writing_lines
from citerec.errors import BuildError, InputError
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import Step, hash_sample, read_json
from citerec.files.writing import Kind, alone, beside
from citerec.index.manifest import Manifest
from citerec.retrieve.base import OpenIndex
from citerec.settings import Natural, Share
from citerec.version import __version__
from citerec.write.task_files import task_record
from citerec.write.tasks import TextTask

SPLITS = ("train", "validation", "test")
MANIFEST, QUARANTINE_FILE = "manifest.json", "quarantine.jsonl"
_FILES = frozenset({MANIFEST, QUARANTINE_FILE, *(f"{split}.jsonl" for split in SPLITS)})
PAIR_SET = Kind("data set of texts", "citerec-texts", MANIFEST, _FILES)


@dataclass(frozen=True, slots=True)
class Splitting:
    """How tasks are divided into splits: by a digest of seed and paper, so that no paper is in two.

    A paper stays in its split when the data grow.

    Attributes:
        validation: The share of the papers in the validation split, 0 to 1; approximate.
        test: The share of the papers in the test split, 0 to 1; approximate.
        seed: Seed of the division into splits.
        split: The splitter of texts into sentences, if the source does not mark them: pysbd, spacy, or a spaCy model.
    """

    validation: Share = 0.05
    test: Share = 0.05
    seed: Natural = 0
    split: str = "pysbd"

    def split_of(self, paper_id: str) -> str:
        """The split of a paper."""
        share = hash_sample(self.seed, paper_id, between=" ") / 2**64
        return "test" if share < self.test else "validation" if share < self.test + self.validation else "train"


@dataclass(frozen=True, slots=True)
class Reading:
    """What goes with the texts of a shard: the index, the settings of the plan, and counts by step and by outcome."""

    index: OpenIndex
    settings: Mapping[str, Any]
    counts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)


TasksOf = Callable[[Iterator[FullText], Reading], Iterator[tuple[str, TextTask]]]
"""Makes tasks of full texts, each after the paper that decides its split; ids have no white space.

It is a function of a module, by whose name other processes find it.
"""


class Plan(NamedTuple):
    """What to build.

    Attributes:
        dataset: Name of the data set.
        tasks: Makes the tasks.
        steps: Names of its counts, in the order of the filter; the first are the texts.
        conditions: What the tasks depend on besides texts and index: a dataclass.
        name: The name of the conditions in the manifest.
    """

    dataset: str
    tasks: TasksOf
    steps: Sequence[str]
    conditions: type[Any]
    name: str = "conditions"


def build_pairs(
    sources: Sequence[Path],
    index: Path,
    out: Path,
    plan: Plan,
    conditions: Any,
    splitting: Splitting,
    *,
    max_bad: float = 0.05,
    workers: int | None = None,
    on_progress: Progress = no_progress,
) -> dict[str, Any]:
    """Makes a data set of all full texts of some shards. A stopped build continues where it stopped.

    Each shard's result is kept in `.OUT.work` beside the folder, also for a run with another seed.

    Returns:
        The manifest. `steps`: how many were left after each step, in order. `left_out`: why sentences or sections were,
        if the builder counts it. `splits` and `papers`: tasks and papers by split. `bad`: lines that are no full text.
        `faults`: annotations that did not fit their text. Both of these are listed in the quarantine.

    Raises:
        InputError: A source is missing, or something else is at `out`, such as another data set.
        IndexUnusableError: The index cannot be read.
        BuildError: Too many texts are bad, nothing is left of them, or the disk is full; `out` stays as it was.
    """
    if splitting.validation + splitting.test > 1:
        raise InputError("validation and test add up to more than 1", "Give shares that add up to 1 at most.")
    PAIR_SET.check_place(out)
    standing = (read_json(out / MANIFEST) or {}).get("dataset", plan.dataset)
    if standing != plan.dataset:
        message = f"{out} holds the data set {standing}, not {plan.dataset}"
        raise InputError(message, "Give another --out, or remove it first.")
    fingerprint = Manifest.read(index).fingerprint
    shards = find_texts(sources)
    work, advance = beside(out.resolve(), "work"), functools.partial(on_progress, "reading")
    place = {"tasks": f"{plan.tasks.__module__}:{plan.tasks.__qualname__}", "index": str(index.resolve())}
    is_split = {"split": splitting.split, "split_is": splitter_identity(splitting.split)}
    settings = {plan.name: asdict(conditions), **is_split}
    parameters = {**settings, **place, "fingerprint": fingerprint}
    with alone(work / "lock", f"another process is writing {out}"):
        read = run_over_texts(work, shards, _STEP, parameters, max_bad=max_bad, workers=workers, on_progress=advance)
        steps = {name: read.counts[name] for name in plan.steps}
        with PAIR_SET.writing(out) as folder:
            splits, papers = _write_splits(read, folder, splitting)
            if not any(splits.values()):
                left = ", then ".join(f'{count:,} "{step}"' for step, count in steps.items())
                raise BuildError(f"no text is kept: {left}", "Loosen the conditions, or give more texts.")
            manifest = {
                "kind": PAIR_SET.kind,
                "version": 1,
                "citerec": __version__,
                "dataset": plan.dataset,
                "index": fingerprint,
                "shards": [shard.name for shard in shards],
                "settings": {**settings, "validation": splitting.validation, "test": splitting.test},
                "seed": splitting.seed,
                "steps": steps,
                "left_out": dict(read.outcomes.most_common()),
                "splits": splits,
                "papers": papers,
                "bad": read.counts["bad"],
                "faults": read.counts["faults"],
            }
            (folder / MANIFEST).write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
    return manifest


def _records_of_shard(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Writes the records of a shard, each after the paper that decides its split."""
    tasks_of: TasksOf = pkgutil.resolve_name(parameters["tasks"])
    with writing_lines(out) as write, contextlib.closing(OpenIndex.open(parameters["index"])) as index:
        reading = Reading(index, parameters)
        for paper_id, task in tasks_of(full_texts(shard, parameters, reading.counts, write), reading):
            write(paper_id.encode() + b"\t" + orjson.dumps(task_record(task)))
    left_out = {outcome: count for outcome, count in reading.outcomes.items() if outcome != "usable"}
    return {**reading.counts, OUTCOMES: left_out}


_STEP = Step(_records_of_shard, version=3)


def _write_splits(read: OfTexts, folder: Path, splitting: Splitting) -> tuple[dict[str, int], dict[str, int]]:
    """Writes the records of all shards, each to its split; returns how many, and of how many papers."""
    counts = dict.fromkeys(SPLITS, 0)
    papers: dict[str, set[bytes]] = {split: set() for split in SPLITS}
    with contextlib.ExitStack() as stack:
        files = {split: stack.enter_context((folder / f"{split}.jsonl").open("wb")) for split in SPLITS}
        aside = stack.enter_context((folder / QUARANTINE_FILE).open("wb"))
        for line in itertools.chain.from_iterable(reading_lines(result.path) for result in read.results):
            if line.startswith(QUARANTINE):
                aside.write(line.removeprefix(QUARANTINE) + b"\n")
                continue
            paper_id, record = line.split(b"\t", 1)
            split = splitting.split_of(paper_id.decode())
            counts[split] += 1
            papers[split].add(paper_id)
            files[split].write(record + b"\n")
    if not (folder / QUARANTINE_FILE).stat().st_size:
        (folder / QUARANTINE_FILE).unlink()
    return counts, {split: len(of_split) for split, of_split in papers.items()}


OTHER = "#OTHEREFR"
"""Stands in a citation text for a paper that is not in the input (CiteBench, after Xing et al.)."""


def unified(text: str, anchors: re.Pattern[str], papers: Mapping[str, int]) -> tuple[str, list[int]]:
    """A citation text with `[0]`, `[1]`, … for its anchors, and the papers in that order.

    Papers are numbered in order of first mention; those never mentioned come last. An anchor without a paper becomes
    `#OTHEREFR`.

    Args:
        text: The citation text.
        anchors: Pattern of an anchor; its name is the first group of the match, or the whole match.
        papers: Positions of the papers, by the name of their anchors; several names may mean one paper.

    Returns:
        The text, and for each number the position of its paper.
    """
    numbers: dict[int, int] = {}

    def number_of(match: re.Match[str]) -> str:
        position = papers.get(match[1] if anchors.groups else match[0])
        if position is None:
            return OTHER
        return f"[{numbers.setdefault(position, len(numbers))}]"

    numbered = anchors.sub(number_of, text)
    return numbered, list(dict.fromkeys([*numbers, *sorted(papers.values())]))


def positions(names: Sequence[str]) -> dict[str, int]:
    """Positions of papers by name; if a name occurs twice, the first counts."""
    return {name: position for position, name in reversed(list(enumerate(names)))}
