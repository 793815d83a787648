"""Checks an index directory: every file is intact, and store, Lucene, vectors and manifest agree."""

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import read_json
from citerec.retrieve.bm25s.build import NAME as BM25S
from citerec.retrieve.columns import COLUMNS, first_wrong
from citerec.retrieve.dense.build import checksum
from citerec.retrieve.dense.kinds import decoded, open_faiss
from citerec.retrieve.dense.listing import paper_text, text_digest
from citerec.retrieve.dense.manifest import FILES
from citerec.retrieve.dense.vectors import Vectors
from citerec.retrieve.lucene.documents import document_ids
from citerec.retrieve.lucene.fields import ID, open_directory
from citerec.retrieve.lucene.jvm import java_class, java_failures
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.qdrant.manifest import NAME as QDRANT
from citerec.retrieve.rows import ROWS, PaperRows, rows_of_documents, written_columns
from citerec.retrieve.staging import DENSE, LUCENE, open_store
from citerec.retrieve.steady import read_steadily

_SHOWN_IDS = 3
_CHUNK = 1 << 16
_TOLERANCE = 5e-3  # float16 keeps three digits of each number


def verify(index: Path, on_progress: Progress = no_progress) -> list[str]:
    """The faults of an index; an empty list if there are none.

    Raises:
        IndexUnusableError: It is not an index, half built, or of another version.
    """
    return read_steadily(index, lambda: _faults(index, on_progress))


