"""Filling Lucene's two indexes from a paper store, and the manifest of the index that they are part of."""

import heapq
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from citerec.corpus.ingest import write_quarantine
from citerec.corpus.store import Counts, PaperStore, SearchableCitance, SearchableText
from citerec.errors import IndexUnusableError
from citerec.files.progress import Progress
from citerec.files.writing import remove
from citerec.retrieve.lucene.fields import ANALYZER, ID, CitanceDocument, PaperDocument
from citerec.retrieve.lucene.jvm import java_class
from citerec.retrieve.lucene.writer import LuceneWriter, Mark, count_documents
from citerec.retrieve.manifest import IndexCounts, Manifest
from citerec.retrieve.staging import LUCENE
from citerec.version import __version__

QUARANTINE = "quarantine.jsonl"
_COMMIT_EVERY = 100_000
_PROGRESS_EVERY = 2000

Item = TypeVar("Item")
ItemsAfter = Callable[[str], Iterator[tuple[str, Item | None]]]
"""Items with the ids of their papers, in order of id, above an id; None for a paper whose items are only removed."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is written into Lucene's indexes.

    Attributes:
        number: Tells one run from another: an interrupted one goes on after its last commit.
        abstract_field: Whether abstracts are a field of their own.
        papers: Ids of the papers to be written again, also of those that are no longer there, in order; None for all
            papers, where no index is there.
        cited: The same for citances: ids of the papers that they cite.
    """

    number: int
    abstract_field: bool
    papers: Sequence[str] | None = None
    cited: Sequence[str] | None = None


def write_lucene(store: PaperStore, path: Path, run: Run, counts: Counts, on_progress: Progress) -> None:
    """Writes both Lucene indexes in a folder from the store, or brings them up to date."""
    path.mkdir(exist_ok=True)
    make_document = partial(PaperDocument, abstract_field=run.abstract_field)
    with LuceneWriter[SearchableText](path / "papers", make_document) as papers:
        texts = partial(_texts, store, run.papers)
        _write(papers, texts, run.number, partial(_advance, on_progress, "indexing papers", counts.papers))
    if counts.citances:
        with LuceneWriter[SearchableCitance](path / "citances", CitanceDocument) as citances:
            found = partial(_citances, store, run.cited)
            _write(citances, found, run.number, partial(_advance, on_progress, "indexing citances", counts.citances))
    else:
        shutil.rmtree(path / "citances", ignore_errors=True)


def _texts(store: PaperStore, only: Sequence[str] | None, after: str) -> Iterator[tuple[str, SearchableText | None]]:
    return _replaced(only, after, ((one.paper_id, one) for one in store.searchable_texts(after, only)))


def _citances(
    store: PaperStore, only: Sequence[str] | None, after: str
) -> Iterator[tuple[str, SearchableCitance | None]]:
    return _replaced(only, after, ((one.cited.paper_id, one) for one in store.searchable_citances(after, only)))


def _advance(on_progress: Progress, doing: str, whole: int, done: int) -> None:
    on_progress(doing, done, whole)


def _replaced(
    only: Sequence[str] | None, after: str, found: Iterator[tuple[str, Item]]
) -> Iterator[tuple[str, Item | None]]:
    """What was found; for the papers of a run that are not all, None comes before what was found of each."""
    if only is None:
        return iter(found)
    return heapq.merge(((paper_id, None) for paper_id in only if paper_id > after), found, key=itemgetter(0))


def _write(writer: LuceneWriter[Item], items_after: ItemsAfter[Item], run: int, advance: Callable[[int], None]) -> None:
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
        if item is None:
            writer.delete(ID, paper_id)
        else:
            writer.add(item)
        uncommitted += 1
        if done % _PROGRESS_EVERY == 0:
            advance(done)
    writer.commit(Mark(run, finished=True), purge=run > 1)


def check_lucene(staging: Path, counts: Counts) -> None:
    """Raises an error unless Lucene has all documents: an index to which papers are added may be damaged."""
    for name, expected in (("papers", counts.papers), ("citances", counts.citances)):
        found = count_documents(staging / LUCENE / name) if expected else 0
        if found != expected:
            remove(staging)
            raise IndexUnusableError(
                f"Lucene has {found:,} {name} where the store has {expected:,}: the index was damaged before",
                "Build it again from its sources; the existing index was not changed.",
            )


def manifest_of(
    store: PaperStore,
    staging: Path,
    fingerprint: str,
    counts: Counts,
    *,
    abstract_field: bool,
    address: str | None = None,
) -> Manifest:
    """The manifest of an index whose parts are written; it writes the quarantine, too."""
    sources = list(store.shards().values())
    return Manifest(
        citerec=__version__,
        lucene=str(java_class("org.apache.lucene.util.Version").LATEST.toString()),
        analyzer=ANALYZER,
        abstract_field=abstract_field,
        store=address,
        fingerprint=fingerprint,
        counts=IndexCounts(
            **asdict(counts),
            duplicates=sum(source.papers for source in sources) - counts.papers,
            bad=write_quarantine(store, staging / QUARANTINE),
        ),
        sources=sources,
    )
