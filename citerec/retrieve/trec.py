"""TREC runs: `context Q0 paper rank score tag`, one line a hit."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from citerec.errors import InputError
from citerec.groundwork.writing import write_failures, writing_file
from citerec.retrieve.base import Candidate

_LARGEST = 3e38
"""Scores beyond it have no place in single precision; a little below its end, so that there are steps left."""


def write_run(path: Path, answers: Iterable[tuple[str, Sequence[Candidate]]], tag: str) -> tuple[int, int]:
    """Writes a run file, whole or not at all; returns the number of contexts, and of those without a candidate.

    trec_eval ignores ranks: it orders by score alone, in single precision, and breaks ties by its own rule. Hence each
    written score is at least one single-precision step below the one before: every reader sees this ranking.

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
