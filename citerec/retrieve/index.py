"""Index directories: building them in a directory beside, adding to them, opening them (docs/storage.md)."""

import contextlib
import functools
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from citerec.corpus.ingest import ingest, write_quarantine
from citerec.corpus.ledger import ledger_of
from citerec.corpus.sources import Shard, find_shards
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import Counts, PaperStore, SearchableCitance, SearchableText, place_of
from citerec.errors import IndexUnusableError, SourceError
from citerec.groundwork.progress import Progress, no_progress
from citerec.groundwork.resume import Journal
from citerec.groundwork.writing import remove
from citerec.retrieve.dense.build import (
    DenseOptions,
    OpenEncoder,
    TextEncoder,
    build_dense,
    encode_changed,
    renewal,
)
from citerec.retrieve.dense.manifest import DenseManifest, has_vectors
from citerec.retrieve.lucene.fields import ANALYZER, ID, CitanceDocument, PaperDocument
from citerec.retrieve.lucene.jvm import java_class, java_failures
from citerec.retrieve.lucene.writer import LuceneWriter, Mark, count_documents
from citerec.retrieve.manifest import IndexCounts, Manifest, is_index
from citerec.retrieve.rows import write_rows
from citerec.retrieve.staging import DENSE as DENSE
from citerec.retrieve.staging import LUCENE as LUCENE
from citerec.retrieve.staging import STORE, followed, making_folder, plan_of, staging_of
from citerec.retrieve.staging import open_store as open_store
from citerec.retrieve.staging import recover as recover
from citerec.retrieve.verify import store_faults
from citerec.version import __version__

