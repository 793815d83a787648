"""Bringing a folder of vectors up to date: only the texts that changed are encoded, and the arrays are spliced."""

import functools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.corpus.sqlite_store import SqliteStore
from citerec.errors import SourceError
from citerec.files.hashing import digest_of
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.files.resume import Journal
from citerec.retrieve.dense.build import (
    INPUTS,
    build_dense,
    checksum,
    is_same_model,
    opened,
    taken_over,
)
from citerec.retrieve.dense.encode import DenseOptions, Encoding, encode_papers
from citerec.retrieve.dense.files import ArrayWriter, Splice, mapped
from citerec.retrieve.dense.given import arrange_given, find_given
from citerec.retrieve.dense.kinds import build_faiss, update_faiss
from citerec.retrieve.dense.listing import COLUMNS
from citerec.retrieve.dense.manifest import FILES, DenseManifest
from citerec.retrieve.dense.vectors import Vectors
from citerec.version import __version__

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHANGED, _BEFORE = "changed", "before"


@dataclass(frozen=True, slots=True)
class Updated:
    """A store that changed.

    Attributes:
        store: The papers now.
        fingerprint: Its fingerprint.
        papers: How many papers it has.
        changed: Ids of the papers whose texts, year or citation count may have changed, in order; also of those that
            are no longer there.
    """

    store: SqliteStore
    fingerprint: str
    papers: int
    changed: Sequence[str]


def update_dense(
    folder: Path,
    updated: Updated,
    options: DenseOptions,
    previous: Path,
    on_progress: Progress,
    parallelism: Parallelism = HERE,
) -> DenseManifest:
    """Makes the vectors of a store from those of the store before, and the FAISS index over them, in a folder.

    All are made anew if the options name another model, other vectors or another kind of index. A call with the same
    arguments resumes an interrupted one. Errors are those of `build_dense`.
    """
    old, encoding = opened(previous), None
    given = [path for path in options.vectors if path != previous]
    there = next(updated.store.searchable_texts(only=updated.changed), None) is not None
    if old is not None and there and not options.vectors:
        encoding = Encoding(options, parallelism=parallelism)
        old = old if is_same_model(old.manifest, encoding.encoder, options) else None
    if old is not None and (old.manifest.faiss.asked != options.kind or old.manifest.given != bool(options.vectors)):
        old = None
    if len(given) == len(options.vectors) > 0:  # the vectors before are not to be kept
        old = None
    if old is None:
        made = updated.fingerprint, updated.papers
        return build_dense(
            folder,
            updated.store,
            *made,
            options,
            previous=previous,
            parallelism=parallelism,
            on_progress=on_progress,
        )
    plan = {"store": updated.fingerprint, "before": old.manifest.store, "options": digest_of(repr(options))}
    journal = Journal(folder, plan)
    small = folder / _CHANGED
    faults: dict[str, int] = {}
    texts = functools.partial(updated.store.searchable_texts, only=updated.changed)
    if encoding is not None:
        notes = Journal(small, {"encoder": encoding.encoder.identity})
        encode_papers(small, texts, encoding, old, len(updated.changed), notes, on_progress)
    elif there and (sources := [*_before(folder, old, updated.changed), *find_given(given)]):
        small.mkdir(exist_ok=True)
        faults = arrange_given(
            small, texts, sources, options.max_bad, len(updated.changed), journal, on_progress
        ).faults
    splice = _splice(folder, small, old, updated.changed)
    count = len(mapped(folder / "ids.npy"))
    if not count:
        raise SourceError("no paper has a text to encode", "Give papers with titles or abstracts.")
    checksums = {name: checksum(folder / name) for name in INPUTS}
    faiss = (
        taken_over(folder, old, checksums, options.kind)
        or update_faiss(folder, old.path, old.manifest.faiss, splice, on_progress)
        or build_faiss(folder, options.kind, on_progress)
    )
    for rest in (small, folder / _BEFORE):
        shutil.rmtree(rest, ignore_errors=True)
    known = {**old.manifest.faults}
    manifest = old.manifest.model_copy(
        update={
            "citerec": __version__,
            "count": count,
            "without_vector": updated.papers - count,
            "faults": {name: known.get(name, 0) + faults.get(name, 0) for name in sorted({*known, *faults})},
            "store": updated.fingerprint,
            "faiss": faiss,
            "checksums": checksums | {name: checksum(folder / name) for name in FILES if name not in checksums},
        }
    )
    manifest.write(folder)
    return manifest


def _before(folder: Path, old: Vectors, ids: Sequence[str]) -> list[Path]:
    """A folder with the old vectors of some papers, if there are any."""
    rows = old.rows(ids)
    rows = rows[rows >= 0]
    if not len(rows):
        return []
    before = folder / _BEFORE
    before.mkdir(exist_ok=True)
    for name, values in (("ids", old.ids), ("vectors", old.values)):
        with ArrayWriter(before / f"{name}.npy", values.dtype, values.shape[1:]) as writer:
            writer.append(values[rows])
    return [before]


def _splice(folder: Path, small: Path, old: Vectors, changed: Sequence[str]) -> Splice:
    """Writes all arrays but the index: the old ones, with those of the papers that changed in their places."""
    arrays: dict[str, NDArray[Any]] = {"vectors.npy": old.values, "digests.npy": old.digests}
    arrays |= {"years.npy": old.years, "citations.npy": old.citations}
    assert {*arrays, "ids.npy"} == {*INPUTS, *COLUMNS}
    has_new = (small / "ids.npy").is_file()
    ids = [key.decode() for key in mapped(small / "ids.npy").tolist()] if has_new else []
    splice = Splice(old.ids, changed, ids)
    splice.write(folder / "ids.npy", old.ids, splice.keys)
    for name, values in arrays.items():
        splice.write(folder / name, values, mapped(small / name) if has_new else values[:0])
    return splice
