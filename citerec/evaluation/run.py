"""Runs in columns: read from TREC files, or collected from a system's answers."""

import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.corpus.json_lines import is_gzip
from citerec.errors import InputError, SourceError
from citerec.retrieve.run import COLUMNS, FORM, read_lines

Years = Mapping[str, int | None]
YearsOf = Callable[[Iterable[str]], Years]
"""Gives the years of the papers with these ids that are in the pool."""


@dataclass(frozen=True, slots=True)
class PooledRun:
    """A run over the topics of an evaluation, with the years of its papers; one row for each hit.

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

    @classmethod
    def of(cls, contexts: Any, papers: Any, scores: Any, paper_ids: Sequence[str], years: Years) -> Self:
        """A run from any sequences of numbers."""
        of_papers = np.array([years[paper_id] or 0 for paper_id in paper_ids], np.int32)
        columns = np.asarray(contexts, np.int32), np.asarray(papers, np.int32), np.asarray(scores, np.float64)
        return cls(*columns, tuple(paper_ids), of_papers)

    def __len__(self) -> int:
        return len(self.contexts)

    def only(self, rows: npt.NDArray[Any]) -> "PooledRun":
        """The same run with some rows only: a mask, or row numbers in the order wanted."""
        return PooledRun(self.contexts[rows], self.papers[rows], self.scores[rows], self.paper_ids, self.years)


def collect_run(answers: Iterable[Sequence[tuple[str, float]]], years_of: YearsOf, name: str) -> PooledRun:
    """The run of a system's answers: paper ids with their scores, for each context in order.

    Raises:
        InputError: A paper is not in the pool, comes twice in an answer, or its score is not a number.
    """
    numbers: dict[str, int] = {}
    sizes: list[int] = []
    papers, scores = array.array("i"), array.array("d")
    for answer in answers:
        found = [numbers.setdefault(paper_id, len(numbers)) for paper_id, _ in answer]
        if len(set(found)) < len(found):
            raise InputError(
                f"{name} gives a paper twice for one context", "Give each paper once, with its best score."
            )
        sizes.append(len(found))
        papers.extend(found)
        scores.extend(score for _, score in answer)
    years = years_of(numbers)
    if unknown := [paper_id for paper_id in numbers if paper_id not in years]:
        raise InputError(f"{name} gives the paper {unknown[0]!r}, which is not in the index", "Give ids of the index.")
    if not np.isfinite(scores).all():
        raise InputError(f"{name} gives a score that is not a number", "Give finite scores.")
    return PooledRun.of(np.repeat(np.arange(len(sizes)), sizes), papers, scores, tuple(numbers), years)


def read_run(path: Path, numbers: Mapping[str, int], years_of: YearsOf) -> PooledRun:
    """Reads a TREC run, plain or gzip. Rows of contexts that are not evaluated (number -1) are left out.

    Raises:
        SourceError: The file cannot be read, or is empty.
        InputError: A line does not have six columns, has an unknown context or paper, has a score that is not a number,
            or repeats a pair of context and paper; the message names the line.
    """
    # The quick reader takes regular files only. All others go to the slow one, which accepts any white space and names
    # the faulty line, but takes 8 times as long.
    run = _read_quickly(path, numbers, years_of)
    if run is None:
        run = _read_slowly(path, numbers, years_of)
    if not run.paper_ids:
        raise SourceError(f"{path} is empty", FORM)
    return run.only(run.contexts >= 0)


def _read_quickly(path: Path, numbers: Mapping[str, int], years_of: YearsOf) -> PooledRun | None:
    import pyarrow as pa
    from pyarrow import csv

    text = pa.dictionary(pa.int32(), pa.string())
    try:
        with path.open("rb") as file:
            separator = "\t" if b"\t" in file.readline(4096) else " "
        with pa.input_stream(str(path), compression="gzip" if is_gzip(path) else None) as stream:
            table = csv.read_csv(
                stream,
                read_options=csv.ReadOptions(column_names=COLUMNS, block_size=1 << 22),
                parse_options=csv.ParseOptions(delimiter=separator, quote_char=False),
                convert_options=csv.ConvertOptions(
                    include_columns=["context", "paper", "score"],
                    column_types={"context": text, "paper": text, "score": pa.float64()},
                    null_values=[],
                ),
            )
    except (pa.ArrowInvalid, OSError):
        return None
    if not table.num_rows:
        return None
    contexts, papers, scores = (column.chunk(0) for column in table.combine_chunks().unify_dictionaries().columns)
    names, paper_ids = contexts.dictionary.to_pylist(), papers.dictionary.to_pylist()
    years = years_of(paper_ids)
    pairs = contexts.indices.to_numpy().astype(np.int64) * len(paper_ids) + papers.indices.to_numpy()
    pairs.sort()
    known = len(years) == len(paper_ids) and all(name in numbers for name in names)
    if not known or not np.isfinite(scores).all() or (pairs[1:] == pairs[:-1]).any():
        return None
    asked = np.array([numbers[name] for name in names], np.int32)[contexts.indices]
    return PooledRun.of(asked, papers.indices, scores, paper_ids, years)


def _read_slowly(path: Path, numbers: Mapping[str, int], years_of: YearsOf) -> PooledRun:
    lines: dict[tuple[str, str], int] = {}
    scores = []
    for line, context, paper, score in read_lines(path):
        where = f"{path}, line {line}"
        if context not in numbers:
            raise InputError(f"{where}: there is no context {context!r}", "Score the run on the contexts it answers.")
        if (first := lines.setdefault((context, paper), line)) != line:
            raise InputError(
                f"{where}: context {context} and paper {paper} are already in line {first}", "Remove one of the lines."
            )
        scores.append(score)
    codes = {paper: code for code, paper in enumerate(dict.fromkeys(paper for _, paper in lines))}
    years = years_of(codes)
    if missing := next(((line, paper) for (_, paper), line in lines.items() if paper not in years), None):
        raise InputError(
            f"{path}, line {missing[0]}: the paper {missing[1]!r} is not in the index",
            "Score the run against the index that it was made from: --index",
        )
    contexts, papers = [numbers[context] for context, _ in lines], [codes[paper] for _, paper in lines]
    return PooledRun.of(contexts, papers, scores, tuple(codes), years)
