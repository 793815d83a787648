"""Building an index, and changing it: the next generation is made beside the current one (docs/formats.md)."""

import contextlib
import functools
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from citerec.corpus import store as stores
from citerec.corpus.base import IDS, REMOVED, Shard, corpus_of, find_shards
from citerec.corpus.ingest import ingest, write_quarantine
from citerec.corpus.store import PaperStore, SqliteStore
from citerec.errors import InputError, SourceError
from citerec.files.addresses import path_of
from citerec.files.parallel import HERE, Parallelism, Ray, in_parts
from citerec.files.progress import Progress, no_progress
from citerec.files.resume import identity
from citerec.files.writing import writing_file
from citerec.index import manifest as manifests
from citerec.index.base import ENGINES, WORDS
from citerec.index.columns import COLUMNS, write_citing, write_rows
from citerec.index.manifest import DENSE, STORE, IndexCounts, Layout, Manifest, generation_of, is_index, open_store
from citerec.index.vectors import DenseManifest, DenseOptions, VectorBuild, has_vectors, renewal
from citerec.records import Deletion, Paper
from citerec.version import __version__

_LOOKED_UP = 1000
_BIBLIOGRAPHIES = ("bibtex", "csl", "ris", "zotero")
FOLLOWED = 10_000
"""Papers up to which an index follows its bibliographies when they are saved."""


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
    if not manifests.may_hold_index(out):
        raise SourceError(f"{out} exists and is not an index", "Give another --out, or remove it first.")
    if options.store and not stores.is_mongodb(options.store):
        remedy = "Write --store mongodb://HOST/DATABASE, or leave it out."
        raise InputError("the store of an index is a file in the index, or a MongoDB database", remedy)
    start = sources[0] if len(sources) == 1 and is_index(sources[0]) else None
    if start and has_vectors(generation_of(start) / DENSE) and options.dense == DenseOptions():
        options = replace(options, dense=None)  # no others are asked for: its own are kept
    shards = [] if start else find_shards(sources, options.format_name, options.citances)
    return _next_generation(out, start, shards, options, on_progress)


def add_to_index(
    sources: Sequence[Path], index: Path, options: BuildOptions | None = None, on_progress: Progress = no_progress
) -> Manifest:
    """Upserts the papers of further sources into an index: the result is that of a build from all sources together.

    Of the folders of corpora that the index was built from, only those shards are read that it has not read yet, such
    as those of later updates. The old index is kept until the new one is complete. Other errors are those of
    `build_index`.

    Args:
        sources: Files and folders; by default, unless there are `options.citances`, all corpora that it was built from.
        index: The index.
        options: How to read.
        on_progress: Called as the work goes on.

    Returns:
        The manifest of the index; that from before if there is nothing new.

    Raises:
        IndexUnusableError: There is no index to add to, or it is damaged.
        SourceError: A shard that the index has read is gone or changed: it has to be built again.
        InputError: No source is given, and the index was not built from corpora.
    """
    options = options or BuildOptions()
    before = changeable(index)
    corpora = {corpus_of(path_of(one.path).resolve()) for one in before.sources}  # they may have updates now
    if options.citances or any(source.resolve() not in corpora for source in sources):
        shards = find_shards(sources, options.format_name, options.citances)
    elif not (shards := _unread_shards(index, before, sources, options.format_name)):
        return before
    return _updated(index, before, shards, options, on_progress)


class Follower:
    """Adds to an index what is new in the bibliographies that it was built from, when they are saved.

    An index of more than `FOLLOWED` papers is not followed. What cannot be read is not tried again until it is saved
    again.

    Args:
        index: The index.
    """

    def __init__(self, index: Path) -> None:
        self.index, self._tried = index, list[Any]()

    def saved(self) -> list[Path]:
        """The bibliographies that were saved since the index was made, and not tried yet.

        Raises:
            IndexUnusableError: The index is damaged.
        """
        manifest, made = Manifest.read(self.index), generation_of(self.index) / manifests.FILE_NAME
        if manifest.counts.papers > FOLLOWED:
            return []
        saved = []
        for path, size in {one.path: one.bytes for one in manifest.sources if one.format in _BIBLIOGRAPHIES}.items():
            with contextlib.suppress(OSError):  # it is gone
                status, file = path_of(path).stat(), path_of(path)
                is_saved = status.st_size != size or status.st_mtime_ns > made.stat().st_mtime_ns
                saved += [file] if is_saved and identity(file) not in self._tried else []
        return saved

    def follow(self, saved: Sequence[Path]) -> None:
        """Adds what is new in some of them; errors as for `add_to_index`."""
        self._tried += map(identity, saved)
        add_to_index(saved, self.index, BuildOptions(workers=HERE))


