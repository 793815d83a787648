"""Statistics of data sets of texts: sizes, lengths, novelty, tasks of nearly the same input; and tables of them."""

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from citerec.errors import InputError
from citerec.evaluation.rendering import Cell, Table, left, right
from citerec.files.parts import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.files.text import counted
from citerec.papers.common.reproduce.base import Data, Measured, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import find, published, sample_tasks
from citerec.write.anchors import without_anchors
from citerec.write.metrics.describing import NGRAMS, Length, Novelty, novelty, refers_to_itself
from citerec.write.sentences import words_of
from citerec.write.task_files import input_of, read_tasks
from citerec.write.tasks import TextTask

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NEAR = 0.9
"""The cosine above which two papers count as nearly identical (Mao et al. 2022, section 4.1)."""
OVER = (1024, 4096, 16384)
WHITE_SPACE = "white space"
SPLITS = ("samples_1", "samples_2", "samples_3")
"""Columns of tables: the tasks of the first, second and third file of a data set: training, validation, test."""
_TOTAL = "Total"
_PROGRESS_EVERY = 100
_CELLS_AT_ONCE = 20_000_000  # cosines
_SPREADS = ("sources", "input_words", "target_words", "input_tokens", "target_tokens", "compression")

CountTokens = Callable[[Sequence[str]], list[int]]
Pairs = npt.NDArray[np.int64]
"""Pairs × 2: a row of the first texts and one of the second."""
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


def task_statistics(
    files: Mapping[str, Path],
    *,
    over: Sequence[int] = OVER,
    tokenizer: str | None = None,
    near: float | None = NEAR,
    against: Path | None = None,
    on_progress: Progress = no_progress,
) -> dict[str, Any]:
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

    Returns:
        As JSON, `settings` and `sets` by name. Shares are from 0 to 1; means and medians are None without a value.

        - `tasks`; `targets` that are not blank, each of which counts in values of targets.
        - Mean and median of: `sources` of a task; `input_words` of citing abstract, contexts and sources, without tags;
          `target_words` without citations; `input_tokens`, with tags, and `target_tokens`; `compression`, words of the
          sources ÷ words of the target; `novelty` by n, the share of the n-grams of a target that are in no source.
        - `inputs_over`, `targets_over`: shares of those with more than so many tokens.
        - `near`: how many `pairs` of tasks have nearly the same input, and the `share` of the tasks that are in one;
          `against`: the same of pairs with a task of the other file. None if not asked for.

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
    sets = {name: _summary(_columns(path, count, name, on_progress), over) for name, path in files.items()}
    for name, path in files.items() if near else ():
        sets[name] |= _overlaps(path, against, near or 0, functools.partial(on_progress, f"comparing {name}"))
    settings = {
        "words": Length().settings["words"],
        "novelty": dict(Novelty.settings),
        "tokens": tokenizer or WHITE_SPACE,
        "near": None if near is None else {"cosine_over": near, "of": "TF-IDF of inputs (scikit-learn)"},
        "against": against.name if against else None,
    }
    return {"kind": "citerec-task-statistics", "version": 1, "sets": sets, "settings": settings}


def _columns(path: Path, count: CountTokens, name: str, on_progress: Progress) -> Columns:
    """All columns of a file."""
    columns: Columns = defaultdict(list)
    for part in in_parts(read_tasks(path), _PROGRESS_EVERY):
        describe(part, columns)
        columns["input_words"] += [len(words_of(_text(task))) for task in part]
        columns["input_tokens"] += count([" ".join(input_of(task)) for task in part])
        columns["target_tokens"] += count([target for task in part for target in _targets(task)])
        for task in part:
            texts = [text for source in task.sources for text in (source.title, source.text)]
            for target in _targets(task):
                for n, share in zip(NGRAMS, novelty(target, texts), strict=True):
                    columns[f"novelty{n}"].append(share)
        on_progress(f"describing {name}", len(columns["sources"]), 0)
    return columns


