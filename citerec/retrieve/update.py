"""Bringing an index up to date: what changed is written again, everything else is linked (docs/storage.md)."""

import contextlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from citerec.corpus.json_lines import BadRecord
from citerec.corpus.ledger import ShardCounts, ledger_of
from citerec.corpus.rows import RECORDS, fingerprint_of
from citerec.corpus.sources import Shard, corpus_of, find_shards
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import Counts
from citerec.errors import IndexUnusableError, InputError, SourceError
from citerec.groundwork.addresses import path_of
from citerec.groundwork.writing import link, remove
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.staging import CHANGES, LUCENE, STORE, open_file, working_store

_MOST_CHANGES = 0.1  # of the bytes of the store: more are merged with it, which costs as much as copying it


@dataclass(frozen=True, slots=True)
class Changes:
    """The papers that changed, by id, in order; also those that are no longer there.

    Attributes:
        all: Those with a record that changed: of the paper, a text, or a sentence about it.
        texts: Those whose document in Lucene, or vector, may be another.
        cited: Those whose citances may be others.
    """

    all: list[str]
    texts: list[str]
    cited: list[str]

    @classmethod
    def between(cls, before: SqliteStore, after: SqliteStore, since: int) -> "Changes":
        """What changed from one store to another, whose changes since a place are known."""
        papers = after.changed("papers", since)
        old, new = before.years(papers), after.years(papers)
        # The year of a citing paper is with its sentences, and so is that it is in the index.
        citing = [one for one in papers if (one in old, old.get(one)) != (one in new, new.get(one))]
        return cls._of(after, since, before.cited_by(citing), after.cited_by(citing))

    @classmethod
    def since(cls, store: SqliteStore, since: int) -> "Changes":
        """What changed in a store since a place, where the store before is no longer there: `cited` may have more.

        A sentence that is gone is a record that changed, so the store of now knows all others.
        """
        return cls._of(store, since, store.cited_by(store.changed("papers", since)))

    @classmethod
    def _of(cls, store: SqliteStore, since: int, *cited: set[str]) -> "Changes":
        of_table = {table: store.changed(table, since) for table in RECORDS}
        papers = of_table["papers"]
        return cls(
            all=_union(*of_table.values()),
            texts=_union(papers, of_table["abstracts"]),
            cited=_union(papers, of_table["citations"], *cited),
        )


def _union(*ids: Iterable[str]) -> list[str]:
    return sorted(set().union(*ids))


def begin(index: Path, staging: Path) -> int:
    """Puts the store and Lucene's files of an index into a folder, to be brought up to date there.

    Returns:
        The number of the next shard.

    Raises:
        IndexUnusableError: The store cannot be read.
    """
    for path in (staging / STORE, *staging.glob(f"{CHANGES}*")):  # of an interrupted call
        path.unlink(missing_ok=True)
    try:
        changes = index / CHANGES
        if changes.exists() and changes.stat().st_size > _MOST_CHANGES * (index / STORE).stat().st_size:
            _merge(index, staging / STORE)
        else:
            with contextlib.closing(open_file(index)) as store:
                store.check()
            link(index / STORE, staging / STORE)
            if changes.exists():
                shutil.copy2(changes, staging / CHANGES)
    except IndexUnusableError as error:
        remove(staging)
        raise IndexUnusableError(
            f"{index} is damaged, and nothing was added to it: {error.message}",
            "Build it again from its sources; the existing index was not changed.",
        ) from error
    (staging / CHANGES).touch()
    # Lucene never changes a file that it has written, so links are enough.
    shutil.rmtree(staging / LUCENE, ignore_errors=True)
    shutil.copytree(index / LUCENE, staging / LUCENE, copy_function=link)
    with contextlib.closing(working_store(staging)) as store:
        return ledger_of(store).next_shard()


def _merge(index: Path, path: Path) -> None:
    """Writes the store of an index with its changes as one file."""
    with contextlib.closing(open_file(index)) as store:
        store.merged(path)
        old = ledger_of(store)
        with contextlib.closing(SqliteStore(path)) as merged:
            new = ledger_of(merged)
            for number, counts in old.finished_shards().items():
                new.finish_shard(number, counts)
            for shard, line, reason, beginning in old.quarantine():
                new.set_aside(shard, [(line, BadRecord(reason, beginning))])
            merged.finish()


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


def changed_counts(manifest: Manifest, before: SqliteStore, after: SqliteStore, ids: list[str]) -> Counts:
    """The counts of a store, from those before and what some papers add to both."""
    whole = (getattr(manifest.counts, name) for name in Counts.__dataclass_fields__)
    old, new = (astuple(store.counts(ids)) for store in (before, after))
    return Counts(*(count - gone + come for count, gone, come in zip(whole, old, new, strict=True)))


def changed_fingerprint(manifest: Manifest, before: SqliteStore, after: SqliteStore, ids: list[str]) -> str:
    """The fingerprint of a store, in the same way."""
    return fingerprint_of(int(manifest.fingerprint, 16) - before.digest_sum(ids) + after.digest_sum(ids))
