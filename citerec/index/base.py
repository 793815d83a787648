"""The interface of the engines that write and search the words of an index, what they share, and their registry."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from citerec.contexts.topic import Topic, clean
from citerec.corpus.store import Counts, PaperStore, SearchableCitance
from citerec.errors import SettingsError
from citerec.files.progress import Progress
from citerec.files.registry import Registry
from citerec.files.resume import read_json
from citerec.index.arrays import mapped
from citerec.index.candidates import Candidate, Candidates, Floats
from citerec.index.columns import CITING, COLUMNS
from citerec.index.hits import DEPTH, Hits, added_up, settled
from citerec.index.manifest import FILE_NAME
from citerec.index.vectors.build import paper_text
from citerec.index.vectors.vectors import Vectors
from citerec.index.words.analysis import TopicTexts, no_word, shown, terms_of
from citerec.records import Filters, Match, Paper
from citerec.settings import PartSettings, Weight

if TYPE_CHECKING:
    from citerec.index.opened import OpenIndex

_REPORTED = 2000  # documents

WORDS = "words"
"""The folder of the words in an index."""

PAPERS, CITANCES = "papers", "citances"
"""What an engine holds: a document for each paper, and one for each citing sentence."""

TEXT, TITLE, ABSTRACT, CITANCE = "contents", "title", "abstract", "citance"
"""The fields of words: three of papers, one of citing sentences. Anserini calls title and abstract `contents`, too."""

Searchable = Paper | SearchableCitance
"""What a document is made of."""


def key_of(item: Searchable) -> str:
    """What names a document: the id of a paper, or what `sentence_key` makes of a citing sentence."""
    if isinstance(item, SearchableCitance):
        return sentence_key(item.cited.paper_id, item.citing_id, item.position)
    return item.paper_id


def sentence_key(cited_id: str, citing_id: str, position: int) -> str:
    """What names the document of a citing sentence. Ids have no white space."""
    return f"{cited_id} {citing_id} {position}"


def texts_of(item: Searchable) -> dict[str, str]:
    """The texts of a paper, or of a citing sentence without its citation markers, by field."""
    if isinstance(item, SearchableCitance):
        return {CITANCE: clean(item.text)}
    return {TEXT: paper_text(item), TITLE: item.title, ABSTRACT: item.abstract or ""}


class Bm25Settings(PartSettings):
    """BM25's parameters. Defaults chosen on data/acm dev: docs/results.md."""

    k1: float = Field(default=1.2, ge=0, le=1000, description="how slowly repeats of a word saturate")
    b: float = Field(default=0.75, ge=0, le=1, description="how much long texts are penalised")


class Weights(PartSettings):
    """Weights of a word by its field; 0 leaves the field out.

    Defaults chosen on the dev contexts of data/acm and data/acl: docs/results.md.
    """

    text: Weight = Field(default=1.0, description="title and abstract as one field")
    title: Weight = Field(default=0.35, description="the title alone")
    abstract: Weight = Field(
        default=0.0, description="the abstract alone, in an index built with -c abstract_field=true"
    )
    citances: Weight = Field(default=1.8, description="sentences of other papers that cite the paper")


class WordSettings(TopicTexts):
    """BM25 over the fields of papers and over citing sentences."""

    bm25: Bm25Settings = Bm25Settings()
    weights: Weights = Weights()
    citance_decay: float = Field(
        default=0.3, ge=0, le=1, description="weight of each further citing sentence of a paper, against its better one"
    )


class Layout(NamedTuple):
    """How the words of an index are written.

    Attributes:
        engine: The engine.
        abstract_field: Whether abstracts are a field of their own.
        url: Where a server keeps them; None if the index does.
        quantization: How the server keeps vectors in memory: `none`, `int8` or `binary`.
        shards: The shards of each collection in a cluster; None for the server's default.
        replicas: Copies of each shard; the same.
    """

    engine: str = "embedded"
    abstract_field: bool = False
    url: str | None = None
    quantization: str = "none"
    shards: int | None = None
    replicas: int | None = None

    @property
    def fields(self) -> dict[str, list[str]]:
        """The fields of words of `PAPERS` and `CITANCES`."""
        return {PAPERS: [TEXT, TITLE, *[ABSTRACT] * self.abstract_field], CITANCES: [CITANCE]}


