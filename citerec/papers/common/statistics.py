"""Statistics of data sets of texts: sizes, lengths, novelty, near inputs; and correlations of measures of texts."""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_array

from citerec.errors import InputError
from citerec.evaluation.results import plain
from citerec.evaluation.statistics import LEVEL, Floats, times_of
from citerec.evaluation.tables import Table, left, right
from citerec.evaluation.texts import citing_paper
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.files.text import counted
from citerec.papers.common.reproduce import Measured, Reproduction, find, metrics_here, published
from citerec.write.anchors import without_anchors
from citerec.write.metrics import NEW_NGRAMS, NGRAMS, PRESETS, WORDS, novelty, open_metrics, self_reference
from citerec.write.task_files import input_of, read_prediction_file, read_tasks
from citerec.write.tasks import Prediction, TextTask, sentences_of, words_of

WHITE_SPACE = "white space"
_TOTAL = "Total"
_PROGRESS_EVERY = 100
_ROWS_AT_ONCE = 1000  # whose cosines with all others are in memory at once
_COUNTED = ["sources", "source_words", "target_words", "compression", "paragraphs", "self_reference"]
_SPREADS = ("sources", "input_words", "target_words", "input_tokens", "target_tokens", "compression")

CountTokens = Callable[[Sequence[str]], list[int]]


def describe(tasks: Iterable[TextTask]) -> pd.DataFrame:
    """What is counted in tasks, and in targets that are not blank: a row each; NaN where a value is not defined.

    Of tasks: `sources`, `source_words`. Of targets: `target_words`, without citations; `compression`, words of the
    sources ÷ words of the target; `paragraphs`, lines that are not blank; `self_reference`, 1 or 0.
    """
    rows: list[dict[str, float]] = []
    for task in tasks:
        in_sources = sum(len(words_of(source.text)) for source in task.sources)
        rows.append({"sources": len(task.sources), "source_words": in_sources})
        for target in _targets(task):
            words, lines = len(words_of(without_anchors(target))), filter(str.strip, target.splitlines())
            row = {"target_words": words, "compression": in_sources / words if in_sources and words else np.nan}
            (refers,) = self_reference(Prediction(task, target, ""))
            rows.append({**row, "paragraphs": len(list(lines)), "self_reference": refers})
    return pd.DataFrame(rows, columns=_COUNTED, dtype=np.float64)


def _targets(task: TextTask) -> list[str]:
    return [target for target in task.targets if target.strip()]


def task_statistics(
    files: Mapping[str, Path],
    *,
    over: Sequence[int],
    near: float,
    tokenizer: str | None = None,
    against: Path | None = None,
    on_progress: Progress = no_progress,
) -> dict[str, Any]:
    """Describes data sets: files of tasks by name.

    Args:
        files: The files; each is read twice, task by task.
        over: Numbers of tokens: the shares of longer inputs and targets are given.
        near: Inputs with a higher cosine of their TF-IDF vectors count as nearly the same; 0 to leave this out. Mao et
            al. (2022, section 4.1) take 0.9.
        tokenizer: A folder or name of a model whose tokens are counted, special ones included; by default what stands
            between white space.
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
    if not 0 <= near < 1:
        raise InputError(f"{near} is no cosine between 0 and 1", "Give one such as --near 0.9.")
    if against is not None and not near:
        raise InputError("nothing says what is nearly the same as a task of the other file", "Give a cosine too.")
    count = _counter(tokenizer)
    sets = {}
    for name, path in files.items():
        parts = []
        for part in in_parts(read_tasks(path), _PROGRESS_EVERY):
            parts.append(_described(part, count))
            on_progress(f"describing {name}", len(parts) * _PROGRESS_EVERY, 0)
        sets[name] = _summary(pd.concat(parts), over)
    for name, path in files.items() if near else ():
        sets[name] |= _overlaps(path, against, near, functools.partial(on_progress, f"comparing {name}"))
    settings = {
        "words": WORDS,
        "novelty": NEW_NGRAMS,
        "tokens": tokenizer or WHITE_SPACE,
        "near": {"cosine_over": near, "of": "TF-IDF of inputs (scikit-learn)"} if near else None,
        "against": against.name if against else None,
    }
    return plain({"kind": "citerec-task-statistics", "version": 1, "sets": sets, "settings": settings})


def _described(tasks: Sequence[TextTask], count: CountTokens) -> pd.DataFrame:
    """The columns of `describe`, of the input, of tokens, and of novelty."""
    targets = [Prediction(task, target, "") for task in tasks for target in _targets(task)]
    shares = list(map(novelty, targets))
    more = {
        "input_words": [len(words_of(_text(task))) for task in tasks],
        "input_tokens": count([" ".join(input_of(task)) for task in tasks]),
        "target_tokens": count([target.text for target in targets]),
        **{f"novelty{n}": [one[at] for one in shares] for at, n in enumerate(NGRAMS)},
    }
    return pd.concat([describe(tasks), *(pd.DataFrame({name: more[name]}, dtype=np.float64) for name in more)])


def _summary(columns: pd.DataFrame, over: Sequence[int]) -> dict[str, Any]:
    """The statistics of a set, as `task_statistics` describes them, without overlaps."""
    spreads = columns.agg(["mean", "median"]).to_dict()

    def shares(column: str) -> dict[str, float]:
        return {str(limit): float((columns[column].dropna() > limit).mean()) for limit in over}

    return {
        "tasks": int(columns["sources"].count()),
        "targets": int(columns["target_words"].count()),
        **{column: spreads[column] for column in _SPREADS},
        "novelty": {str(n): spreads[f"novelty{n}"] for n in NGRAMS},
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
    # Its own words alone: another file must not change how near two tasks of this one are.
    own = tfidf(map(_text, read_tasks(path)))
    size = own.shape[0]
    pairs = {"near": near_pairs(own, None, near, on_progress)}
    rows = {"near": pairs["near"].ravel()}
    if against is not None:
        both = tfidf(map(_text, itertools.chain(read_tasks(path), read_tasks(against))))
        pairs["against"] = near_pairs(both[:size], both[size:], near, on_progress)
        rows["against"] = pairs["against"][:, 0]
    return {name: {"pairs": len(pairs[name]), "share": len(np.unique(rows[name])) / (size or 1)} for name in pairs}


def tfidf(texts: Iterable[str]) -> csr_array:
    """TF-IDF vectors of some texts, of length 1; no rows at all if no text has a word.

    As scikit-learn's `TfidfVectorizer` makes them by default: words of two letters and more, in small letters.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        return csr_array(TfidfVectorizer(dtype=np.float32).fit_transform(texts))
    except ValueError:  # an empty vocabulary
        return csr_array((0, 1), dtype=np.float32)


