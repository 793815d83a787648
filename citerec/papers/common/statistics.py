"""Statistics of data sets of texts: sizes, lengths, novelty, and tasks of nearly the same input."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.errors import InputError
from citerec.evaluation.rendering import Cell, Table, left, right
from citerec.files.parts import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.papers.common.overlap import Overlap, near_pairs, tfidf
from citerec.write.metrics.describing import NGRAMS, Length, Novelty
from citerec.write.sentences import words_of
from citerec.write.task_files import input_of, read_tasks
from citerec.write.tasks import Prediction, TextTask

NEAR = 0.9
"""The cosine above which two papers count as nearly identical (Mao et al. 2022, section 4.1)."""
OVER = (1024, 4096, 16384)
WHITE_SPACE = "white space"
_PROGRESS_EVERY = 100

CountTokens = Callable[[Sequence[str]], list[int]]


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and median of the values that are defined; None if there is none."""

    mean: float | None
    median: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of some values; NaN is not defined."""
        known = np.array(values, np.float64)
        known = known[~np.isnan(known)]
        return cls(float(known.mean()), float(np.median(known))) if len(known) else cls(None, None)


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


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of some data sets by name, and everything that the values depend on besides the files."""

    sets: Mapping[str, SetStatistics]
    settings: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """All values, and the settings."""
        return {
            "kind": "citerec-task-statistics",
            "version": 1,
            "settings": dict(self.settings),
            "sets": {name: asdict(one) for name, one in self.sets.items()},
        }


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
    found = {name: _described(path, over, count, name, on_progress) for name, path in files.items()}
    of_near: dict[str, tuple[Overlap | None, Overlap | None]] = dict.fromkeys(files, (None, None))
    if near is not None:
        of_near = _overlaps(files, against, near, on_progress)
    settings = {
        "words": Length().settings["words"],
        "novelty": dict(Novelty.settings),
        "tokens": tokenizer or WHITE_SPACE,
        "near": None if near is None else {"cosine_over": near, "of": "TF-IDF of inputs (scikit-learn)"},
        "against": against.name if against else None,
    }
    sets = {
        name: SetStatistics(**values, near=of_near[name][0], against=of_near[name][1]) for name, values in found.items()
    }
    return Statistics(sets, settings)


def statistics_table(found: Statistics) -> Table:
    """A row for each statistic, a column for each data set; values as in the JSON file."""
    rows: dict[str, dict[str, Cell]] = {}
    for name, one in found.sets.items():
        for label, value, decimals in _labelled(one, found.settings):
            shown = "–" if value is None else f"{value:,.{decimals}f}"
            rows.setdefault(label, {})[name] = Cell(value, ((shown, ""),))
    table = Table([*left(""), *right(*found.sets)])
    table.rows.extend([label, *(of_set.get(name) for name in found.sets)] for label, of_set in rows.items())
    return table


def _labelled(one: SetStatistics, settings: Mapping[str, Any]) -> Iterator[tuple[str, float | None, int]]:
    """Names, values and decimals of the rows of a table; shares × 100."""
    yield from (("tasks", one.tasks, 0), ("targets", one.targets, 0))
    kinds = ("sources", "input_words", "target_words", "input_tokens", "target_tokens", "compression")
    for kind in kinds:
        spread = getattr(one, kind)
        yield f"{kind.replace('_', ' ')}, mean", spread.mean, 1
        yield f"{kind.replace('_', ' ')}, median", spread.median, 1
    for n, spread in one.novelty.items():
        yield f"novelty{n} of targets ×100", _percent(spread.mean), 2
    for kind, shares in (("inputs", one.inputs_over), ("targets", one.targets_over)):
        for limit, share in shares.items():
            yield f"{kind} over {int(limit):,} tokens ×100", _percent(share), 3
    for overlap, of in ((one.near, "near to another"), (one.against, f"near to one of {settings['against']}")):
        if overlap is not None:
            yield f"pairs {of}", overlap.pairs, 0
            yield f"tasks {of} ×100", _percent(overlap.share), 2


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _described(path: Path, over: Sequence[int], count: CountTokens, name: str, on_progress: Progress) -> dict[str, Any]:
    """The fields of `SetStatistics` that need only one task at a time."""
    length, novelty = Length(), Novelty()
    of_tasks: list[tuple[float, float]] = []
    of_targets: list[list[float]] = []
    tokens: tuple[list[int], list[int]] = ([], [])
    for part in in_parts(read_tasks(path), _PROGRESS_EVERY):
        targets = [(task, target) for task in part for target in task.targets if target.strip()]
        of_tasks += [(len(task.sources), len(words_of(_text(task)))) for task in part]
        for task, target in targets:
            prediction = Prediction(task, target, "")
            words, _, compression = length.row(prediction)
            of_targets.append([words, compression, *novelty.row(prediction)])
        tokens[0].extend(count([" ".join(input_of(task)) for task in part]))
        tokens[1].extend(count([target for _, target in targets]))
        on_progress(f"describing {name}", len(of_tasks), 0)
    sources, words_in = zip(*of_tasks, strict=True)
    columns: Sequence[Sequence[float]] = list(zip(*of_targets, strict=True)) or [[]] * (2 + len(NGRAMS))
    shares = [{str(limit): _share_over(lengths, limit) for limit in over} for lengths in tokens]
    return {
        "tasks": len(of_tasks),
        "targets": len(of_targets),
        "sources": Spread.of(sources),
        "input_words": Spread.of(words_in),
        "target_words": Spread.of(columns[0]),
        "input_tokens": Spread.of(tokens[0]),
        "target_tokens": Spread.of(tokens[1]),
        "compression": Spread.of(columns[1]),
        "novelty": {str(n): Spread.of(column) for n, column in zip(NGRAMS, columns[2:], strict=True)},
        "inputs_over": shares[0],
        "targets_over": shares[1],
    }


def _text(task: TextTask) -> str:
    """All that a task gives to read."""
    return " ".join([task.citing, task.before, *(source.text for source in task.sources), task.after])


def _share_over(lengths: Sequence[int], limit: int) -> float:
    return sum(length > limit for length in lengths) / len(lengths) if lengths else 0.0


def _overlaps(
    files: Mapping[str, Path], against: Path | None, near: float, on_progress: Progress
) -> dict[str, tuple[Overlap | None, Overlap | None]]:
    """By set the overlap with itself, and that with the other file."""
    found: dict[str, tuple[Overlap | None, Overlap | None]] = {}
    for name, path in files.items():
        tell = functools.partial(on_progress, f"comparing {name}")
        # Its own words alone: another file must not change how near two tasks of this one are.
        (own,) = tfidf([_texts(path)])
        pairs, of_other = near_pairs(own, None, near, tell), None
        if against is not None:
            mine, others = tfidf([_texts(path), _texts(against)])
            to_others = near_pairs(mine, others, near, tell)
            of_other = Overlap.of(to_others, to_others[:, 0], own.shape[0])
        found[name] = Overlap.of(pairs, pairs.ravel(), own.shape[0]), of_other
    return found


def _texts(path: Path) -> Iterator[str]:
    return map(_text, read_tasks(path))


def _white_space(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def _tokens_of(name: str) -> CountTokens:
    from citerec.models.loading import load_tokenizer

    tokenizer = load_tokenizer(name)
    return lambda texts: [len(ids) for ids in tokenizer(list(texts), verbose=False)["input_ids"]] if texts else []