class Words(ABC):
    """An engine: it writes the words of an index, and opened on an index it searches them.

    Searches are safe in several threads; ties are ordered by paper id. A paper scores the weighted sum of BM25 over its
    fields, and of its best citing sentences, each further one decayed:
    `Σ_f w_f · BM25_f + w_citances · Σ_j decay^j · BM25(sentence_j)` over the sentences that pass the filters.

    Args:
        index: The index.
        settings: How it is searched.

    Attributes:
        name: Its name in `citerec index build --engine`.

    Raises:
        IndexUnusableError: The words are missing or damaged.
        SettingsError: No field has a weight, or one that the index lacks, or it was built with other settings.
    """

    name: ClassVar[str]

    def __init__(self, index: "OpenIndex", settings: WordSettings) -> None:
        self.settings = settings
        self._rows, self._filter, self._store = index.rows, index.filter, index.store
        weights, manifest = settings.weights, index.manifest
        own = {TEXT: weights.text, TITLE: weights.title, ABSTRACT: weights.abstract}
        self._fields = {PAPERS: {name: weight for name, weight in own.items() if weight}, CITANCES: {CITANCE: 1.0}}
        self._adds_citances = manifest.counts.citances > 0 and weights.citances > 0
        if not (self._fields[PAPERS] or self._adds_citances):
            raise SettingsError("every weight is 0", "Give one field a weight: -c words.weights.text=1")
        if weights.abstract and not manifest.abstract_field:
            raise SettingsError(
                f"words.weights.abstract is {weights.abstract:g}, but {index.path} has no field of abstracts",
                "Set it to 0, or build the index again with -c abstract_field=true.",
            )

    @classmethod
    @abstractmethod
    def write(
        cls, folder: Path, before: Path, store: PaperStore, layout: Layout, counts: Counts, on_progress: Progress
    ) -> str:
        """Writes the words of a store into the folder of a generation, whose columns and vectors are there.

        Args:
            folder: The folder of the generation.
            before: That of the generation before; it may not exist.
            store: The papers.
            layout: How words are written.
            counts: The counts of the store.
            on_progress: Called as the work goes on.

        Returns:
            What users should know of it; empty for nothing.
        """

    @classmethod
    def vectors(cls, index: "OpenIndex", name: str, probe: int | None) -> Vectors:
        """The vectors of a folder of an index, to search; `probe` is how far an index over them is searched."""
        return Vectors(index.folder / name, probe)

    def search(self, topic: Topic, k: int, filters: Filters, sort: str = "relevance") -> Candidates:
        """The k best candidates, best first; fewer if fewer share a word with the topic and pass the filters.

        Any `sort` (one of `citerec.index.filters.SORTS`) but relevance orders every paper that shares a word with it.
        """
        adds_citances = self._adds_citances and sort == "relevance"
        depth = len(self._rows) if sort != "relevance" else max(DEPTH, k) if adds_citances else k
        own_words = self._finder(PAPERS, topic, filters)
        cited_so = self._finder(CITANCES, topic, filters) if adds_citances else None
        if own_words is None and cited_so is None:
            raise no_word(topic)
        papers = settled(own_words, depth)
        if sort != "relevance":
            papers = papers.taken(self._filter.in_order(sort, papers.rows, papers.scores)[:k])
        if not adds_citances:
            return Candidates(self._rows, papers.rows, papers.scores, {"bm25": papers.scores})
        citances = settled(cited_so, depth)

        def said(hit: int) -> tuple[str, int]:
            _, citing_id, position = self._key(citances.documents[hit]).split(" ")
            return citing_id, int(position)

        weights = self.settings.weights.citances, self.settings.citance_decay
        return added_up(self._rows, papers, citances, weights, said)[:k]

    def _finder(self, kind: str, topic: Topic, filters: Filters) -> Callable[[int], Hits] | None:
        """Finds as many of the best documents of `PAPERS` or `CITANCES` as are asked for, ties in any order.

        None if no field with a weight has a word of the topic.
        """
        raise NotImplementedError

    def _key(self, document: Any) -> str:
        """The key of a document of `CITANCES`."""
        raise NotImplementedError

    @abstractmethod
    def _term_scores(self, kind: str, field: str, terms: Sequence[str], keys: Sequence[str]) -> Floats:
        """The BM25 scores of some terms in a field of some documents, (documents, terms); 0 where it lacks them."""

    def _terms_of(self, text: str) -> Sequence[str]:
        """The terms of a text, as the engine analyses it; by default as `terms_of` does."""
        return [term for term in terms_of(text) if term is not None]

    def explain(self, topic: Topic, candidates: Sequence[Candidate]) -> list[tuple[Match, ...]]:
        """For each candidate the words of the topic that it matches, best first.

        Without citing sentences their scores add up to its score. Of its sentences only the best one is explained.
        """
        written: dict[str, str] = {}  # the first word that has a term, as it is written
        times = defaultdict[str, float](float)
        for text, weight in self.settings.weighted(topic):
            for word in text.split() if weight else ():
                for term in self._terms_of(word):
                    written.setdefault(term, shown(word))
                    times[term] += weight
        terms, factors = list(times), np.array(list(times.values()))
        paper_ids = [one.paper_id for one in candidates]
        scores, cited_so = np.zeros((2, len(candidates), len(terms)))
        for field, weight in self._fields[PAPERS].items():
            scores += factors * weight * self._term_scores(PAPERS, field, terms, paper_ids)
        keys = {at: sentence_key(one.paper_id, *one.citance[:2]) for at, one in enumerate(candidates) if one.citance}
        if keys and self._adds_citances:
            cited_so[list(keys)] = self._term_scores(CITANCES, CITANCE, terms, list(keys.values()))
            scores += factors * cited_so * self.settings.weights.citances
        records, found = self._store.papers(paper_ids), []
        for at, paper_id in enumerate(paper_ids):
            paper = records[paper_id]
            places = {
                TITLE: {*self._terms_of(paper.title)},
                ABSTRACT: {*self._terms_of(paper.abstract or "")},
                CITANCE: {terms[place] for place in np.flatnonzero(cited_so[at] > 0)},
            }
            fields = {term: [name for name, having in places.items() if term in having] for term in terms}
            having = ((terms[place], float(scores[at, place])) for place in np.flatnonzero(scores[at] > 0))
            found.append(_matches((written[term], score, fields[term]) for term, score in having))
        return found