def near_pairs(
    first: csr_array, second: csr_array | None, cosine: float, on_progress: Callable[[int, int], None]
) -> npt.NDArray[np.int64]:
    """The pairs of rows whose cosine is higher than a threshold, pairs × 2: one of the first texts, one of the second.

    Args:
        first: Vectors of length 1, or 0; by row.
        second: Others over the same words; None to compare the first with each other, each pair once.
        cosine: The threshold, between 0 and 1.
        on_progress: Called with the rows done and their number.
    """
    words, size = (first if second is None else second).T.tocsr(), first.shape[0]
    blocks = [np.empty((0, 2), np.int64)]
    for begin in range(0, size, _ROWS_AT_ONCE):
        on_progress(begin, size)
        cosines = (first[begin : begin + _ROWS_AT_ONCE] @ words).tocoo()
        pairs = np.stack([cosines.row + begin, cosines.col], axis=1)[cosines.data > cosine]
        blocks.append(pairs if second is not None else pairs[pairs[:, 0] < pairs[:, 1]])
    return np.concatenate(blocks)


def _counter(name: str | None) -> CountTokens:
    """Counts the tokens of a model; without one what stands between white space."""
    if name is None:
        return lambda texts: [len(text.split()) for text in texts]
    from citerec.models.loading import load_tokenizer

    tokenizer = load_tokenizer(name)
    return lambda texts: [len(ids) for ids in tokenizer(list(texts), verbose=False)["input_ids"]] if texts else []


def statistics_table(described: Mapping[str, Any]) -> Table:
    """A row for each statistic, a column for each data set; values as in the JSON file."""
    sets = described["sets"]
    statistics = pd.json_normalize(list(sets.values()), sep=" ").T.astype(object)
    table = Table([*left(""), *right(*sets, format=",.7g")])
    table.rows.extend([name, *values] for name, *values in statistics.where(statistics.notna(), None).itertuples())
    return table


def run(table: Reproduction) -> None:
    """Reads the data sets of a table with a row for each, and counts."""
    recipe = table.recipe
    sets: dict[str, pd.DataFrame] = {}
    rows = [row for row in recipe.rows if row.name != _TOTAL]
    for row in rows:
        data = recipe.data_set(row.data or row.name)
        table.on_progress(f"reading {row.title}", 0, 0)
        absent = [pattern for pattern in data.files if not find(table.data, pattern)]
        if read := [(find(table.data, pattern), pattern) for pattern in data.files if pattern not in absent]:
            sets[row.title] = pd.concat(_read(paths, pattern) for paths, pattern in read)
            if absent:
                table.notes.append(f"{row.title}: without {', '.join(absent)}; means are over the other files.")
        else:
            published(table.data, data, table.missing)
    size = counted(sum(int(columns["sources"].count()) for columns in sets.values()), "task")
    if len(sets) == len(rows) < len(recipe.rows):
        sets[_TOTAL] = pd.concat(sets.values())
    elif table.sample and not sets:
        columns = describe(table.sample_tasks()).assign(split=0)
        size = table.sampled
        sets[f"sample: {size.partition(' ')[2]}"] = columns
    elif table.sample:
        table.sampled = f"{size} of what lies here"
    table.measured_on = {"": size} if sets else {}
    for (name, columns), measure in itertools.product(sets.items(), recipe.measures):
        if (value := _value(columns, measure.column)) is not None:
            table.cells[name, "", measure.name] = Measured(value * measure.scale, int(columns["sources"].count()))