def _summary(columns: Columns, over: Sequence[int]) -> dict[str, Any]:
    """The statistics of a set, as `task_statistics` describes them, without overlaps."""

    def spread(column: str) -> dict[str, float | None]:
        defined = [value for value in columns[column] if not math.isnan(value)]
        if not defined:
            return {"mean": None, "median": None}
        return {"mean": float(np.mean(defined)), "median": float(np.median(defined))}

    def shares(column: str) -> dict[str, float]:
        return {str(limit): float(np.mean(np.array(columns[column] or [0]) > limit)) for limit in over}

    return {
        "tasks": len(columns["sources"]),
        "targets": len(columns["target_words"]),
        **{column: spread(column) for column in _SPREADS},
        "novelty": {str(n): spread(f"novelty{n}") for n in NGRAMS},
        "inputs_over": shares("input_tokens"),
        "targets_over": shares("target_tokens"),
        "near": None,
        "against": None,
    }


def _text(task: TextTask) -> str:
    """All that a task gives to read."""
    return " ".join([task.citing, task.before, *(source.text for source in task.sources), task.after])


def _overlaps(
    path: Path, against: Path | None, near: float, on_progress: Callable[[int, int], None]
) -> dict[str, dict[str, float]]:
    """The overlap of a set with itself, `near`, and that with the other file, `against`."""

    def overlap(pairs: Pairs, rows: Pairs) -> dict[str, float]:
        return {"pairs": len(pairs), "share": len(np.unique(rows)) / size if size else 0.0}

    # Its own words alone: another file must not change how near two tasks of this one are.
    own = tfidf(map(_text, read_tasks(path)))
    size = own.shape[0]
    pairs = near_pairs(own, None, near, on_progress)
    overlaps = {"near": overlap(pairs, pairs.ravel())}
    if against is not None:
        both = tfidf(map(_text, itertools.chain(read_tasks(path), read_tasks(against))))
        pairs = near_pairs(both[:size], both[size:], near, on_progress)
        overlaps["against"] = overlap(pairs, pairs[:, 0])
    return overlaps


