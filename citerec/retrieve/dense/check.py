"""Whether a folder of vectors is whole, and fits the papers beside it."""

from pathlib import Path

from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError
from citerec.retrieve.dense.build import checksum_faults
from citerec.retrieve.dense.kinds import decoded, open_faiss
from citerec.retrieve.dense.listing import paper_text, text_digest
from citerec.retrieve.dense.vectors import Vectors

_CHUNK = 1 << 16
_TOLERANCE = 5e-3  # float16 keeps three digits of each number


def dense_faults(folder: Path, store: PaperStore, fingerprint: str) -> list[str]:
    """The faults of a folder of vectors for the papers of a store; an empty list where there is none."""
    try:
        vectors = Vectors(folder)
    except IndexUnusableError as error:
        return [error.message]
    faults = checksum_faults(folder, vectors.manifest)
    if vectors.manifest.store != fingerprint:
        faults.append(f"{folder} was made for papers with the fingerprint {vectors.manifest.store}, not {fingerprint}")
    if not faults:
        faults += _length_faults(vectors) + _index_faults(vectors) + _paper_faults(vectors, store)
    return faults


def _length_faults(vectors: Vectors) -> list[str]:
    import numpy as np

    wrong = 0
    for begin in range(0, len(vectors), _CHUNK):
        lengths = np.linalg.norm(decoded(vectors.values[begin : begin + _CHUNK]), axis=1)
        wrong += int(np.count_nonzero(~(np.abs(lengths - 1) < _TOLERANCE)))
    return [f"{vectors.path}: {wrong:,} vectors have not length one"] if wrong else []


def _index_faults(vectors: Vectors) -> list[str]:
    try:
        found = open_faiss(vectors.path).ntotal
    except RuntimeError as error:
        return [f"{vectors.path / 'index.faiss'} cannot be read ({str(error)[:100]})"]
    return (
        [] if found == len(vectors) else [f"{vectors.path / 'index.faiss'} has {found:,} of {len(vectors):,} vectors"]
    )


def _paper_faults(vectors: Vectors, store: PaperStore) -> list[str]:
    """Both sides are in order of id: one pass."""
    row = changed = 0
    for paper in store.searchable_texts():
        if row < len(vectors) and vectors.ids[row] == paper.paper_id.encode():
            changed += int(vectors.digests[row]) != text_digest(paper_text(paper))
            row += 1
    faults = []
    if row < len(vectors):
        faults.append(f"{vectors.path}: store and vectors disagree on ids, first at {vectors.ids[row].decode()!r}")
    if changed:
        faults.append(f"{vectors.path}: {changed:,} texts are not those that were encoded")
    return faults