QUARANTINE = "quarantine.jsonl"
_ENCODED = ".encoded"
_BESIDE_PAPERS = ("s2ag-abstracts", "s2ag-tldrs", "s2ag-citations", "contexts")
_COMMIT_EVERY = 100_000
_PROGRESS_EVERY = 2000

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to read and build: `format_name` None to recognise the format, `workers` None for one per processor.

    Attributes:
        max_bad: Share of bad records above which the build stops.
        citances: Files of contexts whose sentences become citances of the papers they cite.
        abstract_field: Whether abstracts are a field of their own too, so that `lucene.weights.abstract` can be used.
            An index that is added to keeps what it has.
        dense: How to make vectors beside the Lucene index. If None, a build makes none, and papers added to an index
            with vectors are encoded as the rest was, or by the model that the given vectors are from.
    """

    format_name: str | None = None
    max_bad: float = 0.05
    workers: int | None = None
    citances: tuple[Path, ...] = ()
    abstract_field: bool = False
    dense: DenseOptions | None = None


def build_index(
    sources: Sequence[Path], out: Path, options: BuildOptions | None = None, on_progress: Progress = no_progress
) -> Manifest:
    """Builds an index of all papers of some sources, in place of one that is already at `out`.

    The existing index is kept until the new one is complete. An interrupted build is resumed.

    Raises:
        SourceError: A source is missing, broken, empty, or of no known format.
        BuildError: Too many records are bad, or the disk is full, or another build is running.
    """
    options = options or BuildOptions()
    out = followed(out)
    if out.exists() and not is_index(out) and (not out.is_dir() or any(out.iterdir())):
        raise SourceError(f"{out} exists and is not an index", "Give another --out, or remove it first.")
    shards = find_shards(sources, options.format_name, options.citances)
    plan = plan_of(shards, "build", abstract_field=options.abstract_field)
    with staging_of(out, plan) as journal:
        return _fill(journal, shards, options, out / DENSE, on_progress)


def add_to_index(
    sources: Sequence[Path],
    index: Path,
    options: BuildOptions | None = None,
    on_progress: Progress = no_progress,
) -> Manifest:
    """Upserts the papers of further sources into an index: the result is that of a build from all sources together.

    The old index is kept until the new one is complete. Other errors are those of `build_index`.

    Raises:
        IndexUnusableError: There is no index to add to, or it is damaged.
    """
    options = options or BuildOptions()
    index = followed(index)
    recover(index)
    before = Manifest.read(index)
    shards = find_shards(sources, options.format_name, options.citances)
    options = replace(options, abstract_field=before.abstract_field)
    if has_vectors(index / DENSE):
        options = replace(options, dense=renewal(index / DENSE, options.dense))
    plan = plan_of(shards, f"add to {before.fingerprint}", abstract_field=options.abstract_field)
    with staging_of(index, plan, functools.partial(_copy, index)) as journal:
        return _fill(journal, shards, options, index / DENSE, on_progress)


def encode_index(
    index: Path,
    options: DenseOptions,
    on_progress: Progress = no_progress,
    *,
    name: str = DENSE,
    open_encoder: OpenEncoder = TextEncoder.open,
) -> DenseManifest:
    """Makes the vectors of an existing index. Vectors that it already has are kept until the new ones are complete.

    An interrupted run is resumed by the next call; texts that the same model has encoded before are not encoded again.

    Args:
        index: The index.
        options: The encoder, the kind of FAISS index, and so on.
        on_progress: Called as the work goes on.
        name: The folder of the vectors in the index.
        open_encoder: Opens the encoder.

    Raises:
        IndexUnusableError: There is no index.
        ModelError: The model cannot be found or loaded.
        SourceError: Given vectors are missing or broken.
        BuildError: Too many given vectors cannot be used, or the disk is full, or another build is running.
    """
    index = followed(index)
    recover(index)
    Manifest.read(index)
    with making_folder(index, name) as building:
        manifest = Manifest.read(index)
        with contextlib.closing(open_store(index)) as store:
            return build_dense(
                building,
                store,
                manifest.fingerprint,
                manifest.counts.papers,
                options,
                previous=index / name,
                open_encoder=open_encoder,
                on_progress=on_progress,
            )


def _copy(index: Path, staging: Path) -> None:
    """Copies the index that is added to; raises IndexUnusableError if its paper store is damaged."""
    if faults := store_faults(index, Manifest.read(index)):
        remove(staging)
        raise IndexUnusableError(
            f"{index} is damaged, and nothing was added to it: {faults[0]}",
            "Build it again from its sources; the existing index was not changed.",
        )
    shutil.copy2(index / STORE, staging / STORE)
    # Lucene never changes a file that it has written, so links are enough.
    shutil.rmtree(staging / LUCENE, ignore_errors=True)
    shutil.copytree(index / LUCENE, staging / LUCENE, copy_function=os.link)


def _fill(
    journal: Journal, shards: list[Shard], options: BuildOptions, vectors_before: Path, on_progress: Progress
) -> Manifest:
    staging, first = journal.folder, int(journal.get("first_shard"))
    store = SqliteStore(staging / STORE)
    try:
        ingest(shards, store, first=first, max_bad=options.max_bad, workers=options.workers, on_progress=on_progress)
        counts = store.counts()
        if not counts.papers:
            raise SourceError("the sources hold no paper", "Give at least one readable paper record.")
        with _fingerprinting(store) as made:
            with java_failures("writing the Lucene index"):
                write_lucene(store, staging / LUCENE, first, counts, on_progress, abstract_field=options.abstract_field)
                _check_lucene(staging, counts)
                write_rows(store, staging / LUCENE)
                lucene_version = str(java_class("org.apache.lucene.util.Version").LATEST.toString())
            on_progress("checking", 0, 1)
            fingerprint = made.result()
        if options.dense is None:
            shutil.rmtree(staging / DENSE, ignore_errors=True)
        else:
            dense = options.dense
            if first > 1 and dense.vectors == (vectors_before,):
                dense = encode_changed(staging / _ENCODED, store, place_of(first), dense, on_progress)
            build_dense(
                staging / DENSE,
                store,
                fingerprint,
                counts.papers,
                dense,
                previous=vectors_before,
                on_progress=on_progress,
            )
            shutil.rmtree(staging / _ENCODED, ignore_errors=True)
        ledger = ledger_of(store)
        sources = list(ledger.finished_shards().values())
        read = sum(source.read for source in sources if source.format not in _BESIDE_PAPERS)
        manifest = Manifest(
            citerec=__version__,
            lucene=lucene_version,
            analyzer=ANALYZER,
            abstract_field=options.abstract_field,
            fingerprint=fingerprint,
            counts=IndexCounts(
                **asdict(counts),
                duplicates=read - counts.papers,
                bad=write_quarantine(ledger, staging / QUARANTINE),
            ),
            sources=sources,
        )
        store.finish()
    finally:
        with contextlib.suppress(sqlite3.Error):
            store.close()
    manifest.write(staging)
    on_progress("checking", 1, 1)
    return manifest


@contextlib.contextmanager
def _fingerprinting(store: SqliteStore) -> Iterator[Future[str]]:
    """The fingerprint of a store, made in a thread of its own while Lucene is written.

    Both only read. A thread is enough: SQLite releases Python's lock for every row.
    """
    with ThreadPoolExecutor(1, "fingerprint") as pool:
        try:
            yield pool.submit(store.fingerprint)
        except BaseException:
            store.interrupt()  # Ctrl-C does not wait for it
            raise


def _check_lucene(staging: Path, counts: Counts) -> None:
    """Raises an error unless Lucene has all documents: an index to which papers are added may be damaged."""
    for name, expected in (("papers", counts.papers), ("citances", counts.citances)):
        found = count_documents(staging / LUCENE / name) if expected else 0
        if found != expected:
            remove(staging)
            raise IndexUnusableError(
                f"Lucene has {found:,} {name} where the store has {expected:,}: the index was damaged before",
                "Build it again from its sources; the existing index was not changed.",
            )


def write_lucene(
    store: PaperStore,
    path: Path,
    first: int,
    counts: Counts,
    on_progress: Progress,
    *,
    abstract_field: bool = False,
) -> None:
    """Updates both Lucene indexes from the store: everything, or the changes since the first shard of this run."""
    path.mkdir(exist_ok=True)
    since = place_of(first) if first > 1 else 0
    make_document = functools.partial(PaperDocument, abstract_field=abstract_field)
    with LuceneWriter[SearchableText](path / "papers", make_document) as papers:
        advance = functools.partial(_advance, on_progress, "indexing papers", counts.papers)
        _write(
            papers, lambda after: ((one.paper_id, one) for one in store.searchable_texts(after, since)), first, advance
        )
    if counts.citances:
        with LuceneWriter[SearchableCitance](path / "citances", CitanceDocument) as citances:
            advance = functools.partial(_advance, on_progress, "indexing citances", counts.citances)
            found = store.searchable_citances
            _write(citances, lambda after: ((one.cited.paper_id, one) for one in found(after, since)), first, advance)


def _write(
    writer: LuceneWriter[Item],
    items_after: Callable[[str], Iterator[tuple[str, Item]]],
    run: int,
    advance: Callable[[int], None],
) -> None:
    """Writes the items of all papers, in order of paper id; continues after the last commit of the same run."""
    mark = writer.mark
    if mark.run == run and mark.finished:
        return
    paper_id = mark.after if mark.run == run else ""
    uncommitted = 0
    for done, (next_id, item) in enumerate(items_after(paper_id), 1):
        if next_id != paper_id:
            if uncommitted >= _COMMIT_EVERY:
                writer.commit(Mark(run, paper_id))
                uncommitted = 0
            paper_id = next_id
            if run > 1:
                writer.delete(ID, paper_id)
        writer.add(item)
        uncommitted += 1
        if done % _PROGRESS_EVERY == 0:
            advance(done)
    writer.commit(Mark(run, finished=True), purge=run > 1)


def _advance(on_progress: Progress, doing: str, whole: int, done: int) -> None:
    on_progress(doing, done, whole)
