"""TREC runs: `context Q0 paper rank score tag`, one line a hit."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from citerec.corpus.json_lines import raw_lines
from citerec.errors import InputError
from citerec.groundwork.writing import write_failures, writing_file
from citerec.retrieve.base import Candidate

COLUMNS = ("context", "Q0", "paper", "rank", "score", "tag")
FORM = "A run has lines of six columns: context Q0 paper rank score tag."

_LARGEST = 3e38
"""Scores beyond it have no place in single precision; a little below its end, so that there are steps left."""


def write_run(path: Path, answers: Iterable[tuple[str, Sequence[Candidate]]], tag: str) -> tuple[int, int]:
    """Writes a run file, whole or not at all.

    trec_eval ignores ranks: it orders by score alone, in single precision, and breaks ties by its own rule. Hence each
    written score is at least one single-precision step below the one before: every reader sees this ranking.

    Args:
        path: Where to.
        answers: Context id and candidates, best first, of each context.
        tag: Name of the run.

    Returns:
        How many contexts there were, and how many of them without a candidate.

    Raises:
        BuildError: The file cannot be written.
        InputError: The tag is empty or has white space.
    """
    import numpy as np

    if any(character.isspace() for character in tag) or not tag:
        raise InputError(f"the tag {tag!r} is empty or has white space", "A run file has one word for it: --tag my-run")
    contexts = empty = 0
    with (
        write_failures(path, "Give another path, or make room."),
        writing_file(path) as partial,
        partial.open("w", encoding="utf-8") as file,
    ):
        for context_id, candidates in answers:
            contexts += 1
            empty += not candidates
            above = np.float32(np.inf)
            for rank, candidate in enumerate(candidates, 1):
                score = np.float32(np.clip(candidate.score, -_LARGEST, _LARGEST))
                above = min(score, np.nextafter(above, np.float32(-np.inf)))
                file.write(f"{context_id} Q0 {candidate.paper_id} {rank} {above!s} {tag}\n")
    return contexts, empty


def read_lines(path: Path) -> Iterator[tuple[int, str, str, float]]:
    """The lines of a run file, plain or gzip: line number, context id, paper id, score.

    Raises:
        SourceError: The file cannot be read.
        InputError: A line is no line of a run; the message names it.
    """
    for number, raw, _ in raw_lines(path):
        where = f"{path}, line {number}"
        try:
            columns = raw.decode().split()
        except UnicodeDecodeError:
            raise InputError(f"{where}: not UTF-8", "Save the run as UTF-8.") from None
        if len(columns) != len(COLUMNS):
            raise InputError(f"{where}: {len(columns)} columns where {len(COLUMNS)} should be", FORM)
        context_id, _, paper_id, _, text, _ = columns
        try:
            score = float(text)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise InputError(f"{where}: the score {text!r} is no number", FORM)
        yield number, context_id, paper_id, score
