"""Index directories: building them beside their place, adding to them, opening them (docs/index-format.md)."""

import contextlib
import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import orjson
from filelock import FileLock, Timeout

from citerec.corpus.ingest import Progress, ingest, write_quarantine
from citerec.corpus.sources import Shard, find_shards
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import Counts, PaperStore, SearchableCitance, SearchableText, place_of
from citerec.errors import BuildError, IndexUnusableError, SourceError
from citerec.retrieve.jvm import java_class, java_failures, start
from citerec.retrieve.lucene_fields import ANALYZER, ID, CitanceDocument, PaperDocument
from citerec.retrieve.lucene_writer import LuceneWriter, Mark, count_documents
from citerec.retrieve.manifest import IndexCounts, Manifest, Source, is_index
from citerec.version import __version__

STORE = "papers.sqlite"
LUCENE = "lucene"
QUARANTINE = "quarantine.jsonl"
_PLAN = "plan.json"
_BESIDE_PAPERS = ("s2ag-abstracts", "s2ag-tldrs", "s2ag-citations")
_COMMIT_EVERY = 100_000
_PROGRESS_EVERY = 2000
_PATIENCE_SECONDS = 10.0

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to read and build.

    Attributes:
        format_name: Format of the files, where it is not to be recognised.
        max_bad: Share of bad records above which the work stops.
        workers: Processes that read; None for one a processor.
    """

    format_name: str | None = None
    max_bad: float = 0.05
    workers: int | None = None


def no_progress(_doing: str, _done: float, _whole: float) -> None:
    """Tells nobody."""


def build_index(
    sources: Sequence[Path], out: Path, options: BuildOptions | None = None, progress: Progress = no_progress
) -> Manifest:
    """Builds an index of all papers of some sources, in place of what stood at `out`.

    What stood there stays whole until the new index is. A build that was stopped goes on where it stopped.

    Args:
        sources: Files and folders: docs/formats.md.
        out: The index directory.
        options: How to read and build.
        progress: Told of the work done.

    Raises:
        SourceError: A source is missing, broken, empty, or of no known format.
        BuildError: Too many records are bad, or the disk is full, or another build is at work.
    """
    options = options or BuildOptions()
    out = _followed(out)
    if out.exists() and not is_index(out) and (not out.is_dir() or any(out.iterdir())):
        raise SourceError(f"{out} exists and is no index", "Give another --out, or remove it first.")
    shards = find_shards(sources, options.format_name)
    with _staging(out, _plan(shards, "build")) as staging:
        return _fill(staging, shards, options, progress)


def add_to_index(
    sources: Sequence[Path],
    index: Path,
    options: BuildOptions | None = None,
    progress: Progress = no_progress,
) -> Manifest:
    """Upserts the papers of further sources into an index, without building the rest anew.

    The outcome is that of a build from all sources together. The old index stays whole until the new one is.

    Raises:
        IndexUnusableError: There is no index to add to.
        SourceError: A source is missing, broken, empty, or of no known format.
        BuildError: Too many records are bad, or the disk is full, or another build is at work.
    """
    options = options or BuildOptions()
    index = _followed(index)
    recover(index)
    before = Manifest.read(index)
    shards = find_shards(sources, options.format_name)
    with _staging(index, _plan(shards, f"add to {before.fingerprint}"), copy_from=index) as staging:
        return _fill(staging, shards, options, progress)


def recover(index: Path) -> None:
    """Puts back an index whose exchange for a new one was cut short between two renames."""
    previous = _beside(index, "previous")
    if previous.exists() and not index.exists():
        # Under the lock: a builder may just now be between the two renames, and needs a moment.
        with _locked(index, patience=_PATIENCE_SECONDS):
            _put_back(previous, index)


def _put_back(previous: Path, index: Path) -> None:
    """To be called under the lock."""
    if previous.exists() and not index.exists():
        previous.rename(index)


def open_store(index: Path) -> SqliteStore:
    """The paper store of an index directory, to read.

    Raises:
        IndexUnusableError: There is none, or its file is damaged.
    """
    try:
        return SqliteStore(index / STORE, read_only=True)
    except sqlite3.Error as error:
        raise IndexUnusableError(
            f"the paper store of {index} cannot be read ({error})",
            f"Build it again: citerec index build … --out {index}",
        ) from error


def _followed(path: Path) -> Path:
    """A path whose link is followed: it is the directory that is exchanged, not the link to it."""
    return path.resolve() if path.is_symlink() else path


def _fill(staging: Path, shards: list[Shard], options: BuildOptions, progress: Progress) -> Manifest:
    store = SqliteStore(staging / STORE)
    try:
        plan = orjson.loads((staging / _PLAN).read_bytes())
        first = int(plan["first_shard"])
        ingest(shards, store, first=first, max_bad=options.max_bad, workers=options.workers, progress=progress)
        counts = store.counts()
        if not counts.papers:
            raise SourceError("the sources hold no paper", "Give at least one readable paper record.")
        start()
        with java_failures("writing the Lucene index"):
            write_lucene(store, staging / LUCENE, first, counts, progress)
            _check_lucene(staging, counts)
        progress("checking", 0, 1)
        sources = [Source(**asdict(shard)) for shard in store.finished_shards().values()]
        read = sum(source.read for source in sources if source.format not in _BESIDE_PAPERS)
        manifest = Manifest(
            citerec=__version__,
            lucene=str(java_class("org.apache.lucene.util.Version").LATEST.toString()),
            analyzer=ANALYZER,
            fingerprint=store.fingerprint(),
            counts=IndexCounts(
                **asdict(counts),
                duplicates=read - counts.papers,
                bad=write_quarantine(store, staging / QUARANTINE),
            ),
            sources=sources,
        )
        store.finish()
    finally:
        with contextlib.suppress(sqlite3.Error):
            store.close()
    manifest.write(staging)
    progress("checking", 1, 1)
    return manifest


def _check_lucene(staging: Path, counts: Counts) -> None:
    """Whether Lucene has all of it: an index to which was added may have been damaged before."""
    for name, expected in (("papers", counts.papers), ("citances", counts.citances)):
        found = count_documents(staging / LUCENE / name) if expected else 0
        if found != expected:
            shutil.rmtree(staging)
            raise IndexUnusableError(
                f"Lucene has {found:,} {name} where the store has {expected:,}: the index was damaged before",
                "Build it again from its sources; what stood there was left as it is.",
            )


def write_lucene(store: PaperStore, path: Path, first: int, counts: Counts, progress: Progress) -> None:
    """Brings both Lucene indexes up to the store: all of it, or what changed since the first shard of this run."""
    path.mkdir(exist_ok=True)
    since = place_of(first) if first > 1 else 0
    with LuceneWriter[SearchableText](path / "papers", PaperDocument) as papers:
        told = _told(progress, "indexing papers", counts.papers)
        _write(
            papers,
            lambda after: store.searchable_texts(after, since),
            lambda text: text.paper_id,
            first,
            told,
        )
    if counts.citances:
        with LuceneWriter[SearchableCitance](path / "citances", CitanceDocument) as citances:
            told = _told(progress, "indexing citances", counts.citances)
            _write(
                citances,
                lambda after: store.searchable_citances(after, since),
                lambda citance: citance.cited.paper_id,
                first,
                told,
            )


def _write(
    writer: LuceneWriter[Item],
    items_after: Callable[[str], Iterator[Item]],
    paper_of: Callable[[Item], str],
    run: int,
    told: Callable[[int], None],
) -> None:
    """Writes the items of all papers, in order of paper id; goes on after the last commit of the same run."""
    mark = writer.mark
    if mark.run == run and mark.finished:
        return
    paper_id = mark.after if mark.run == run else ""
    uncommitted = 0
    for done, item in enumerate(items_after(paper_id), 1):
        if (next_id := paper_of(item)) != paper_id:
            if uncommitted >= _COMMIT_EVERY:
                writer.commit(Mark(run, paper_id))
                uncommitted = 0
            paper_id = next_id
            if run > 1:
                writer.delete(ID, paper_id)
        writer.add(item)
        uncommitted += 1
        if done % _PROGRESS_EVERY == 0:
            told(done)
    writer.commit(Mark(run, finished=True), purge=run > 1)


def _told(progress: Progress, doing: str, whole: int) -> Callable[[int], None]:
    return lambda done: progress(doing, done, whole)


def _plan(shards: list[Shard], what: str) -> dict[str, object]:
    files = [(str(shard.path.resolve()), shard.format, *_size_and_time(shard.path)) for shard in shards]
    return {"what": what, "citerec": __version__, "shards": [list(file) for file in files]}


def _size_and_time(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _beside(index: Path, what: str) -> Path:
    return index.parent / f".{index.name}.{what}"


@contextlib.contextmanager
def _staging(index: Path, plan: dict[str, object], copy_from: Path | None = None) -> Iterator[Path]:
    """A directory beside the index that takes its place at the end; if stopped, it waits for the same plan."""
    staging = _beside(index, "building")
    with _disk_failures(index), _locked(index):
        previous = _beside(index, "previous")
        _put_back(previous, index)
        if not _goes_on(staging, plan):
            shutil.rmtree(staging, ignore_errors=True)
            _begin(staging, plan, copy_from)
        yield staging
        _sync(staging)
        shutil.rmtree(previous, ignore_errors=True)
        if index.exists():
            index.rename(previous)
        staging.rename(index)
        (index / _PLAN).unlink()
        shutil.rmtree(previous, ignore_errors=True)


def _goes_on(staging: Path, plan: dict[str, object]) -> bool:
    try:
        written = orjson.loads((staging / _PLAN).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return False
    return all(written.get(key) == value for key, value in plan.items())


def _begin(staging: Path, plan: dict[str, object], copy_from: Path | None) -> None:
    staging.mkdir()
    if copy_from is not None:
        shutil.copy2(copy_from / STORE, staging / STORE)
        # Lucene never changes a file that it has written: links do for copies.
        shutil.copytree(copy_from / LUCENE, staging / LUCENE, copy_function=os.link)
    store = SqliteStore(staging / STORE)
    try:
        first = store.next_shard()
    finally:
        store.close()
    (staging / _PLAN).write_bytes(orjson.dumps({**plan, "first_shard": first}))


@contextlib.contextmanager
def _locked(index: Path, patience: float = 0) -> Iterator[None]:
    index.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(_beside(index, "lock"))
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        raise BuildError(
            f"another process is building {index}",
            "Wait for it, or stop it, then run the same command again.",
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _disk_failures(index: Path) -> Iterator[None]:
    remedy = "Make room, then run the same command: it goes on where it stopped."
    try:
        yield
    except sqlite3.Error as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise BuildError(f"no space left for {index} ({error}); nothing else was touched", remedy) from error
        raise BuildError(
            f"the paper store of {index} failed: {error}", "If it goes on, build the index again."
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise BuildError(f"no space left for {index}; nothing else was touched", remedy) from error
        raise BuildError(f"cannot write {index}: {error.strerror or error}", "Check its rights.") from error


def _sync(folder: Path) -> None:
    """Forces a directory's files to the disk, so that the rename that follows never precedes them."""
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
