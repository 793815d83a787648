"""The interface of the engines that write and search the words of an index, what they share, and their registry."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from citerec.contexts.topic import clean
from citerec.corpus.store import Counts, PaperStore, SearchableCitance
from citerec.files.progress import Progress
from citerec.files.registry import Registry
from citerec.files.resume import read_json
from citerec.index.columns import CITING, COLUMNS, PaperRows, Rows, mapped
from citerec.index.manifest import FILE_NAME, Layout, Manifest, generation_of
from citerec.index.vectors import Vectors
from citerec.index.words.analysis import terms_of
from citerec.models.encoder import paper_text
from citerec.records import Filters, Paper

Floats = NDArray[np.float64]

_REPORTED = 2000  # documents

WORDS = "words"
"""The folder of the words in an index."""

PAPERS, CITANCES = "papers", "citances"
"""What an engine holds: a document for each paper, and one for each citing sentence."""

TEXT, TITLE, ABSTRACT, CITANCE = "contents", "title", "abstract", "citance"
"""The fields of words: three of papers, one of citing sentences. Anserini calls title and abstract `contents`, too."""

ID, YEAR, CITATIONS, FIELD, VENUE = "id", "year", "citations", "field", "venue"
KEY, CITING_PAPER, CITING_YEAR = "key", "citing", "citing_year"
"""What engines with filters of their own keep of a document: of its paper, and of the sentence that it is."""

DEPTH = 1000
"""How deep both lists are read before the scores of a paper and its citances are added up; and how many of the best
citing sentences count in the signals for rankers.

Scores must not depend on k, so this is not a multiple of k.
"""

_SLACK = 16  # hits with equal scores: more are found, so that ties at the end are settled by id

Searchable = Paper | SearchableCitance
"""What a document is made of."""


def expected_of(counts: Counts) -> dict[str, int]:
    """How many documents of `PAPERS` and `CITANCES` an engine holds, if it holds any of them."""
    return {kind: count for kind, count in ((PAPERS, counts.papers), (CITANCES, counts.citances)) if count}


def fields_of(layout: Layout, kind: str) -> list[str]:
    """The fields of words of `PAPERS` or `CITANCES`."""
    return [CITANCE] if kind == CITANCES else [TEXT, TITLE, *[ABSTRACT] * layout.abstract_field]


Key = tuple[str, ...]
"""What names a document: the id of a paper; of a citing sentence also the citing paper's id, and its position."""


def kind_of(field: str) -> str:
    """What has a field of words: `PAPERS` or `CITANCES`."""
    return CITANCES if field == CITANCE else PAPERS


def key_of(item: Searchable) -> Key:
    """What names the document of a paper or a citing sentence."""
    if isinstance(item, SearchableCitance):
        return item.cited.paper_id, item.citing_id, str(item.position)
    return (item.paper_id,)


def texts_of(item: Searchable) -> dict[str, str]:
    """The texts of a paper, or of a citing sentence without its citation markers, by field."""
    if isinstance(item, SearchableCitance):
        return {CITANCE: clean(item.text)}
    return {TEXT: paper_text(item), TITLE: item.title, ABSTRACT: item.abstract or ""}


def payload_of(item: Searchable) -> dict[str, Any]:
    """What filters read of a paper; of a citing sentence what they read of the cited paper, and who cites it when."""
    paper = item if isinstance(item, Paper) else item.cited
    payload: dict[str, Any] = {ID: paper.paper_id, YEAR: paper.year, CITATIONS: paper.citation_count}
    payload |= {FIELD: [name.casefold() for name in paper.fields_of_study], VENUE: paper.venue or ""}
    if isinstance(item, SearchableCitance):
        payload |= {KEY: " ".join(key_of(item)), CITING_PAPER: item.citing_id, CITING_YEAR: item.citing_year}
    return payload


class Condition(NamedTuple):
    """A condition on a field of `payload_of`: one of some values (of `VENUE`: words in a row), or a range of numbers.

    A paper whose number is unknown is in no range.
    """

    field: str
    values: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None