def tfidf(texts: Iterable[str]) -> "csr_array":
    """TF-IDF vectors of some texts, of length 1; no rows at all if no text has a word.

    As scikit-learn's `TfidfVectorizer` makes them by default: words of two letters and more, in small letters.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        return csr_array(TfidfVectorizer(dtype=np.float32).fit_transform(texts))
    except ValueError:  # an empty vocabulary
        return csr_array((0, 1), dtype=np.float32)


def near_pairs(
    first: "csr_array",
    second: "csr_array | None",
    cosine: float,
    on_progress: Callable[[int, int], None] = lambda _done, _whole: None,
) -> Pairs:
    """The pairs of rows whose cosine is higher than a threshold, in order; exact, in blocks of rows.

    Args:
        first: Vectors of length 1, or 0; by row.
        second: Others over the same words; None to compare the first with each other, each pair once.
        cosine: The threshold, between 0 and 1.
        on_progress: Called with the rows done and their number.
    """
    size = first.shape[0]
    words = (first if second is None else second).T.tocsr()
    rows = max(1, _CELLS_AT_ONCE // max(1, words.shape[1]))
    blocks = [np.empty((0, 2), np.int64)]
    for begin in range(0, size, rows):
        cosines = (first[begin : begin + rows] @ words).tocoo()
        pairs = np.stack([cosines.row + begin, cosines.col], axis=1)[cosines.data > cosine]
        blocks.append(pairs[pairs[:, 0] < pairs[:, 1]] if second is None else pairs)
        on_progress(min(begin + rows, size), size)
    joined = np.concatenate(blocks)
    return joined[np.lexsort((joined[:, 1], joined[:, 0]))]


def _white_space(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def _tokens_of(name: str) -> CountTokens:
    from citerec.models.loading import load_tokenizer

    tokenizer = load_tokenizer(name)
    return lambda texts: [len(ids) for ids in tokenizer(list(texts), verbose=False)["input_ids"]] if texts else []


def statistics_table(described: Mapping[str, Any]) -> Table:
    """A row for each statistic, a column for each data set; values as in the JSON file."""
    sets, rows = described["sets"], defaultdict[str, dict[str, Cell]](dict)
    for name, of_set in sets.items():
        for label, value, decimals in _labelled(of_set, described["settings"]["against"]):
            rows[label][name] = Cell(value, (("–" if value is None else f"{value:,.{decimals}f}", ""),))
    table = Table([*left(""), *right(*sets)])
    table.rows.extend([label, *map(cells.get, sets)] for label, cells in rows.items())
    return table


def _labelled(of_set: Mapping[str, Any], against: str) -> Iterator[tuple[str, float | None, int]]:
    """Names, values and decimals of the rows of a table; shares × 100."""
    yield from ((name, of_set[name], 0) for name in ("tasks", "targets"))
    for column, kind in itertools.product(_SPREADS, ("mean", "median")):
        yield f"{column.replace('_', ' ')}, {kind}", of_set[column][kind], 1
    for n, spread in of_set["novelty"].items():
        yield f"novelty{n} of targets ×100", None if spread["mean"] is None else 100 * spread["mean"], 2
    for texts in ("inputs", "targets"):
        for limit, share in of_set[f"{texts}_over"].items():
            yield f"{texts} over {int(limit):,} tokens ×100", 100 * share, 3
    for kind, of in (("near", "near to another"), ("against", f"near to one of {against}")):
        if of_set[kind] is not None:
            yield f"pairs {of}", of_set[kind]["pairs"], 0
            yield f"tasks {of} ×100", 100 * of_set[kind]["share"], 2


def run(recipe: Recipe, request: Request) -> Outcome:
    """Reads the data sets of a table with a row for each, and counts."""
    notes: list[str] = []
    outcome = Outcome(notes=notes)
    sets: dict[str, Columns] = {}
    rows = [row for row in recipe.rows if row.name != _TOTAL]
    for row in rows:
        data = next(one for one in recipe.data if one.name == (row.data or row.name))
        request.on_progress(f"reading {row.title}", 0, 0)
        columns, absent = _read(data, request)
        if columns["sources"]:
            sets[row.title] = columns
            if absent:
                notes.append(f"{row.title}: without {', '.join(absent)}; means are over the other files.")
        elif absent:
            published(request.data, data, outcome.missing)
    size = counted(sum(len(columns["sources"]) for columns in sets.values()), "task")
    outcome.sampled = f"{size} of what lies here" if request.sample else ""
    if len(sets) == len(rows) < len(recipe.rows):
        names = set().union(*sets.values())
        total = {name: [value for columns in sets.values() for value in columns[name]] for name in names}
        sets[_TOTAL] = defaultdict(list, total)
    elif request.sample and not sets:
        what, tasks = sample_tasks(recipe, request)
        describe(tasks, sets.setdefault(f"sample: {what}", defaultdict(list)))
        size = outcome.sampled = f"{len(tasks):,} {what}"
    outcome.measured_on = {"": size} if sets else {}
    for (name, columns), measure in itertools.product(sets.items(), recipe.measures):
        if (value := _value(columns, measure.column)) is not None:
            outcome.cells[name, "", measure.name] = Measured(value * measure.scale, len(columns["sources"]))
    return outcome


def _read(data: Data, request: Request) -> tuple[Columns, list[str]]:
    """What the files of a data set hold, with a column for the tasks of each split; and those that are not there."""
    columns: Columns = defaultdict(list)
    absent = [pattern for pattern in data.files if not find(request.data, pattern)]
    for pattern in data.files:
        before = len(columns["sources"])
        describe(itertools.chain.from_iterable(map(read_tasks, find(request.data, pattern))), columns)
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
    return math.fsum(values) if column == "self_references" else math.fsum(values) / len(values)


STATISTICS = Runner("statistics", run)