def remove_papers(ids: Path, index: Path, on_progress: Progress = no_progress) -> Manifest:
    """Removes papers from an index, with their abstracts and TLDRs; errors as for `add_to_index`.

    Sentences about them are no longer searched. What they said of others stays. A later record brings a paper back.

    Args:
        ids: A file with the id of a paper in each line; unknown ones are ignored.
        index: The index.
        on_progress: Called as the work goes on.

    Returns:
        The manifest of the index; that from before if it has none of the papers.
    """
    before = changeable(index)
    with contextlib.closing(open_store(index)) as store:
        paper_ids = (line.record.key for line in IDS.read(ids) if isinstance(line.record, Deletion))
        if not any(map(store.years, in_parts(paper_ids, _LOOKED_UP))):
            return before
    return _updated(index, before, [Shard(ids, REMOVED)], BuildOptions(), on_progress)


def changeable(index: Path) -> Manifest:
    """The manifest of an index whose papers can be copied; InputError if its records are in a MongoDB database."""
    manifest = Manifest.read(index)
    if manifest.store:
        command = f"citerec index build … --store mongodb://HOST/NEW --out {index}"
        fault = f"{index} keeps its records in {stores.name_of(manifest.store)}: it cannot be changed"
        raise InputError(fault, f"Build it again, into another database: {command}")
    return manifest


def _updated(
    index: Path, before: Manifest, shards: list[Shard], options: BuildOptions, on_progress: Progress
) -> Manifest:
    """The next generation of an index, with what some shards change; its papers stay where they are."""
    vectors = generation_of(index) / DENSE
    dense = renewal(vectors, options.dense) if has_vectors(vectors) else options.dense
    layout = Layout.model_validate(before.model_dump(include=set(Layout.model_fields)))
    options = replace(options, store=None, layout=layout, dense=dense)
    return _next_generation(index, index, shards, options, on_progress)


def _next_generation(
    index: Path, start: Path | None, shards: Sequence[Shard], options: BuildOptions, on_progress: Progress
) -> Manifest:
    """Makes the next generation of an index; an interrupted call with the same arguments is resumed.

    Args:
        index: The index.
        start: The index whose papers it has before the shards are read, perhaps itself; None for no papers.
        shards: What is read.
        options: How to read and write, the vectors, and the address of the store if it is no file of the index.
        on_progress: Called as the work goes on.
    """
    plan = {
        "start": start and changeable(start).fingerprint,
        "shards": [[*identity(shard.path), shard.format] for shard in shards],
        "store": options.store and stores.address_of(options.store),
        "layout": options.layout.model_dump(),
    }
    _ = ENGINES[options.layout.engine]  # an unknown one ends here, not after hours
    with manifests.next_generation(index, plan) as journal:
        making = journal.folder
        if start and journal.notes.get("first_shard") is None:
            journal.note(first_shard=_copy_store(start, making / STORE))
        if start and start.resolve() != index.resolve() and (start / manifests.CACHE).is_file():
            shutil.copy2(start / manifests.CACHE, index / manifests.CACHE)
        store = stores.open_store(options.store) if options.store else SqliteStore(making / STORE)
        with contextlib.closing(store):
            ingest(shards, store, journal.notes.get("first_shard") or 1, options.max_bad, options.workers, on_progress)
            return _write_parts(making, start, store, options, on_progress)


