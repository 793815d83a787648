"""Index directories: building them in a directory beside, adding to them, opening them (docs/storage.md)."""

import contextlib
import functools
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from citerec.corpus import stores
from citerec.corpus.base import IDS, REMOVED
from citerec.corpus.ingest import ingest
from citerec.corpus.shards import Shard, find_shards
from citerec.corpus.store import Counts, PaperStore
from citerec.corpus.stores import address_of, is_mongodb, name_of
from citerec.errors import InputError, SourceError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.parts import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import Journal
from citerec.records import Deletion
from citerec.retrieve.columns import write_columns
from citerec.retrieve.dense.build import build_dense, encode_changed, renewal
from citerec.retrieve.dense.encode import DenseOptions, OpenEncoder, TextEncoder
from citerec.retrieve.dense.manifest import DenseManifest, has_vectors
from citerec.retrieve.fill import Run, check_lucene, manifest_of, write_lucene
from citerec.retrieve.lucene.jvm import java_failures
from citerec.retrieve.manifest import Manifest, is_index
from citerec.retrieve.rows import write_rows
from citerec.retrieve.staging import DENSE as DENSE
from citerec.retrieve.staging import LUCENE as LUCENE
from citerec.retrieve.staging import followed, making_folder, open_file, plan_of, staging_of, working_store
from citerec.retrieve.staging import open_store as open_store
from citerec.retrieve.staging import recover as recover
from citerec.retrieve.update import Changes, begin, unread_shards

Store = TypeVar("Store", bound=PaperStore)

_ENCODED = ".encoded"
_LOOKED_UP = 1000


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to read and build.

    Attributes:
        format_name: Format of the files; None to recognise it.
        max_bad: Share of bad records above which the build stops.
        workers: Processes that read, by default one for each processor; or Ray.
        citances: Files of contexts whose sentences become citances of the papers they cite.
        abstract_field: Whether abstracts are a field of their own too, so that `lucene.weights.abstract` can be used.
            An index that is added to keeps what it has.
        store: Address of the MongoDB database that keeps the records, `mongodb://HOST/DATABASE`; by default a file in
            the index does. Only for a build.
        dense: How to make vectors beside the Lucene index. If None, a build makes none, and papers added to an index
            with vectors are encoded as the rest was, or by the model that the given vectors are from.
    """

    format_name: str | None = None
    max_bad: float = 0.05
    workers: Parallelism = None
    citances: tuple[Path, ...] = ()
    abstract_field: bool = False
    store: str | None = None
    dense: DenseOptions | None = None

    @property
    def encoders(self) -> Parallelism:
        """Where papers are encoded: on Ray, or here; more processes that read are no help to an encoder."""
        return HERE if self.workers is None or isinstance(self.workers, int) else self.workers


def build_index(
    sources: Sequence[Path], out: Path, options: BuildOptions | None = None, on_progress: Progress = no_progress
) -> Manifest:
    """Builds an index of all papers of some sources, in place of one that is already at `out`.

    The existing index is kept until the new one is complete. An interrupted build is resumed.

    Raises:
        SourceError: A source is missing, broken, empty, or of no known format.
        BuildError: Too many records are bad, or the disk is full, or another build is running.
        InputError: The MongoDB database holds other papers, or cannot be reached.
        StoreError: It failed.
    """
    options = options or BuildOptions()
    out = followed(out)
    if out.exists() and not is_index(out) and (not out.is_dir() or any(out.iterdir())):
        raise SourceError(f"{out} exists and is not an index", "Give another --out, or remove it first.")
    shards = find_shards(sources, options.format_name, options.citances)
    address = options.store and _address(options.store)
    plan = plan_of(shards, "build", abstract_field=options.abstract_field, store=address)
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
    before = _changeable(index)
    shards = find_shards(sources, options.format_name, options.citances)
    return _updated(index, before, shards, options, on_progress)


def update_index(
    sources: Sequence[Path],
    index: Path,
    options: BuildOptions | None = None,
    on_progress: Progress = no_progress,
) -> Manifest:
    """Adds those shards of some folders that an index has not read yet, such as those of later updates.

    Args:
        sources: Folders of datasets that the index was built from, which may have updates now; all of them by default.
        index: The index.
        options: As for `add_to_index`.
        on_progress: Called as the work goes on.

    Returns:
        The manifest of the index; that from before if there is nothing new.

    Raises:
        SourceError: A shard that the index has read is gone or changed: it has to be built again.
        InputError: The index was not built from such folders.
    """
    options = options or BuildOptions()
    index = followed(index)
    recover(index)
    before = _changeable(index)
    shards = unread_shards(index, before, sources, options.format_name)
    return _updated(index, before, shards, options, on_progress) if shards else before


def remove_papers(
    ids: Path, index: Path, options: BuildOptions | None = None, on_progress: Progress = no_progress
) -> Manifest:
    """Removes papers from an index, with their abstracts and TLDRs; errors as for `add_to_index`.

    Sentences about them are no longer searched. What they said of others stays. A later record brings a paper back.

    Args:
        ids: A file with the id of a paper in each line; unknown ones are ignored.
        index: The index.
        options: As for `add_to_index`.
        on_progress: Called as the work goes on.

    Returns:
        The manifest of the index; that from before if it has none of the papers.
    """
    index = followed(index)
    recover(index)
    before = _changeable(index)
    with contextlib.closing(open_file(index)) as store:
        known = (line.record.key for line in IDS.read(ids) if isinstance(line.record, Deletion))
        if not any(map(store.years, in_parts(known, _LOOKED_UP))):
            return before
    return _updated(index, before, [Shard(ids, REMOVED)], options or BuildOptions(), on_progress)


def _changeable(index: Path) -> Manifest:
    """The manifest of an index that can be added to; InputError if its records are in a MongoDB database."""
    manifest = Manifest.read(index)
    if manifest.store:
        raise InputError(
            f"{index} keeps its records in {name_of(manifest.store)}: such an index cannot be changed",
            f"Build it again, into another database: citerec index build … --store mongodb://HOST/NEW --out {index}",
        )
    return manifest


def _address(store: str) -> str:
    if not is_mongodb(store):
        raise InputError(
            "the store of an index is a file in the index, or a MongoDB database",
            "Write --store mongodb://HOST/DATABASE, or leave it out.",
        )
    return address_of(store)


def _updated(
    index: Path, before: Manifest, shards: list[Shard], options: BuildOptions, on_progress: Progress
) -> Manifest:
    options = replace(options, store=None)  # the papers stay where they are
    if has_vectors(index / DENSE):
        options = replace(options, dense=renewal(index / DENSE, options.dense))
    plan = plan_of(shards, f"add to {before.fingerprint}", abstract_field=before.abstract_field)
    with staging_of(index, plan, functools.partial(begin, index)) as journal:
        return _bring_up_to_date(journal, shards, options, index, on_progress)


def encode_index(
    index: Path,
    options: DenseOptions,
    on_progress: Progress = no_progress,
    *,
    name: str = DENSE,
    open_encoder: OpenEncoder = TextEncoder.open,
    parallelism: Parallelism = HERE,
) -> DenseManifest:
    """Makes the vectors of an existing index. Vectors that it already has are kept until the new ones are complete.

    An interrupted run is resumed by the next call; texts that the same model has encoded before are not encoded again.

    Args:
        index: The index.
        options: The encoder, the kind of FAISS index, and so on.
        on_progress: Called as the work goes on.
        name: The folder of the vectors in the index.
        open_encoder: Opens the encoder.
        parallelism: Where papers are encoded.

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
                parallelism=parallelism,
                on_progress=on_progress,
            )


