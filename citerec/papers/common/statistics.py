"""Statistics of data sets of texts: sizes, lengths, novelty, tasks of nearly the same input; and tables of them."""

import functools
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.rendering import Cell, Table, left, right
from citerec.files.parts import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.files.text import counted
from citerec.papers.common.overlap import Overlap, near_pairs, tfidf
from citerec.papers.common.reproduce.base import Data, Measured, Missing, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import find, missing_data, sample_tasks
from citerec.write.anchors import without_anchors
from citerec.write.metrics.describing import NGRAMS, Length, Novelty, novelty, refers_to_itself
from citerec.write.sentences import words_of
from citerec.write.task_files import input_of, read_tasks
from citerec.write.tasks import TextTask

NEAR = 0.9
"""The cosine above which two papers count as nearly identical (Mao et al. 2022, section 4.1)."""
OVER = (1024, 4096, 16384)
WHITE_SPACE = "white space"
SPLITS = ("samples_1", "samples_2", "samples_3")
"""Columns of tables: the tasks of the first, second and third file of a data set: training, validation, test."""
_TOTAL = "Total"
_PROGRESS_EVERY = 100

CountTokens = Callable[[Sequence[str]], list[int]]
Columns = defaultdict[str, list[float]]
"""Values by name, of tasks or of their targets; NaN where one is not defined."""


def describe(tasks: Iterable[TextTask], columns: Columns) -> None:
    """Adds what is counted in tasks, and in targets that are not blank, to the columns of a data set.

    Of tasks: `sources`, `source_words`. Of targets: `target_words`, without citations; `compression`, words of the
    sources ÷ words of the target; `paragraphs`, lines that are not blank; `self_reference`, 1 or 0.
    """
    for task in tasks:
        source_words = sum(len(words_of(source.text)) for source in task.sources)
        columns["sources"].append(len(task.sources))
        columns["source_words"].append(source_words)
        for target in _targets(task):
            words = len(words_of(without_anchors(target)))
            columns["target_words"].append(words)
            columns["compression"].append(source_words / words if words and source_words else math.nan)
            columns["paragraphs"].append(sum(bool(line.strip()) for line in target.splitlines()))
            columns["self_reference"].append(refers_to_itself(target))


def _targets(task: TextTask) -> list[str]:
    return [target for target in task.targets if target.strip()]


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and median of the values that are defined; None if there is none."""

    mean: float | None
    median: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of some values; NaN is not defined."""
        defined = np.array(values, np.float64)
        defined = defined[~np.isnan(defined)]
        return cls(float(defined.mean()), float(np.median(defined))) if len(defined) else cls(None, None)


@dataclass(frozen=True, slots=True)
class SetStatistics:
    """Statistics of one data set. Shares are from 0 to 1.

    Attributes:
        tasks: Number of tasks.
        targets: Number of targets that are not blank; each counts in the values of targets.
        sources: Sources of a task.
        input_words: Words of the input: citing abstract, contexts and sources, without tags.
        target_words: Words of a target, without citations (the metric `length`).
        input_tokens: Tokens of the input as models read it, with tags.
        target_tokens: Tokens of a target.
        compression: Words of the sources ÷ words of the target (the metric `length`).
        novelty: Shares of the n-grams of targets that are in no source, by n (the metric `novelty`).
        inputs_over: Share of inputs with more than so many tokens.
        targets_over: The same of targets.
        near: Tasks whose inputs are nearly the same as others of the set; None if not asked for.
        against: The same as inputs of the set to compare with; None if there is none.
    """

    tasks: int
    targets: int
    sources: Spread
    input_words: Spread
    target_words: Spread
    input_tokens: Spread
    target_tokens: Spread
    compression: Spread
    novelty: Mapping[str, Spread]
    inputs_over: Mapping[str, float]
    targets_over: Mapping[str, float]
    near: Overlap | None = None
    against: Overlap | None = None


