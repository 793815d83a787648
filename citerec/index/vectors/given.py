"""Vectors that were made elsewhere: arrays with ids, or the `embeddings-specter_v2` of S2AG (docs/retrieval.md)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from citerec.corpus.json_lines import BadRecord, RecordError, parsed, raw_lines, read_id
from citerec.errors import SourceError
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.files.rejected import Rejected
from citerec.index.arrays import Mask, rows_of

_ARRAYS = ("ids.npy", "vectors.npy")
_BATCH = 4096
# float16 keeps three digits: vectors this near to length one were normalised before, and are used unchanged.
_NORMALISED = 2e-3
_FORMS = "Give a folder with vectors.npy and ids.npy, or S2AG's embeddings-specter_v2 (JSON Lines): docs/retrieval.md."


class _Batch(NamedTuple):
    """Some vectors of a source with their ids, how many records had none, and the share of the source that was read."""

    ids: list[str]
    vectors: Sequence[Sequence[float]] | NDArray[Any]
    unreadable: int
    read: float


def find_given(paths: Sequence[Path]) -> list[Path]:
    """The sources of vectors below some paths: folders of arrays, shards of JSON Lines.

    Raises:
        SourceError: A path has none.
    """
    found: list[Path] = []
    for path in paths:
        is_whole = path.is_file() or all((path / name).is_file() for name in _ARRAYS)
        sources = [path] if is_whole else sorted(file for file in path.glob("[!.]*") if file.is_file())
        if not sources:
            raise SourceError(f"{path} {'holds no vectors' if path.exists() else 'does not exist'}", _FORMS)
        found += sources
    return found


def dimension_of(sources: Sequence[Path]) -> int:
    """The dimension of the first vector; SourceError if there is none."""
    lengths = (len(vector) for source in sources for batch in _batches(source) for vector in batch.vectors)
    if (dimension := next(lengths, None)) is None:
        raise SourceError(f"{sources[0]} holds no vector", _FORMS)
    return dimension


def take_given(
    values: NDArray[np.float16], ids: NDArray[np.bytes_], sources: Sequence[Path], max_bad: float, on_progress: Progress
) -> tuple[dict[str, int], Mask]:
    """Puts the given vectors of some papers into their rows. Of several vectors of a paper the last one counts.

    Args:
        values: Where to, (papers, dimension); vectors of another dimension are not used.
        ids: The ids of the papers, sorted.
        sources: Where the vectors are: `find_given`.
        max_bad: The share of unusable vectors, 0 to 1, above which the work stops.
        on_progress: Called as the work goes on.

    Returns:
        How many vectors were not used, by reason; and which papers have one now, (papers,).

    Raises:
        SourceError: A source cannot be read, or holds no vector of a paper.
        BuildError: Too many vectors cannot be used.
    """
    faults: Counter[str] = Counter()
    usable, elsewhere, taken = 0, 0, np.zeros(len(values), bool)
    for number, source in enumerate(sources):
        for batch in _batches(source):
            names, vectors = _usable(batch, values.shape[1], faults)
            rows = rows_of(ids, names)
            known = rows >= 0
            values[rows[known]] = vectors[known]
            taken[rows[known]] = True
            usable += len(rows)
            elsewhere += int(np.count_nonzero(~known))
            _check(source, faults, usable, max_bad, share_read=1.0)
            on_progress("taking vectors", number + batch.read, len(sources))
    _check(sources[-1], faults, usable, max_bad)
    if not taken.any():
        raise SourceError(
            f"none of the {elsewhere:,} vectors belongs to a paper of the index",
            "Do their ids come from the same corpus?",
        )
    faults["of papers not in the index"] = elsewhere
    return {reason: count for reason, count in sorted(faults.items()) if count}, taken


def _check(source: Path, faults: Counter[str], usable: int, max_bad: float, share_read: float | None = None) -> None:
    listed = ", ".join(f"{count:,} {reason}" for reason, count in sorted(faults.items()) if count)
    rejected = Rejected(max_bad, f"vectors of {source} ({listed})")
    rejected.add(usable, faults.total())
    rejected.check(share_read)


def _batches(source: Path) -> Iterator[_Batch]:
    """The vectors of a folder of arrays, or of a shard of JSON Lines."""
    if source.is_dir():
        ids, vectors = _arrays(source)
        for begin in range(0, len(ids), _BATCH):
            part = slice(begin, begin + _BATCH)
            names = np.char.decode(ids[part], "utf-8", "replace") if ids.dtype.kind == "S" else ids[part].astype(str)
            yield _Batch(names.tolist(), vectors[part], 0, min(1.0, part.stop / len(ids)))
        return
    size = max(1, source.stat().st_size)
    for lines in in_parts(raw_lines(source), _BATCH):
        records = [parsed(raw, _vector) for _, raw, _ in lines]
        readable = [record for record in records if not isinstance(record, BadRecord)]
        ids_of, vectors_of = [paper_id for paper_id, _ in readable], [vector for _, vector in readable]
        yield _Batch(ids_of, vectors_of, len(records) - len(readable), lines[-1][2] / size)


def _arrays(source: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        ids, vectors = (np.load(source / name, mmap_mode="r", allow_pickle=False) for name in _ARRAYS)
    except (OSError, ValueError, EOFError) as error:
        raise SourceError(f"{source}: its arrays cannot be read ({error})".replace("\n", " "), _FORMS) from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or ids.shape != vectors.shape[:1] or ids.dtype.kind not in "iuSU":
        raise SourceError(
            f"{source}: vectors.npy is {vectors.dtype} {vectors.shape} and ids.npy {ids.dtype} {ids.shape}",
            "vectors.npy must hold floats, (papers, dimension), and ids.npy an id for each of its rows.",
        )
    return ids, vectors


def _vector(record: Mapping[str, Any]) -> tuple[str, list[float]]:
    """Id and vector of a record; the vector is a list, or JSON in a string.

    Raises:
        RecordError: It has none.
    """
    paper_id, vector = read_id(record, "corpusid"), record.get("vector")
    values = orjson.loads(vector) if isinstance(vector, str) else vector
    if not isinstance(values, list) or not values or not all(isinstance(value, float | int) for value in values):
        raise RecordError("no vector")
    return paper_id, values


def _usable(batch: _Batch, dimension: int, faults: Counter[str]) -> tuple[list[str], NDArray[np.float32]]:
    """Vectors that have the dimension, are finite and not zero, scaled to length one; the others are counted."""
    fitting = [at for at, vector in enumerate(batch.vectors) if len(vector) == dimension]
    vectors = np.array([batch.vectors[at] for at in fitting], np.float32).reshape(len(fitting), dimension)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    good = np.isfinite(lengths) & (lengths > 0)
    faults["unreadable"] += batch.unreadable
    faults[f"not of dimension {dimension}"] += len(batch.ids) - len(fitting)
    faults["not finite"] += int(np.count_nonzero(~np.isfinite(lengths)))
    faults["zero"] += int(np.count_nonzero(lengths == 0))
    scale = np.where(np.abs(lengths - 1) < _NORMALISED, 1.0, lengths)[good]
    return [batch.ids[fitting[at]] for at in np.flatnonzero(good)], (vectors[good] / scale[:, None]).astype(np.float32)