def _fill(
    journal: Journal, shards: list[Shard], options: BuildOptions, vectors_before: Path, on_progress: Progress
) -> Manifest:
    """Fills the folder of a new index."""
    staging = journal.folder
    with _working(stores.open_store(options.store) if options.store else working_store(staging)) as store:
        ingest(shards, store, first=1, max_bad=options.max_bad, workers=options.workers, on_progress=on_progress)
        return _write_parts(staging, store, Run(1, options.abstract_field), options, vectors_before, on_progress)


def _bring_up_to_date(
    journal: Journal, shards: list[Shard], options: BuildOptions, index: Path, on_progress: Progress
) -> Manifest:
    """Adds shards to the copy of an index in a folder. Lucene writes what they change; the arrays are made again."""
    staging, first, encoded = journal.folder, int(journal.get("first_shard")), journal.folder / _ENCODED
    with _working(working_store(staging)) as store:
        ingest(shards, store, first=first, max_bad=options.max_bad, workers=options.workers, on_progress=on_progress)
        changes = Changes.since(store, first)
        if options.dense is not None and options.dense.vectors == (index / DENSE,):
            dense = encode_changed(encoded, store, changes.texts, options.dense, on_progress, options.encoders)
            options = replace(options, dense=dense)
        run = Run(first, Manifest.read(index).abstract_field, changes.texts, changes.cited)
        manifest = _write_parts(staging, store, run, options, index / DENSE, on_progress)
    shutil.rmtree(encoded, ignore_errors=True)
    return manifest


def _write_parts(
    staging: Path, store: PaperStore, run: Run, options: BuildOptions, vectors_before: Path, on_progress: Progress
) -> Manifest:
    """Writes the parts of an index whose papers are in their store, which is then finished, and its manifest."""
    counts = _checked(store.counts())
    with _beside(store) as pool:
        made, columns = pool.submit(store.fingerprint), pool.submit(write_columns, store, staging / LUCENE)
        with java_failures("writing the Lucene index"):
            write_lucene(store, staging / LUCENE, run, counts, on_progress)
            check_lucene(staging, counts)
            write_rows(store, staging / LUCENE)
        on_progress("checking", 0, 1)
        fingerprint, _ = made.result(), columns.result()
    if options.dense is None:
        shutil.rmtree(staging / DENSE, ignore_errors=True)
    else:
        build_dense(
            staging / DENSE,
            store,
            fingerprint,
            counts.papers,
            options.dense,
            previous=vectors_before,
            parallelism=options.encoders,
            on_progress=on_progress,
        )
    address = options.store and _address(options.store)
    manifest = manifest_of(store, staging, fingerprint, counts, abstract_field=run.abstract_field, address=address)
    store.finish()
    manifest.write(staging)
    on_progress("checking", 1, 1)
    return manifest


@contextlib.contextmanager
def _working(store: Store) -> Iterator[Store]:
    """Closes the store of an index that is being made."""
    try:
        yield store
    finally:
        with contextlib.suppress(sqlite3.Error):
            store.close()


def _checked(counts: Counts) -> Counts:
    """The counts of a store; SourceError if it has no paper."""
    if not counts.papers:
        raise SourceError("the sources hold no paper", "Give at least one readable paper record.")
    return counts


@contextlib.contextmanager
def _beside(store: PaperStore) -> Iterator[ThreadPoolExecutor]:
    """A thread for what is made of a store while Lucene is written; both only read.

    A thread is enough: Lucene has its own, and SQLite releases Python's lock for every row.
    """
    with ThreadPoolExecutor(1, "beside") as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            store.interrupt()  # Ctrl-C does not wait for it
            raise