def conditions_of(filters: Filters, kind: str) -> tuple[list[Condition], list[Condition]]:
    """What some filters require of documents of `PAPERS` or `CITANCES`, and what they forbid."""
    newest = filters.as_of_year
    required = [
        Condition(YEAR, low=filters.year_from, high=filters.year_to),
        Condition(CITATIONS, low=filters.min_citations),
        Condition(CITING_YEAR, high=newest if kind == CITANCES else None),
        Condition(FIELD, tuple(map(str.casefold, filters.fields))),
        Condition(VENUE, filters.venues),
    ]
    forbidden = [
        Condition(ID, (*filters.exclude, *filters.citing_ids)),
        Condition(CITING_PAPER, filters.citing_ids),
        Condition(YEAR, low=None if newest is None else newest + 1),
    ]
    required, forbidden = ([one for one in some if one != Condition(one.field)] for some in (required, forbidden))
    return required, forbidden


class Query(NamedTuple):
    """What is searched for, and how.

    Attributes:
        texts: The texts of a topic with their weights.
        fields: The weights of the fields of papers.
        citances: The weight of citing sentences; 0 if they are not searched.
        decay: The weight of each further citing sentence of a paper, against its better one.
        bm25: k1 and b of BM25.
    """

    texts: Sequence[tuple[str, float]]
    fields: Mapping[str, float]
    citances: float = 0.0
    decay: float = 0.0
    bm25: tuple[float, float] = (1.2, 0.75)

    def weights(self, kind: str) -> Mapping[str, float]:
        """The weights of the fields of `PAPERS` or `CITANCES`."""
        return {CITANCE: 1.0} if kind == CITANCES else self.fields


class Hits(NamedTuple):
    """The rows of papers that were found, best first, with their scores and the engine's documents, (hits,) each."""

    rows: Rows
    scores: Floats
    documents: NDArray[Any]

    def taken(self, places: Rows) -> "Hits":
        """The hits at some places, in this order."""
        return Hits(self.rows[places], self.scores[places], self.documents[places])


NOTHING = Hits(np.empty(0, np.int64), np.empty(0), np.empty(0))
Find = Callable[[int], Hits]
"""Finds as many of the best documents as are asked for, ties in any order."""


def settled(find: Find | None, k: int) -> Hits:
    """The first k hits of an engine that orders ties as it likes; here they are ordered by paper id.

    Hits of papers that the index lacks, of row -1, are left out: while an engine is updated it may have some.
    """
    if find is None:
        return NOTHING
    wanted = k + _SLACK
    while len((hits := find(wanted)).scores) == wanted and hits.scores[-1] == hits.scores[k - 1]:
        wanted *= 4
    first = hits.taken(np.lexsort((hits.rows, -hits.scores))[:k])
    return first.taken(np.flatnonzero(first.rows >= 0))


class SearchHits(NamedTuple):
    """What a search found: papers by their own words, citing sentences, each with the row of the cited paper.

    Only citing sentences that score `least` or more count in the signals for rankers.
    """

    papers: Hits
    citances: Hits = NOTHING
    least: float = 0.0


