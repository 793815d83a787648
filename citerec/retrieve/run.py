"""A run: ranked papers of many contexts, and its conversions (TREC, ranx, pandas, dictionaries)."""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from citerec.contexts.topic import LeakRules
from citerec.corpus.reading import raw_lines
from citerec.errors import InputError, SourceError
from citerec.files.writing import write_failures, writing_file
from citerec.records import Context

if TYPE_CHECKING:
    import pandas as pd
    import ranx

FORM = "A run has lines of six columns: context Q0 paper rank score tag."
_COLUMNS = ("context_id", "paper_id", "score")
_LARGEST = 3e38
"""Limit of written scores: a little below the largest single-precision number, so that there are steps left."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options for searching many topics.

    Attributes:
        rules: The leak rules.
        explain: Whether candidates explain their scores.
        latencies: A list to which the seconds of each search are appended, in no particular order.
    """

    rules: LeakRules = field(default_factory=LeakRules)
    explain: bool = False
    latencies: list[float] | None = None


class Run(Mapping[str, Mapping[str, float]]):
    """Scores by context id and paper id, best first; ties are ordered by paper id. The name is one word.

    A mapping, so `evaluate` takes it as a system. `Recommender.search_many` makes one.

    Raises:
        InputError: A context occurs twice, or a paper occurs twice in one, or a score is not a number.
    """

    def __init__(self, answers: Iterable[tuple[str, Iterable[tuple[str, float]]]], name: str = "run") -> None:
        self.name = name
        self._answers: dict[str, dict[str, float]] = {}
        self._path: Path | None = None
        for context_id, papers in answers:
            if context_id in self._answers:
                raise InputError(f"the run answers {context_id!r} twice", "Give each context a unique id.")
            scores: dict[str, float] = {}
            for paper_id, score in papers:
                if str(paper_id) in scores:
                    raise InputError(f"the run has {paper_id!r} twice for {context_id!r}", "Give each paper once.")
                number = _number(score)
                if math.isnan(number):
                    fault = f"the run has the score {score!r} for {context_id!r}"
                    raise InputError(fault, "Scores are numbers; higher is better.")
                scores[str(paper_id)] = number
            ordered = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0].encode()))
            self._answers[str(context_id)] = dict(ordered)

    def __getitem__(self, context_id: str) -> Mapping[str, float]:
        return self._answers[context_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        hits = sum(map(len, self._answers.values()))
        return f"<Run {self.name}: {len(self):,} contexts, {hits:,} hits>"

    def top(self, context_id: str, k: int = 10) -> list[str]:
        """Ids of the first k papers of a context."""
        return list(self._answers[context_id])[:k]

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Scores by context id and paper id, best first."""
        return {context_id: dict(papers) for context_id, papers in self._answers.items()}

    @classmethod
    def from_dict(cls, scores: Mapping[str, Mapping[str, float]], name: str = "run") -> Self:
        """The run of {context id: {paper id: score}}."""
        return cls(((context_id, papers.items()) for context_id, papers in scores.items()), name)

    def to_frame(self) -> "pd.DataFrame":
        """One row per hit: `context_id`, `paper_id`, `rank` from 1, `score`."""
        import pandas as pd

        rows = [
            (context_id, paper_id, rank, score)
            for context_id, papers in self._answers.items()
            for rank, (paper_id, score) in enumerate(papers.items(), 1)
        ]
        return pd.DataFrame(rows, columns=["context_id", "paper_id", "rank", "score"])

    @classmethod
    def from_frame(cls, frame: "pd.DataFrame", name: str = "run") -> Self:
        """The run of a frame with the columns `context_id`, `paper_id` and `score`; other columns are ignored.

        Raises:
            InputError: A column is missing.
        """
        if missing := [column for column in _COLUMNS if column not in frame.columns]:
            raise InputError(f"the frame has no column {missing[0]!r}", f"A run has the columns {', '.join(_COLUMNS)}.")
        groups = frame.astype({"context_id": str, "paper_id": str}).groupby("context_id", sort=False)
        return cls(((key, zip(rows["paper_id"], rows["score"], strict=True)) for key, rows in groups), name)

    def to_ranx(self) -> "ranx.Run":
        """The run as a `ranx.Run`. ranx does not accept a context without a hit: those are left out."""
        import ranx

        return ranx.Run({context_id: dict(papers) for context_id, papers in self.items() if papers}, name=self.name)

    @classmethod
    def from_ranx(cls, run: "ranx.Run") -> Self:
        """The run of a `ranx.Run`."""
        return cls.from_dict(run.to_dict(), run.name or "run")

    def write_trec(self, path: str | Path) -> None:
        """Writes a TREC run file, whole or not at all.

        Raises:
            BuildError: The file cannot be written.
        """
        lists = ((context_id, list(papers.items())) for context_id, papers in self._answers.items())
        write_run(Path(path), lists, self.name)

    @classmethod
    def from_trec(cls, path: str | Path, name: str | None = None) -> Self:
        """Reads a TREC run file, plain or gzip.

        Raises:
            SourceError: The file cannot be read, or is empty.
            InputError: A line is not a line of a run, or repeats another one; the message names it.
        """
        path = Path(path)
        answers: dict[str, dict[str, float]] = {}
        for line, context_id, paper_id, score in read_lines(path):
            papers = answers.setdefault(context_id, {})
            if paper_id in papers:
                first = next(one[0] for one in read_lines(path) if one[1:3] == (context_id, paper_id))
                raise InputError(
                    f"{path}, line {line}: context {context_id} and paper {paper_id} are already in line {first}",
                    "Remove one of the lines.",
                )
            papers[sys.intern(paper_id)] = score
        if not answers:
            raise SourceError(f"{path} is empty", FORM)
        run = cls.from_dict(answers, name or path.stem)
        run._path = path
        return run

    @classmethod
    def from_function(
        cls,
        function: Callable[[Context, int], Iterable[tuple[str, float]]],
        contexts: Iterable[Context],
        k: int = 100,
        name: str = "run",
    ) -> Self:
        """The run of what a function of a context and k answers: pairs of paper id and score.

        It is told nothing of the answer: no cited ids, no labels, not the marker as it was written.
        """
        return cls(((context.context_id, function(without_answer(context), k)) for context in contexts), name)

    def place_of(self, context_id: str, paper_id: str | None = None) -> str:
        """Where a context, or a paper in its answer, stands first: file and line, or the run's name without a file."""
        if self._path is None:
            return self.name
        wanted = (context_id, paper_id)
        lines = (one for one in read_lines(self._path) if wanted in ((one[1], one[2]), (one[1], None)))
        return f"{self._path}, line {next(lines)[0]}"


def without_answer(context: Context) -> Context:
    """A context without what tells which paper is cited: ids, classes of the cited paper, the marker as written."""
    return replace(context, cited_ids=(), labels={}, marker=None)


def _number(score: Any) -> float:
    """A score as a number; NaN if it is none."""
    try:
        return float(score)
    except (TypeError, ValueError):
        return math.nan


def run_lines(answers: Iterable[tuple[str, Sequence[tuple[str, float]]]], tag: str) -> Iterator[str]:
    """The lines of a run file, those of a context together; an empty text for a context without a paper.

    Each answer is the id of a context and the papers with their scores, best first.

    trec_eval ignores ranks: it orders by score alone, in single precision, and breaks ties by its own rule. So each
    written score is at least one single-precision step below the one before, and every reader sees this ranking.

    Raises:
        InputError: The tag is empty or has white space.
    """
    if any(character.isspace() for character in tag) or not tag:
        raise InputError(f"the tag {tag!r} is empty or has white space", "A run file has one word for it: --tag my-run")
    for context_id, papers in answers:
        lines, above = [], np.float32(np.inf)
        for rank, (paper_id, value) in enumerate(papers, 1):
            score = np.float32(np.clip(value, -_LARGEST, _LARGEST))
            above = min(score, np.nextafter(above, np.float32(-np.inf)))
            lines.append(f"{context_id} Q0 {paper_id} {rank} {above!s} {tag}\n")
        yield "".join(lines)


def write_run(path: Path, answers: Iterable[tuple[str, Sequence[tuple[str, float]]]], tag: str) -> None:
    """Writes a run file, whole or not at all.

    Raises:
        BuildError: The file cannot be written.
        InputError: The tag is empty or has white space.
    """
    with (
        write_failures(path, "Give another path, or make room."),
        writing_file(path) as partial,
        partial.open("w", encoding="utf-8") as file,
    ):
        file.writelines(run_lines(answers, tag))


def read_lines(path: Path) -> Iterator[tuple[int, str, str, float]]:
    """The lines of a run file, plain or gzip: line number, context id, paper id, score.

    Raises:
        SourceError: The file cannot be read.
        InputError: A line is not a line of a run; the message names it.
    """
    for number, raw, _ in raw_lines(path):
        where = f"{path}, line {number}"
        try:
            columns = raw.decode().split()
        except UnicodeDecodeError:
            raise InputError(f"{where}: not UTF-8", "Save the run as UTF-8.") from None
        if len(columns) != 6:
            raise InputError(f"{where}: {len(columns)} columns where 6 should be", FORM)
        context_id, _, paper_id, _, text, _ = columns
        if not math.isfinite(score := _number(text)):
            raise InputError(f"{where}: the score {text!r} is not a number", FORM)
        yield number, context_id, paper_id, score
