"""Bringing an index up to date: what changed is written again, everything else is linked (docs/storage.md)."""

import contextlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from citerec.corpus.shards import Shard, corpus_of, find_shards
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import ShardCounts
from citerec.errors import IndexUnusableError, InputError, SourceError
from citerec.files.addresses import path_of
from citerec.files.writing import link, remove
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.staging import LUCENE, STORE, open_file, working_store


@dataclass(frozen=True, slots=True)
class Changes:
    """The papers that changed, by id, in order; also those that are no longer there.

    Attributes:
        texts: Those whose document in Lucene, or vector, may be another.
        cited: Those whose citances may be others.
    """

    texts: list[str]
    cited: list[str]

    @classmethod
    def since(cls, store: SqliteStore, since: int) -> "Changes":
        """What the shards from a number on changed; `cited` may have more.

        A sentence that is gone is a record that changed, so the store of now knows all others: the year of a citing
        paper is with its sentences, and so is that it is in the index.
        """
        papers, abstracts, citations = (store.changes(table, since) for table in ("papers", "abstracts", "citations"))
        return cls(texts=_union(papers, abstracts), cited=_union(papers, citations, store.cited_by(papers)))


def _union(*ids: Iterable[str]) -> list[str]:
    return sorted(set().union(*ids))


def begin(index: Path, staging: Path) -> int:
    """Puts the store and Lucene's files of an index into a folder, to be brought up to date there.

    Returns:
        The number of the next shard.

    Raises:
        IndexUnusableError: The store cannot be read.
    """
    try:
        with contextlib.closing(open_file(index)) as store:
            store.check()
            store.copy(staging / STORE)
    except IndexUnusableError as error:
        remove(staging)
        raise IndexUnusableError(
            f"{index} is damaged, and nothing was added to it: {error.message}",
            "Build it again from its sources; the existing index was not changed.",
        ) from error
    # Lucene never changes a file that it has written, so links are enough.
    shutil.rmtree(staging / LUCENE, ignore_errors=True)
    shutil.copytree(index / LUCENE, staging / LUCENE, copy_function=link)
    with contextlib.closing(working_store(staging)) as copied:
        copied.note_changes()
        return max(copied.shards(), default=0) + 1


def unread_shards(
    index: Path, manifest: Manifest, sources: Sequence[Path], format_name: str | None = None
) -> list[Shard]:
    """The shards of some folders that an index has not read; by default of all corpora that it was built from.

    Raises:
        InputError: The index has read nothing there.
        SourceError: What it has read there is gone or changed, or new shards come before it.
    """
    read = {path_of(source.path).resolve(): source for source in manifest.sources}
    folders = list(sources) or list(dict.fromkeys(filter(None, (corpus_of(path) for path in read))))
    if not folders:
        raise InputError(
            f"{index} was not built from folders of datasets, so it is not known where its updates are",
            "Name what is new: citerec index add SOURCE…, or build the index again.",
        )
    return [shard for folder in folders for shard in _unread_in(folder, read, index, format_name)]


def _unread_in(folder: Path, read: Mapping[Path, ShardCounts], index: Path, format_name: str | None) -> list[Shard]:
    """As `unread_shards`, for one folder."""
    again = f"Build the index again: citerec index build {folder} --out {index}"
    found = find_shards([folder], format_name)
    places = [shard.path.resolve() for shard in found]
    known = [place in read for place in places]
    if not any(known):
        raise InputError(
            f"{index} has read nothing of {folder}", f"If its papers are to be added: citerec index add {folder}"
        )
    for path, shard in zip(places, found, strict=True):
        if path in read and read[path].bytes != shard.path.stat().st_size:
            raise SourceError(f"{shard.path} has changed since {index} read it", again)
    if gone := sorted(path for path in read if path.is_relative_to(folder.resolve()) and path not in places):
        raise SourceError(f"{gone[0]} is gone since {index} read it", again)
    unread = known.index(False) if False in known else len(known)
    if any(known[unread:]):
        raise SourceError(f"{found[unread].path} is new, but comes before what {index} has read", again)
    return found[unread:]
