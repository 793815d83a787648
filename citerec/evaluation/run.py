"""Runs in columns: read from TREC files, or collected from a system's answers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.corpus.json_lines import is_gzip, raw_lines
from citerec.errors import InputError, SourceError

Years = Mapping[str, int | None]
YearsOf = Callable[[Iterable[str]], Years]
"""Gives the years of those papers of the pool that are among some ids."""

_COLUMNS = ("context", "Q0", "paper", "rank", "score", "tag")
_FORM = "A run has lines of six columns: context Q0 paper rank score tag."


@dataclass(frozen=True, slots=True)
class Run:
    """Hits of many contexts: row by row a context, a paper, a score.

    Attributes:
        contexts: Number of the context.
        papers: Number of the paper in `paper_ids`.
        scores: Higher is better.
        paper_ids: Every paper that occurs, once.
        years: Year of each of them; 0 where it is unknown.
    """

    contexts: npt.NDArray[np.int32]
    papers: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]
    paper_ids: tuple[str, ...]
    years: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.contexts)

    def only(self, rows: npt.NDArray[Any]) -> "Run":
        """The same run with some rows only: a mask, or row numbers in the order wanted."""
        return Run(self.contexts[rows], self.papers[rows], self.scores[rows], self.paper_ids, self.years)


def collect_run(answers: Iterable[Sequence[tuple[str, float]]], years_of: YearsOf, name: str) -> Run:
    """The run of a system's answers.

    Args:
        answers: Paper ids with their scores, for each context in order.
        years_of: Knows the papers of the pool.
        name: What to call the system in an error.

    Raises:
        InputError: A paper is not in the pool, comes twice in an answer, or its score is no number.
    """
    numbers: dict[str, int] = {}
    contexts, papers, scores = [], [], []
    for number, answer in enumerate(answers):
        found = [numbers.setdefault(paper_id, len(numbers)) for paper_id, _ in answer]
        if len(set(found)) < len(found):
            raise InputError(
                f"{name} gives a paper twice for one context", "Give each paper once, with its best score."
            )
        contexts.append(np.full(len(found), number, np.int32))
        papers.append(np.array(found, np.int32))
        scores.append(np.array([score for _, score in answer], np.float64))
    ids = tuple(numbers)
    years = years_of(ids)
    if len(years) < len(ids):
        unknown = next(paper_id for paper_id in ids if paper_id not in years)
        raise InputError(f"{name} gives the paper {unknown!r}, which is not in the index", "Give ids of the index.")
    nothing = np.empty(0, np.int32)
    all_scores = np.concatenate([*scores, nothing.astype(np.float64)])
    if not np.isfinite(all_scores).all():
        raise InputError(f"{name} gives a score that is no number", "Give finite scores.")
    return Run(
        np.concatenate([*contexts, nothing]),
        np.concatenate([*papers, nothing]),
        all_scores,
        ids,
        _year_column(ids, years),
    )


def read_run(path: Path, numbers: Mapping[str, int], years_of: YearsOf) -> Run:
    """Reads a TREC run, plain or gzip. Rows of contexts that are not asked (number -1) are left out.

    Args:
        path: The file.
        numbers: Number of each context by its id.
        years_of: Knows the papers of the pool.

    Raises:
        SourceError: The file cannot be read, or is empty.
        InputError: A line has not six columns, an unknown context or paper, a score that is no number, or repeats a
            pair of context and paper; the message names the line.
    """
    # The quick reader takes regular files only. Whatever it does not like is left to the slow one, which accepts any
    # white space and names the line where something is wrong: 8 times slower, so errors cost seconds, not the usual.
    table = _read_quickly(path)
    run = _from_table(table, numbers, years_of) if table is not None else None
    if run is None:
        run = _read_slowly(path, numbers, years_of)
    if not len(run.paper_ids):
        raise SourceError(f"{path} is empty", _FORM)
    return run.only(run.contexts >= 0)


def _read_quickly(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    text = pa.dictionary(pa.int32(), pa.string())
    try:
        with path.open("rb") as file:
            separator = "\t" if b"\t" in file.readline(4096) else " "
        with pa.input_stream(str(path), compression="gzip" if is_gzip(path) else None) as stream:
            return csv.read_csv(
                stream,
                read_options=csv.ReadOptions(column_names=_COLUMNS, block_size=1 << 22),
                parse_options=csv.ParseOptions(delimiter=separator, quote_char=False),
                convert_options=csv.ConvertOptions(
                    include_columns=["context", "paper", "score"],
                    column_types={"context": text, "paper": text, "score": pa.float64()},
                    null_values=[],
                ),
            )
    except (pa.ArrowInvalid, OSError):
        return None


def _from_table(table: Any, numbers: Mapping[str, int], years_of: YearsOf) -> Run | None:
    """The run of a table, or None where anything is wrong with it."""
    table = table.combine_chunks().unify_dictionaries()
    if not table.num_rows:
        return None
    context_names, context_codes = _dictionary(table["context"])
    paper_ids, papers = _dictionary(table["paper"])
    scores = table["score"].to_numpy()
    years = years_of(paper_ids)
    if len(years) < len(paper_ids) or not all(name in numbers for name in context_names):
        return None
    pairs = context_codes.astype(np.int64) * len(paper_ids) + papers
    pairs.sort()
    if not np.isfinite(scores).all() or (pairs[1:] == pairs[:-1]).any():
        return None
    contexts = np.array([numbers[name] for name in context_names], np.int32)[context_codes]
    return Run(contexts, papers, scores, tuple(paper_ids), _year_column(paper_ids, years))


def _dictionary(column: Any) -> tuple[list[str], npt.NDArray[np.int32]]:
    encoded = column.combine_chunks()
    encoded = encoded.chunk(0) if hasattr(encoded, "chunk") else encoded
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def _read_slowly(path: Path, numbers: Mapping[str, int], years_of: YearsOf) -> Run:
    rows: dict[tuple[str, str], tuple[int, float]] = {}
    for line_number, raw, _ in raw_lines(path):
        where = f"{path}, line {line_number}"
        try:
            columns = raw.decode().split()
        except UnicodeDecodeError:
            raise InputError(f"{where}: not UTF-8", "Save the run as UTF-8.") from None
        if len(columns) != len(_COLUMNS):
            raise InputError(f"{where}: {len(columns)} columns where {len(_COLUMNS)} should be", _FORM)
        context, _, paper, _, score_text, _ = columns
        try:
            score = float(score_text)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise InputError(f"{where}: the score {score_text!r} is no number", _FORM)
        if context not in numbers:
            raise InputError(f"{where}: there is no context {context!r}", "Score the run on the contexts it answers.")
        first, _ = rows.setdefault((context, paper), (line_number, score))
        if first != line_number:
            raise InputError(
                f"{where}: context {context} and paper {paper} stand in line {first} already", "Leave one of them out."
            )
    ids = tuple(dict.fromkeys(paper for _, paper in rows))
    years = years_of(ids)
    if len(years) < len(ids):
        line_number, paper = next((line, paper) for (_, paper), (line, _) in rows.items() if paper not in years)
        raise InputError(
            f"{path}, line {line_number}: the paper {paper!r} is not in the index",
            "Score the run against the index that it was made from: --index",
        )
    codes = {paper_id: code for code, paper_id in enumerate(ids)}
    return Run(
        np.array([numbers[context] for context, _ in rows], np.int32),
        np.array([codes[paper] for _, paper in rows], np.int32),
        np.array([score for _, score in rows.values()], np.float64),
        ids,
        _year_column(ids, years),
    )


def _year_column(paper_ids: Sequence[str], years: Years) -> npt.NDArray[np.int32]:
    return np.array([years[paper_id] or 0 for paper_id in paper_ids], np.int32)
