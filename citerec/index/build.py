"""Building an index, and changing it: the next generation is made beside the current one (docs/storage.md)."""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from citerec.corpus import stores
from citerec.corpus.base import IDS, REMOVED
from citerec.corpus.ingest import ingest, write_quarantine
from citerec.corpus.shards import Shard, corpus_of, find_shards
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import Counts, PaperStore, ShardCounts
from citerec.corpus.stores import address_of, is_mongodb, name_of
from citerec.errors import IndexUnusableError, InputError, SourceError
from citerec.files.addresses import path_of
from citerec.files.hashing import identity
from citerec.files.parallel import HERE, Parallelism
from citerec.files.parts import in_parts
from citerec.files.progress import Progress, no_progress
from citerec.files.writing import link
from citerec.index.base import ENGINES, Layout
from citerec.index.columns import COLUMNS
from citerec.index.generations import LOCK, MAKING, generation_of, link_folder, next_generation
from citerec.index.manifest import DENSE, STORE, IndexCounts, Manifest, checksum, is_index, open_file, open_store
from citerec.index.rows import sentences_of, write_citing, write_rows
from citerec.index.vectors.build import build_vectors, renewal
from citerec.index.vectors.cache import NAME as CACHE
from citerec.index.vectors.cache import VectorCache
from citerec.index.vectors.encode import DenseOptions, OpenEncoder, TextEncoder
from citerec.index.vectors.manifest import DenseManifest, has_vectors
from citerec.records import Deletion, Paper
from citerec.version import __version__

Store = TypeVar("Store", bound=PaperStore)

QUARANTINE = "quarantine.jsonl"
_LOOKED_UP = 1000


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to read and build.

    Attributes:
        format_name: Format of the files; None to recognise it.
        max_bad: Share of bad records above which the build stops.
        workers: Processes that read, by default one for each processor; or Ray.
        citances: Files of contexts whose sentences become citing sentences of the papers they cite.
        layout: How words are written: the engine, and so on. An index that is added to keeps its own.
        store: Address of the MongoDB database that keeps the records, `mongodb://HOST/DATABASE`; by default a file in
            the index does. Only for a build.
        dense: How to make vectors too. If None, a build makes none, and papers added to an index with vectors are
            encoded as the rest was, or by the model that the given vectors are from.
    """

    format_name: str | None = None
    max_bad: float = 0.05
    workers: Parallelism = None
    citances: tuple[Path, ...] = ()
    layout: Layout = field(default_factory=Layout)
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

    A source may be another index, alone: the new one has its papers and its vectors, perhaps with another engine.

    The existing index is kept until the new one is complete. An interrupted build is resumed.

    Raises:
        SourceError: A source is missing, broken, empty, or of no known format.
        BuildError: Too many records are bad, or the disk is full, or another build is running.
        InputError: The MongoDB database holds other papers, or cannot be reached.
        StoreError: It failed.
    """
    options = options or BuildOptions()
    if out.exists() and not is_index(out) and (not out.is_dir() or holds_other_things(out)):
        raise SourceError(f"{out} exists and is not an index", "Give another --out, or remove it first.")
    source = sources[0] if len(sources) == 1 and is_index(sources[0]) else None
    shards = [] if source else find_shards(sources, options.format_name, options.citances)
    address = options.store and _address(options.store)
    layout = options.layout
    _ = ENGINES[layout.engine]
    of_index = _changeable(source).fingerprint if source else None
    before = generation_of(out)
    with next_generation(out, _plan(shards, "build", layout, store=address, of_index=of_index)) as journal:
        making = journal.folder
        if source:
            _copy_store(source, making / STORE)
            if (source / CACHE).is_file() and source.resolve() != out.resolve():
                shutil.copy2(source / CACHE, out / CACHE)
        store = stores.open_store(options.store) if options.store else SqliteStore(making / STORE)
        with _working(store):
            if not source:
                _read(shards, store, 1, options, on_progress)
            kept = generation_of(source) if source else None
            chosen = replace(options, store=address)
            return _write_parts(making, before, store, layout, chosen, on_progress, kept)


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
    before = _changeable(index)
    shards = _unread_shards(index, before, sources, options.format_name)
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
    before = _changeable(index)
    with contextlib.closing(open_file(index)) as store:
        known = (line.record.key for line in IDS.read(ids) if isinstance(line.record, Deletion))
        if not any(map(store.years, in_parts(known, _LOOKED_UP))):
            return before
    return _updated(index, before, [Shard(ids, REMOVED)], options or BuildOptions(), on_progress)