_SPREADS = ("sources", "input_words", "target_words", "input_tokens", "target_tokens", "compression")


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of some data sets by name, and everything that the values depend on besides the files."""

    sets: Mapping[str, SetStatistics]
    settings: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """All values, and the settings."""
        return {"kind": "citerec-task-statistics", "version": 1, **asdict(self)}


def task_statistics(
    files: Mapping[str, Path],
    *,
    over: Sequence[int] = OVER,
    tokenizer: str | None = None,
    near: float | None = NEAR,
    against: Path | None = None,
    on_progress: Progress = no_progress,
) -> Statistics:
    """Describes data sets: files of tasks by name.

    Args:
        files: The files; each is read twice, task by task.
        over: Numbers of tokens: the shares of longer inputs and targets are given.
        tokenizer: A folder or name of a model whose tokens are counted, special ones included; by default what stands
            between white space.
        near: Inputs with a higher cosine of their TF-IDF vectors count as nearly the same; None to leave this out.
        against: Another file of tasks, such as what a model learnt from: how many tasks of each set are near to one
            of it.
        on_progress: Called as the work goes on.

    Raises:
        SourceError: A file cannot be read.
        InputError: A record is no task, `near` is no share, or there is no such file.
        ModelError: There is no such tokenizer.
    """
    if near is not None and not 0 < near < 1:
        raise InputError(f"{near} is no cosine between 0 and 1", "Give one such as 0.9.")
    if against is not None and near is None:
        raise InputError("nothing says what is nearly the same as a task of the other file", "Give a cosine too.")
    count = _white_space if tokenizer is None else _tokens_of(tokenizer)
    columns = {name: _columns(path, count, name, on_progress) for name, path in files.items()}
    overlaps = {
        name: _overlaps(path, against, near, functools.partial(on_progress, f"comparing {name}")) if near else {}
        for name, path in files.items()
    }
    settings = {
        "words": Length().settings["words"],
        "novelty": dict(Novelty.settings),
        "tokens": tokenizer or WHITE_SPACE,
        "near": None if near is None else {"cosine_over": near, "of": "TF-IDF of inputs (scikit-learn)"},
        "against": against.name if against else None,
    }
    sets = {
        name: SetStatistics(
            tasks=len(of_set["sources"]),
            targets=len(of_set["target_words"]),
            **{spread: Spread.of(of_set[spread]) for spread in _SPREADS},
            novelty={str(n): Spread.of(of_set[f"novelty{n}"]) for n in NGRAMS},
            inputs_over={str(limit): _share_over(of_set["input_tokens"], limit) for limit in over},
            targets_over={str(limit): _share_over(of_set["target_tokens"], limit) for limit in over},
            near=overlaps[name].get("near"),
            against=overlaps[name].get("against"),
        )
        for name, of_set in columns.items()
    }
    return Statistics(sets, settings)


def _columns(path: Path, count: CountTokens, name: str, on_progress: Progress) -> Columns:
    """All columns of a file."""
    columns: Columns = defaultdict(list)
    for part in in_parts(read_tasks(path), _PROGRESS_EVERY):
        describe(part, columns)
        columns["input_words"] += [len(words_of(_text(task))) for task in part]
        columns["input_tokens"] += count([" ".join(input_of(task)) for task in part])
        targets = [(task, target) for task in part for target in _targets(task)]
        columns["target_tokens"] += count([target for _, target in targets])
        for task, target in targets:
            shares = novelty(target, [text for source in task.sources for text in (source.title, source.text)])
            for n, share in zip(NGRAMS, shares, strict=True):
                columns[f"novelty{n}"].append(share)
        on_progress(f"describing {name}", len(columns["sources"]), 0)
    return columns


def _share_over(lengths: Sequence[float], limit: int) -> float:
    return sum(length > limit for length in lengths) / len(lengths) if lengths else 0.0


def _text(task: TextTask) -> str:
    """All that a task gives to read."""
    return " ".join([task.citing, task.before, *(source.text for source in task.sources), task.after])


def _overlaps(
    path: Path, against: Path | None, near: float, on_progress: Callable[[int, int], None]
) -> dict[str, Overlap]:
    """The overlap of a set with itself, `near`, and that with the other file, `against`."""
    texts = functools.partial(map, _text)
    # Its own words alone: another file must not change how near two tasks of this one are.
    own = tfidf(texts(read_tasks(path)))
    size = own.shape[0]
    pairs = near_pairs(own, None, near, on_progress)
    overlaps = {"near": Overlap.of(pairs, pairs.ravel(), size)}
    if against is not None:
        both = tfidf(texts(itertools.chain(read_tasks(path), read_tasks(against))))
        pairs = near_pairs(both[:size], both[size:], near, on_progress)
        overlaps["against"] = Overlap.of(pairs, pairs[:, 0], size)
    return overlaps


def _white_space(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def _tokens_of(name: str) -> CountTokens:
    from citerec.models.loading import load_tokenizer

    tokenizer = load_tokenizer(name)
    return lambda texts: [len(ids) for ids in tokenizer(list(texts), verbose=False)["input_ids"]] if texts else []


def statistics_table(described: Statistics) -> Table:
    """A row for each statistic, a column for each data set; values as in the JSON file."""
    rows: dict[str, dict[str, Cell]] = {}
    for name, one in described.sets.items():
        for label, value, decimals in _labelled(one, described.settings):
            shown = "–" if value is None else f"{value:,.{decimals}f}"
            rows.setdefault(label, {})[name] = Cell(value, ((shown, ""),))
    table = Table([*left(""), *right(*described.sets)])
    table.rows.extend([label, *(of_set.get(name) for name in described.sets)] for label, of_set in rows.items())
    return table


def _labelled(one: SetStatistics, settings: Mapping[str, Any]) -> Iterator[tuple[str, float | None, int]]:
    """Names, values and decimals of the rows of a table; shares × 100."""
    yield from (("tasks", one.tasks, 0), ("targets", one.targets, 0))
    for kind in _SPREADS:
        spread = getattr(one, kind)
        yield f"{kind.replace('_', ' ')}, mean", spread.mean, 1
        yield f"{kind.replace('_', ' ')}, median", spread.median, 1
    for n, spread in one.novelty.items():
        yield f"novelty{n} of targets ×100", None if spread.mean is None else 100 * spread.mean, 2
    for kind, shares in (("inputs", one.inputs_over), ("targets", one.targets_over)):
        for limit, share in shares.items():
            yield f"{kind} over {int(limit):,} tokens ×100", 100 * share, 3
    for overlap, of in ((one.near, "near to another"), (one.against, f"near to one of {settings['against']}")):
        if overlap is not None:
            yield f"pairs {of}", overlap.pairs, 0
            yield f"tasks {of} ×100", 100 * overlap.share, 2


class StatisticsTables(Runner):
    """Tables of statistics, a row for each data set: reads the data sets, and counts."""

    name = "statistics"

    def run(self, recipe: Recipe, request: Request) -> Outcome:
        """Errors as for `Runner.run`."""
        sets: dict[str, Columns] = {}
        missing: list[Missing] = []
        notes: list[str] = []
        data = {one.name: one for one in recipe.data}
        rows = [row for row in recipe.rows if row.name != _TOTAL]
        for row in rows:
            columns, absent = _read(data[row.data or row.name], row.title, request)
            if columns["sources"]:
                sets[row.title] = columns
                if absent:
                    notes.append(f"{row.title}: without {', '.join(absent)}; means are over the other files.")
            elif absent:
                missing.append(missing_data(request.data, data[row.data or row.name]))
        size = counted(sum(len(columns["sources"]) for columns in sets.values()), "task")
        sampled = f"{size} of what lies here" if request.sample else ""
        if len(sets) == len(rows) < len(recipe.rows):
            names = set().union(*sets.values())
            total = {name: [value for columns in sets.values() for value in columns[name]] for name in names}
            sets[_TOTAL] = defaultdict(list, total)
        elif request.sample and not sets:
            what, tasks = sample_tasks(recipe, request)
            describe(tasks, sets.setdefault(f"sample: {what}", defaultdict(list)))
            size = sampled = f"{len(tasks):,} {what}"
        cells = {
            (name, "", measure.name): Measured(value * measure.scale, len(columns["sources"]))
            for name, columns in sets.items()
            for measure in recipe.measures
            if (value := _value(columns, measure.column)) is not None
        }
        about = {"": size} if sets else {}
        return Outcome(cells, missing, about, sampled=sampled, notes=notes)


def _read(data: Data, title: str, request: Request) -> tuple[Columns, list[str]]:
    """What the files of a data set hold, with a column for the tasks of each split; and those that are not there."""
    columns: Columns = defaultdict(list)
    absent = []
    for number, pattern in enumerate(data.files):
        paths = find(request.data, [pattern])
        if not paths:
            absent.append(pattern)
            continue
        request.on_progress(f"reading {title}", number, len(data.files))
        before = len(columns["sources"])
        describe(itertools.chain.from_iterable(map(read_tasks, paths)), columns)
        split = SPLITS[0 if "train" in pattern.lower() else 2 if "test" in pattern.lower() else 1]
        columns[split] += columns["sources"][before:]
    return columns, absent


def _value(columns: Columns, column: str) -> float | None:
    """A column of a table: the number of tasks or those of a split, a sum, or a mean; None if it is empty."""
    values = columns[{"samples": "sources", "self_references": "self_reference"}.get(column, column)]
    if not values:
        return None
    if column in ("samples", *SPLITS):
        return len(values)
    return math.fsum(values) if column == "self_references" else statistics.fmean(values)


STATISTICS = StatisticsTables()