def encode_index(
    index: Path,
    options: DenseOptions,
    on_progress: Progress = no_progress,
    *,
    name: str = DENSE,
    texts: Callable[[PaperStore], Iterator[Paper]] = PaperStore.all_papers,
    ids: str = "ids.npy",
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
        parallelism: Where papers are encoded.

    Raises:
        IndexUnusableError: There is no index.
        ModelError: The model cannot be found or loaded.
        SourceError: Given vectors are missing or broken.
        BuildError: Too many given vectors cannot be used, or the disk is full, or another build is running.
    """
    manifest, before = Manifest.read(index), generation_of(index)
    plan = {"what": f"make {name}", "of": before.name, "fingerprint": manifest.fingerprint}
    with manifests.next_generation(index, plan) as journal, contextlib.closing(open_store(index)) as store:
        manifests.link_folder(before, journal.folder, but=name)
        folder, papers, fingerprint = journal.folder / name, functools.partial(texts, store), manifest.fingerprint
        dense = options.for_papers(manifest.counts.papers)
        vectors = VectorBuild(folder, papers, fingerprint, dense, on_progress, ids, parallelism).make()
        if name == DENSE and manifest.url:  # a server has vectors too
            ENGINES[manifest.engine].write(journal.folder, store, manifest, store.counts(), no_progress)
        return vectors


def _copy_store(index: Path, path: Path) -> int:
    """Copies the store of an index; returns the number of the next shard.

    Raises:
        IndexUnusableError: It cannot be read.
    """
    with contextlib.closing(SqliteStore(generation_of(index) / STORE, read_only=True)) as store:
        store.check()
        with writing_file(path) as partial:
            shutil.copyfile(store.path, partial)
        return max(store.shards(), default=0) + 1


def _write_parts(
    making: Path, start: Path | None, store: PaperStore, options: BuildOptions, on_progress: Progress
) -> Manifest:
    """Writes the parts of an index whose papers are in their store, which is then finished, and its manifest.

    Args:
        making: The folder of the generation.
        start: The index whose papers it had first, perhaps itself: their vectors are kept if no others are made.
        store: The papers.
        options: How words are indexed, the vectors, and the address of the store if it is no file of the index.
        on_progress: Called as the work goes on.
    """
    layout, counts = options.layout, store.counts()
    kept = generation_of(start or making.parent)
    if not counts.papers:
        raise SourceError("the sources hold no paper", "Give at least one readable paper record.")
    for name in (COLUMNS, WORDS, DENSE):
        shutil.rmtree(making / name, ignore_errors=True)  # of an interrupted run
    on_progress("listing papers", 0, counts.papers)
    write_rows(making / COLUMNS, store)
    if counts.citances:
        write_citing(making / COLUMNS, store)
    fingerprint = store.fingerprint()
    if options.dense is not None:
        folder, dense = making / DENSE, options.dense.for_papers(counts.papers)
        on = options.workers if isinstance(options.workers, Ray) else HERE  # more processes do not help an encoder
        VectorBuild(folder, store.all_papers, fingerprint, dense, on_progress, parallelism=on).make()
    elif start:
        manifests.link_folder(kept / DENSE, making / DENSE)
    ENGINES[layout.engine].write(making, store, layout, counts, on_progress)
    on_progress("checking", 0, 1)
    for folder in kept.iterdir() if kept.is_dir() else ():
        # What another command made of the index: it says itself of which papers it is.
        if folder.is_dir() and folder.name not in (COLUMNS, WORDS, DENSE):
            manifests.link_folder(folder, making / folder.name)
    # Of a bibliography that was read again, since it was saved, the last time counts.
    shards = store.shards().items()
    sources = list({one.path if one.format in _BIBLIOGRAPHIES else number: one for number, one in shards}.values())
    duplicates = max(0, sum(source.papers for source in sources) - counts.papers)
    bad = write_quarantine(store, making / "quarantine.jsonl")
    manifest = Manifest(
        citerec=__version__,
        **layout.model_dump(),
        store=options.store and stores.address_of(options.store),
        fingerprint=fingerprint,
        counts=IndexCounts(**asdict(counts), duplicates=duplicates, bad=bad),
        sources=sources,
        checksums=manifests.checksums(making, COLUMNS, WORDS),
    )
    store.finish()
    manifest.write(making)
    on_progress("checking", 1, 1)
    return manifest


def _unread_shards(index: Path, manifest: Manifest, sources: Sequence[Path], format_name: str | None) -> list[Shard]:
    """The shards of some folders that an index has not read; by default of all corpora that it was built from.

    Raises:
        InputError: The index was not built from folders of datasets.
        SourceError: What it has read there is gone or changed, or new shards come before it.
    """
    sizes = {path_of(source.path).resolve(): source.bytes for source in manifest.sources}
    folders = list(sources) or list(dict.fromkeys(filter(None, map(corpus_of, sizes))))
    if not folders:
        fault = f"{index} was not built from folders of datasets, so it is not known where its updates are"
        raise InputError(fault, f"Name what is new: citerec index add {index} SOURCE, or build the index again.")
    unread: list[Shard] = []
    for folder in folders:
        shards = {shard.path.resolve(): shard for shard in find_shards([folder], format_name)}
        read = [path for path in shards if path in sizes]
        changed = [path for path in read if sizes[path] != path.stat().st_size]
        gone = sorted(path for path in sizes.keys() - shards if path.is_relative_to(folder.resolve()))
        # Later records win, so what is new must come last.
        early = [path for path in list(shards)[: len(read)] if path not in sizes]
        if faulty := [*changed, *gone, *early]:
            fault = f"{faulty[0]} has changed, is gone, or came before others, since {index} read {folder}"
            raise SourceError(fault, f"Build the index again: citerec index build {folder} --out {index}")
        unread += list(shards.values())[len(read) :]
    return unread