def _read(paths: Sequence[Path], pattern: str) -> pd.DataFrame:
    """What some files of a data set hold; `split` is 1 for training, 2 for validation and 3 for test."""
    split = 1 if "train" in pattern.lower() else 3 if "test" in pattern.lower() else 2
    return pd.concat(describe(read_tasks(path)).assign(split=split) for path in paths)


def _value(columns: pd.DataFrame, column: str) -> float | None:
    """A column of a table: the number of tasks or those of a split, a sum, or a mean; None if it is empty."""
    name, _, split = column.partition("_")
    if name == "samples":
        of_split = columns[columns["split"] == int(split)] if split else columns
        return int(of_split["sources"].count()) or None
    if column == "self_references":
        return float(columns["self_reference"].sum())
    value = columns[column].mean()
    return None if np.isnan(value) else float(value)


COEFFICIENTS = ("pearson", "spearman", "kendall")

_LEAST = 3  # points: the correlation of two is always 1 or -1
_DECIMALS = 12  # what differs after them differs by rounding


def bootstrapped(samples: Sequence[Floats]) -> dict[str, Any]:
    """Correlations of some points, with the 95 % intervals of their bootstrap samples.

    Args:
        samples: The points, then each bootstrap sample of them: 2 × points.

    Returns:
        `n` points; by coefficient `values`, None for fewer than three points or where `coefficients` has none; `ci`.
    """
    n = samples[0].shape[1]
    table = pd.DataFrame([coefficients(*sample) for sample in (samples if n >= _LEAST else ())], columns=COEFFICIENTS)
    if table[:1].dropna().empty:
        return {"n": n, "values": dict.fromkeys(COEFFICIENTS), "ci": dict.fromkeys(COEFFICIENTS)}
    bounds = table[1:].dropna().quantile([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    ci = {name: bounds[name].tolist() if len(bounds.dropna()) else None for name in COEFFICIENTS}
    return {"n": n, "values": table.iloc[0].to_dict(), "ci": ci}


def coefficients(first: Floats, second: Floats) -> list[float]:
    """Pearson's r, Spearman's rho and Kendall's tau-b (by scipy) of some points; NaN if one of both is constant."""
    pair = pd.DataFrame(np.round([first, second], _DECIMALS).T)
    return [float(pair.corr(name).iloc[0, 1]) for name in COEFFICIENTS]


RATINGS = "ratings"
"""The field of a prediction that holds its ratings: {"coarse": 0.8, "fine": 0.65}."""
_BLOCK = 5  # sentences: Docekal et al. 2024, section 4.1.1


def correlate_metrics(table: Reproduction) -> None:
    """Correlates metrics, a row each, with the ratings of predictions, a column each: Pearson's r over texts.

    It is figure 4 of OARelatedWork.
    """
    recipe, (data,) = table.recipe, table.recipe.data
    paths = published(table.data, data, table.missing)
    read = (one for path in paths for one in read_prediction_file(path))
    if not (rated := [_in_blocks(one) for one in read if isinstance(one.task.extra.get(RATINGS), dict)]):
        return
    metrics, _ = open_metrics(**PRESETS[recipe.preset].arguments(names=metrics_here(recipe, table.missing)))
    scores = {
        (metric.name, column.name): values
        for metric in metrics
        for column, values in zip(metric.columns, metric.scores(rated, table.on_progress).T, strict=True)
    }
    times = times_of([citing_paper(one.task) or one.task.task_id for one in rated])
    for row, measure in itertools.product(recipe.rows, recipe.measures):
        if (measured := scores.get((row.metric, row.column))) is not None:
            people = [one.task.extra[RATINGS].get(measure.column, np.nan) for one in rated]
            pair = np.stack([measured, np.array(people, np.float64)])
            has_both = ~np.isnan(pair).any(axis=0)
            one = bootstrapped([pair[:, has_both].repeat(sample, axis=1) for sample in times[:, has_both]])
            if (value := one["values"]["pearson"]) is not None:
                table.cells[row.title, "", measure.name] = Measured(value, one["n"], one["ci"]["pearson"])
    table.settings = {metric.name: metric.settings for metric in metrics}
    table.measured_on[""] = counted(len(rated), "text")


def _in_blocks(prediction: Prediction) -> Prediction:
    """A prediction and its targets with a line for five sentences each, as blocks for BlockMatch."""
    targets = tuple(map(_lines, prediction.task.targets))
    return replace(prediction, task=replace(prediction.task, targets=targets), text=_lines(prediction.text))


def _lines(text: str) -> str:
    return "\n".join(map(" ".join, in_parts(sentences_of(text), _BLOCK)))