def _changeable(index: Path) -> Manifest:
    """The manifest of an index whose papers can be copied; InputError if its records are in a MongoDB database."""
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
    """The next generation of an index, with what some shards change: a copy of its store, from which all is made."""
    folder = generation_of(index)
    options = replace(options, store=None)  # the papers stay where they are
    if has_vectors(folder / DENSE):
        options = replace(options, dense=renewal(folder / DENSE, options.dense))
    layout = _layout_of(before)
    with next_generation(index, _plan(shards, f"add to {before.fingerprint}", layout)) as journal:
        making = journal.folder
        if journal.get("first_shard") is None:
            journal.note(first_shard=_copy_store(index, making / STORE))
        with _working(SqliteStore(making / STORE)) as store:
            _read(shards, store, int(journal.get("first_shard")), options, on_progress)
            return _write_parts(making, folder, store, layout, options, on_progress)


def encode_index(
    index: Path,
    options: DenseOptions,
    on_progress: Progress = no_progress,
    *,
    name: str = DENSE,
    texts: Callable[[PaperStore], Iterator[Paper]] = PaperStore.all_papers,
    ids: str = "ids.npy",
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
        texts: What gets a vector: by default the papers, in order of id.
        ids: The file with the ids of these, in order, among the columns.
        open_encoder: Opens the encoder.
        parallelism: Where papers are encoded.

    Raises:
        IndexUnusableError: There is no index.
        ModelError: The model cannot be found or loaded.
        SourceError: Given vectors are missing or broken.
        BuildError: Too many given vectors cannot be used, or the disk is full, or another build is running.
    """
    manifest = Manifest.read(index)
    with (
        _adding_folder(index, name) as building,
        contextlib.closing(open_store(index)) as store,
        VectorCache(index / CACHE, name) as cache,
    ):
        return build_vectors(
            building,
            cache,
            lambda: texts(store),
            manifest.fingerprint,
            generation_of(index) / COLUMNS / ids,
            options,
            on_progress,
            open_encoder=open_encoder,
            parallelism=parallelism,
        )


@contextlib.contextmanager
def _adding_folder(index: Path, name: str) -> Iterator[Path]:
    """The folder of a part in the next generation of an index, in which everything else stays as it is."""
    before = generation_of(index)
    plan = {"what": f"make {name}", "of": before.name, "fingerprint": Manifest.read(index).fingerprint}
    with next_generation(index, plan) as journal:
        folder = journal.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
        manifest = Manifest.read(index)
        for path in before.iterdir():
            if path.is_dir() and path.name != name:
                link_folder(path, journal.folder / path.name)
            elif not path.is_dir():
                (journal.folder / path.name).unlink(missing_ok=True)
                link(path, journal.folder / path.name)
        if name == DENSE and manifest.url:  # a server has vectors too
            with contextlib.closing(open_store(index)) as store:
                counts, layout = store.counts(), _layout_of(manifest)
                ENGINES[manifest.engine].write(journal.folder, before, store, layout, counts, no_progress)


def _plan(shards: Sequence[Shard], what: str, layout: Layout, **further: object) -> dict[str, object]:
    """What is built from which shards, how: an interrupted build is resumed if this is the same."""
    return {
        "what": what,
        **layout._asdict(),
        **further,
        "shards": [[*identity(shard.path), shard.format] for shard in shards],
    }


def _layout_of(manifest: Manifest) -> Layout:
    return Layout(manifest.engine, manifest.abstract_field, manifest.url, manifest.quantization)


def holds_other_things(out: Path) -> bool:
    """Whether a folder holds more than an interrupted build of an index."""
    return any(not path.name.startswith((MAKING, LOCK, CACHE)) for path in out.iterdir())


def _read(shards: Sequence[Shard], store: PaperStore, first: int, options: BuildOptions, on_progress: Progress) -> None:
    ingest(shards, store, first=first, max_bad=options.max_bad, workers=options.workers, on_progress=on_progress)


def _copy_store(index: Path, path: Path) -> int:
    """Copies the store of an index; returns the number of the next shard.

    Raises:
        IndexUnusableError: It cannot be read.
    """
    try:
        with contextlib.closing(open_file(index)) as store:
            store.check()
            store.copy(path)
            return max(store.shards(), default=0) + 1
    except IndexUnusableError as error:
        raise IndexUnusableError(
            f"{index} is damaged, and nothing was added to it: {error.message}",
            "Build it again from its sources; the existing index was not changed.",
        ) from error


def _write_parts(
    making: Path,
    before: Path,
    store: PaperStore,
    layout: Layout,
    options: BuildOptions,
    on_progress: Progress,
    kept: Path | None = None,
) -> Manifest:
    """Writes the parts of an index whose papers are in their store, which is then finished, and its manifest.

    Args:
        making: The folder of the generation.
        before: That of the generation before, if there is one.
        store: The papers.
        layout: How words are indexed.
        options: The vectors, and the address of the store if it is no file of the index.
        on_progress: Called as the work goes on.
        kept: A generation with the same papers, whose vectors are used if no others are made.
    """
    counts = store.counts()
    if not counts.papers:
        raise SourceError("the sources hold no paper", "Give at least one readable paper record.")
    for folder in (making / COLUMNS, making / ENGINES[layout.engine].FOLDER):
        shutil.rmtree(folder, ignore_errors=True)  # of an interrupted run
    on_progress("listing papers", 0, counts.papers)
    write_rows(making / COLUMNS, store)
    if counts.citances:
        write_citing(making / COLUMNS, sentences_of(store))
    fingerprint = store.fingerprint()
    shutil.rmtree(making / DENSE, ignore_errors=True)
    if options.dense is not None:
        (making / DENSE).mkdir()
        with VectorCache(making.parent / CACHE, DENSE) as cache:
            build_vectors(
                making / DENSE,
                cache,
                store.all_papers,
                fingerprint,
                making / COLUMNS / "ids.npy",
                options.dense,
                on_progress,
                parallelism=options.encoders,
            )
    elif kept is not None:
        link_folder(kept / DENSE, making / DENSE)
    remark = ENGINES[layout.engine].write(making, before, store, layout, counts, on_progress)
    on_progress("checking", 0, 1)
    made = {COLUMNS, DENSE, *(engine.FOLDER for _, engine in ENGINES.items())}
    other = kept or before
    for folder in other.iterdir() if other.is_dir() else ():
        # What another command made of the index: it says itself of which papers it is.
        if folder.is_dir() and folder.name not in made:
            link_folder(folder, making / folder.name)
    manifest = _manifest(store, making, fingerprint, counts, layout, options.store, remark)
    store.finish()
    manifest.write(making)
    on_progress("checking", 1, 1)
    return manifest


def _manifest(
    store: PaperStore,
    making: Path,
    fingerprint: str,
    counts: Counts,
    layout: Layout,
    address: str | None,
    remark: str,
) -> Manifest:
    """The manifest of an index whose parts are written; it writes the quarantine, too."""
    sources = list(store.shards().values())
    return Manifest(
        citerec=__version__,
        engine=layout.engine,
        abstract_field=layout.abstract_field,
        url=layout.url,
        quantization=layout.quantization,
        remark=remark,
        store=address,
        fingerprint=fingerprint,
        counts=IndexCounts(
            **asdict(counts),
            duplicates=sum(source.papers for source in sources) - counts.papers,
            bad=write_quarantine(store, making / QUARANTINE),
        ),
        sources=sources,
        checksums={
            str(path.relative_to(making)): checksum(path)
            for name in (COLUMNS, ENGINES[layout.engine].FOLDER)
            for path in sorted((making / name).rglob("*"))
            if path.is_file()
        },
    )


@contextlib.contextmanager
def _working(store: Store) -> Iterator[Store]:
    """Closes the store of an index that is being made."""
    try:
        yield store
    finally:
        with contextlib.suppress(sqlite3.Error):
            store.close()


def _unread_shards(
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
