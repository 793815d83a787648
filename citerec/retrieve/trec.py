"""TREC runs: `context Q0 paper rank score tag`, one line a hit."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from citerec.errors import BuildError
from citerec.retrieve.protocol import Candidate


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
    """
    import numpy as np

    contexts = empty = 0
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8") as file:
            for context_id, candidates in answers:
                contexts += 1
                empty += not candidates
                above = np.float32(np.inf)
                for rank, candidate in enumerate(candidates, 1):
                    above = min(np.float32(candidate.score), np.nextafter(above, np.float32(-np.inf)))
                    file.write(f"{context_id} Q0 {candidate.paper_id} {rank} {above!s} {tag}\n")
        os.replace(partial, path)  # noqa: PTH105 (Path.replace says nothing of being atomic)
    except OSError as error:
        raise BuildError(
            f"cannot write {path}: {error.strerror or error}", "Give another path, or make room."
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return contexts, empty