def vectors_beside(index: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The folders with vectors of other retrievers than `dense`, and their manifests."""
    for path in sorted(index.glob("*/manifest.json")):
        if path.parent.name != DENSE:
            made = read_json(path)
            if made and made.keys() >= {"checksums", "store"}:
                yield path.parent, made


def store_faults(index: Path, manifest: Manifest) -> list[str]:
    """The faults of the paper store of an index: its structure, its counts, its fingerprint."""
    try:
        with contextlib.closing(open_store(index)) as store:
            faults = [f"the paper store: {fault}" for fault in store.integrity_faults()]
            return faults or _counts_faults(store, manifest)
    except IndexUnusableError as error:
        return [error.message]


def _faults(index: Path, on_progress: Progress) -> list[str]:
    manifest = Manifest.read(index)
    on_progress("checking the store", 0, 1)
    if faults := store_faults(index, manifest):
        return faults
    store = open_store(index)
    try:
        for name, expected in (("papers", manifest.counts.papers), ("citances", manifest.counts.citances)):
            on_progress(f"checking {name}", 0, 1)
            path = index / LUCENE / name
            if expected or path.exists():
                faults += _lucene_faults(path, expected)
        if not faults:
            faults += _id_faults(store, index / LUCENE / "papers") or _row_faults(store, index / LUCENE)
        if (index / DENSE).exists():
            on_progress("checking vectors", 0, 1)
            faults += _dense_faults(index / DENSE, store, manifest.fingerprint)
        for folder, made in vectors_beside(index):
            faults += _checksum_faults(folder, made["checksums"])
            # Scores of bm25s that are out of date are not used, and answers are the same without them. What an index
            # was pushed to is elsewhere.
            if made["store"] != manifest.fingerprint and folder.name not in (BM25S, QDRANT):
                faults.append(f"{folder} was made for other papers: make it again")
    except IndexUnusableError as error:
        return [error.message]
    finally:
        store.close()
    return faults


def _counts_faults(store: PaperStore, manifest: Manifest) -> list[str]:
    faults = []
    counts = store.counts()
    for name in ("papers", "with_abstract", "with_tldr", "with_year", "citances", "with_citances"):
        found, expected = getattr(counts, name), getattr(manifest.counts, name)
        if found != expected:
            faults.append(f"the paper store has {found:,} {name}, the manifest {expected:,}")
    found_print = store.fingerprint()
    if found_print != manifest.fingerprint:
        faults.append(f"the paper store has the fingerprint {found_print}, the manifest {manifest.fingerprint}")
    return faults


def _lucene_faults(path: Path, expected: int) -> list[str]:
    """Lucene's own check of its files and their checksums, and the number of documents."""
    with java_failures(f"checking {path}", IndexUnusableError):
        directory = open_directory(path)
        # No lock: it would be a file, in a folder that may be only read. No index is changed in its place.
        lock = java_class("org.apache.lucene.store.NoLockFactory").INSTANCE.obtainLock(directory, "write.lock")
        checker = java_class("org.apache.lucene.index.CheckIndex")(directory, lock)
        try:
            status = checker.checkIndex()
        finally:
            checker.close()
        if not status.clean:
            return [f"{path}: Lucene finds {status.numBadSegments} damaged segment(s)"]
        reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
        found = reader.numDocs()
        reader.close()
    return [] if found == expected else [f"{path} has {found:,} documents, the manifest {expected:,}"]


def _id_faults(store: PaperStore, path: Path) -> list[str]:
    """Ids that only the store or only Lucene has."""
    stored = (text.paper_id for text in store.searchable_texts())
    with java_failures(f"checking {path}", IndexUnusableError):
        pairs = itertools.zip_longest(stored, _lucene_ids(path))
        different = [(left, right) for left, right in pairs if left != right][:_SHOWN_IDS]
    return [f"store and Lucene disagree on ids, first at {left!r} and {right!r}" for left, right in different]


def _lucene_ids(path: Path) -> Iterator[str]:
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(open_directory(path))
    terms = java_class("org.apache.lucene.index.MultiTerms").getTerms(reader, ID).iterator()
    while (term := terms.next()) is not None:
        yield str(term.utf8ToString())
    reader.close()


def _row_faults(store: PaperStore, lucene: Path) -> list[str]:
    """The faults of the rows of papers and documents, and of the papers' columns."""
    import numpy as np

    papers = PaperRows.open(lucene)
    pairs = itertools.zip_longest(store.ids_and_abstracts(), zip(papers.ids, papers.has_abstract, strict=False))
    if any(not (left and right) or (left[0].encode(), left[1]) != right for left, right in pairs):
        return [f"{lucene / ROWS}: the ids are not those of the store"]
    for name in ("papers", "citances"):
        if (lucene / name).is_dir():
            with java_failures(f"checking {lucene / name}", IndexUnusableError):
                right = [papers.rows(ids) for ids in document_ids(lucene / name)]
            if not np.array_equal(rows_of_documents(lucene, name), np.concatenate(right) if right else []):
                return [f"{lucene / ROWS / name}.npy does not fit Lucene's documents"]
    if (columns := written_columns(lucene)) and (wrong := first_wrong(columns, store)):
        return [f"{lucene / COLUMNS / wrong}.npy does not fit the papers of the store"]
    return []


def _dense_faults(folder: Path, store: PaperStore, fingerprint: str) -> list[str]:
    """The faults of a folder of vectors for the papers of a store; an empty list if there are none."""
    try:
        vectors = Vectors(folder)
    except IndexUnusableError as error:
        return [error.message]
    faults = _checksum_faults(folder, {name: vectors.manifest.checksums.get(name) for name in FILES})
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
    return [f"{vectors.path}: {wrong:,} vectors do not have length one"] if wrong else []


def _index_faults(vectors: Vectors) -> list[str]:
    try:
        found = open_faiss(vectors.path).ntotal
    except RuntimeError as error:
        return [f"{vectors.path / 'index.faiss'} cannot be read ({str(error)[:100]})"]
    return (
        [] if found == len(vectors) else [f"{vectors.path / 'index.faiss'} has {found:,} of {len(vectors):,} vectors"]
    )


def _paper_faults(vectors: Vectors, store: PaperStore) -> list[str]:
    """Compares store and vectors in one pass: both are in order of id."""
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


def _checksum_faults(folder: Path, checksums: Mapping[str, str | None]) -> list[str]:
    """The files of a folder of vectors that are missing or damaged."""
    faults = []
    for name, expected in checksums.items():
        if not (folder / name).is_file():
            faults.append(f"{folder / name} is missing")
        elif checksum(folder / name) != expected:
            faults.append(f"{folder / name} is damaged: its checksum is not that of the manifest")
    return faults