def _matches(terms: Iterable[tuple[str, float, list[str]]]) -> tuple[Match, ...]:
    """One match per word, best first, of the words, scores and fields of terms: "state-of-the-art" is several terms."""
    scores = defaultdict[str, float](float)
    fields: dict[str, dict[str, None]] = {}
    for word, score, of_term in terms:
        scores[word] += score
        fields.setdefault(word, {}).update(dict.fromkeys(of_term))
    found = [Match(word, tuple(fields[word]), score) for word, score in scores.items()]
    return tuple(sorted(found, key=lambda match: (-match.score, match.word)))


ENGINES: Registry[type[Words]] = Registry(
    "engine",
    {
        "embedded": "citerec.index.words.embedded:EmbeddedWords",
        "lucene": "citerec.index.lucene.words:LuceneWords",
        "qdrant": "citerec.index.qdrant.engine:QdrantWords",
    },
)
"""Every engine, by name."""


def changes_between(before: Path, now: Path, layout: Layout, engine: str) -> dict[str, list[str]] | None:
    """The ids of the papers that changed between two generations, in order; also of those that are no longer there.

    Returns:
        Under `PAPERS` those whose record, as far as it is searched, is another. Under `CITANCES` those whose citing
        sentences, or what filters read of them, are others. None if all is to be written: there are no such words yet.
    """
    stated = read_json(before / FILE_NAME) or {}
    if stated.get("engine") != engine or stated.get("abstract_field") != layout.abstract_field:
        return None
    texts = _different(before / COLUMNS, now / COLUMNS, "digests")
    cited = _different(before / COLUMNS, now / COLUMNS, f"{CITING}/sentence_digests")
    return {PAPERS: texts, CITANCES: sorted({*texts, *cited})}


def items_of(
    store: PaperStore, kind: str, changed: Sequence[str] | None, whole: int, on_progress: Progress
) -> Iterator[Searchable]:
    """What an engine writes of `PAPERS` or `CITANCES`: those of the papers that changed, or all if they are None.

    Progress is reported as they are taken; `whole` is how many there are in all.
    """
    items: Iterable[Searchable] = store.all_papers(changed)
    doing = "indexing papers"
    if kind == CITANCES:
        items, doing = store.searchable_citances(only=changed), "indexing citing sentences"
    for done, item in enumerate(items, 1):
        yield item
        if done % _REPORTED == 0:
            on_progress(doing, done, whole)


def _different(before: Path, now: Path, name: str) -> list[str]:
    """The papers whose digests are not the same in two folders, or that only one of them has, in order."""
    ids, digests = zip(*(_digests(folder, name) for folder in (before, now)), strict=True)
    keys, values = np.concatenate(ids), np.concatenate(digests)
    order = np.lexsort((values, keys))
    keys, values = keys[order], values[order]
    same = np.append((keys[1:] == keys[:-1]) & (values[1:] == values[:-1]), False)
    return [key.decode() for key in np.unique(keys[~(same | np.roll(same, 1))]).tolist()]


def _digests(folder: Path, name: str) -> tuple[NDArray[np.bytes_], NDArray[np.uint64]]:
    """The ids of a folder of columns, and digests of these papers: 0 where it has no file of them."""
    ids, path = mapped(folder / "ids.npy"), folder / f"{name}.npy"
    return ids, mapped(path) if path.is_file() else np.zeros(len(ids), np.uint64)