class Engine(ABC):
    """Writes the words of an index, and opened on a generation searches them. Searches are safe in several threads.

    Args:
        folder: The folder of the generation.
        manifest: Its manifest.
        rows: Its papers.

    Attributes:
        name: Its name in `citerec index build --engine`.

    Raises:
        IndexUnusableError: The words are missing or damaged.
    """

    name: ClassVar[str]

    def __init__(self, folder: Path, manifest: Manifest, rows: PaperRows) -> None:
        self._folder, self._manifest, self._rows = folder / WORDS, manifest, rows

    @classmethod
    @abstractmethod
    def write(cls, folder: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress) -> None:
        """Writes the words of a store into the folder of the next generation, whose columns and vectors are there.

        Args:
            folder: The folder of the generation, in that of the index.
            store: The papers.
            layout: How words are written.
            counts: The counts of the store.
            on_progress: Called as the work goes on.
        """

    @classmethod
    def vectors(cls, folder: Path, _manifest: Manifest, _rows: PaperRows, probe: int | None) -> Vectors:
        """The vectors of a folder of an index, to search; `probe` is how far an index over them is searched."""
        return Vectors(folder, probe)

    def close(self) -> None:
        """Closes files, if any have to be closed."""
        return

    def search(self, query: Query, k: int, filters: Filters) -> SearchHits | None:
        """The k best papers, and as many citing sentences as tell their scores; None if the query has no word."""
        depth = max(DEPTH, k) if query.citances else k
        own = self._finder(PAPERS, query, filters)
        said = self._finder(CITANCES, query, filters) if query.citances else None
        return SearchHits(settled(own, depth), settled(said, depth)) if own or said else None

    def _finder(self, kind: str, query: Query, filters: Filters) -> Find | None:
        """Finds the best documents of `PAPERS` or `CITANCES`; None if no field with a weight has a word."""
        raise NotImplementedError

    def sentence(self, document: Any) -> tuple[str, int]:
        """The citing paper of a document of `CITANCES`, and the position of the sentence among those of that paper."""
        _, citing_id, position = str(document).split(" ")  # its `KEY`
        return citing_id, int(position)

    @abstractmethod
    def term_scores(self, query: Query, field: str, terms: Sequence[str], keys: Sequence[Key]) -> Floats:
        """The BM25 scores of some terms in a field of some documents, (documents, terms); 0 where it lacks them."""

    def terms_of(self, text: str) -> Sequence[str]:
        """The terms of a text, as the engine analyses it."""
        return [term for term in terms_of(text) if term is not None]


ENGINES: Registry[type[Engine]] = Registry(
    "engine",
    {
        "embedded": "citerec.index.words.embedded:EmbeddedWords",
        "lucene": "citerec.index.words.lucene:LuceneWords",
        "qdrant": "citerec.index.words.qdrant:QdrantWords",
    },
)
"""Every engine, by name."""


def changes_for(now: Path, layout: Layout, engine: str) -> dict[str, list[str]] | None:
    """The ids of the papers that changed since the current generation, in order; also of those that are gone.

    Args:
        now: The folder of the next generation.
        layout: How its words are written.
        engine: What writes them.

    Returns:
        Under `PAPERS` those whose record, as far as it is searched, is another. Under `CITANCES` those whose citing
        sentences, or what filters read of them, are others. None if all is to be written: there are no such words yet.
    """
    before = generation_of(now.parent)
    manifest = read_json(before / FILE_NAME) or {}
    if manifest.get("engine") != engine or manifest.get("abstract_field") != layout.abstract_field:
        return None
    different = functools.partial(_different, before / COLUMNS, now / COLUMNS)
    texts, cited = different("digests"), different(f"{CITING}/sentence_digests")
    return {PAPERS: sorted(texts), CITANCES: sorted(texts | cited)}


def _different(before: Path, now: Path, name: str) -> set[str]:
    """The papers whose digests are not the same in two folders of columns, or that only one of them has."""
    ids = [mapped(folder / "ids.npy") for folder in (before, now)]
    row = np.dtype([("id", f"S{max(one.itemsize for one in ids)}"), ("digest", np.uint64)])
    keys = []
    for folder, of_folder in zip((before, now), ids, strict=True):
        rows, path = np.zeros(len(of_folder), row), folder / f"{name}.npy"
        rows["id"] = of_folder
        rows["digest"] = mapped(path) if path.is_file() else 0
        keys.append(rows.view(f"S{row.itemsize}"))
    return {key.decode() for key in np.setxor1d(keys[0], keys[1], assume_unique=True).view(row)["id"].tolist()}


def items_of(
    store: PaperStore, kind: str, changed: Sequence[str] | None, whole: int, on_progress: Progress
) -> Iterator[Searchable]:
    """What an engine writes of `PAPERS` or `CITANCES`: those of the papers that changed, or all if they are None.

    Progress is reported as they are taken; `whole` is how many there are in all.
    """
    items: Iterable[Searchable] = store.all_papers(changed)
    if kind == CITANCES:
        items = store.searchable_citances(only=changed)
    for done, item in enumerate(items, 1):
        yield item
        if done % _REPORTED == 0:
            on_progress("indexing papers" if kind == PAPERS else "indexing citing sentences", done, whole)
