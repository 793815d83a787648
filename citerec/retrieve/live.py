"""What retrievers that ask a web service have in common."""

import itertools
import re
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from citerec.contexts.topic import Topic, names_before
from citerec.corpus.matching import plain_title
from citerec.corpus.store import SqliteStore, changes_of
from citerec.errors import QueryError
from citerec.files.text import STOP_WORDS
from citerec.index.columns import PaperRows, columns_of
from citerec.index.manifest import IndexCounts, Manifest
from citerec.records import NO_FILTERS, Filters, Match, Paper
from citerec.retrieve.base import Candidate, Candidates, CountingRetriever, OpenIndex, check_asked
from citerec.retrieve.entries import papers_of_index
from citerec.settings import PartSettings, live_folder
from citerec.sources.look_up import PAGE, LookUp, Manners, OpenAlex, SemanticScholar, years_of
from citerec.version import __version__

ADDRESS = r"^https?://[\w.-]+(:\d+)?(/\S*)?$"
"""The pattern of addresses of services."""

_KEPT_IDS = 1 << 16
_BEGINNING, _ENDING = 4, 3  # letters that two forms of a word share at least, and in which they may differ


class LiveSettings(PartSettings):
    """How a web service is asked.

    Attributes:
        depth: How many papers are read for one query at most.
        pace: Seconds between two requests of this computer.
        timeout: Seconds to wait for an answer.
        tries: How often a busy service is asked.
        keep_days: Days that answers are kept on this computer; 0 to keep none.
    """

    url: str
    depth: int = Field(default=PAGE, ge=1, le=1000)
    pace: float = Field(default=1.0, ge=0, le=3600)
    timeout: float = Field(default=30.0, gt=0, le=3600)
    tries: int = Field(default=3, ge=1, le=10)
    keep_days: float = Field(default=7.0, ge=0, le=3650)


class LiveRetriever(CountingRetriever):
    """Finds what a web service lists for the words of the sentence. Safe to call from several threads.

    The services give no scores that can be compared, so a paper scores 1 / its rank. Where the topic has no record of
    the citing paper, papers of the same title are left out. `counts` says how many papers the service listed, and how
    many of these are not in the index.

    Raises:
        ServiceError: The service cannot be reached, refuses, or answers something else; raised by searches.
    """

    filters_itself = True
    looks_up: ClassVar[type[LookUp]]

    def __init__(self, index: OpenIndex, settings: Any) -> None:
        super().__init__(index, settings)
        manners = {name: value for name, value in settings if name in Manners.model_fields}
        self.look_up = self.looks_up(Manners(section=self.name.replace("-", "_"), **manners))
        self._index_ids: dict[str, str | None] = {}

    @abstractmethod
    def queries(self, topic: Topic) -> Iterable[str]:
        """What it asks for, one after the other until enough is found; nothing if the sentence has no telling word."""

    def close(self) -> None:
        """Closes connections."""
        self.look_up.close()

    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, _prepared: None = None) -> Candidates:
        """The k first papers that the service lists and that pass the filters.

        Raises:
            QueryError: The topic holds no telling word.
            FilterError: k is under 1.
            ServiceError: The service cannot be reached, refuses, or answers something else.
        """
        check_asked(topic, k)
        ranks: dict[str, int] = {}
        passing = self.index.permitted(self.name, [], filters)
        for papers in self._pages(topic, filters):
            others = [paper for paper in papers if not _is_written(paper, topic)]
            for paper_id in self._ids_of(others):
                ranks.setdefault(paper_id, len(ranks) + 1)
            candidates = [Candidate(one, 1 / rank, None, {self.name: 1 / rank}) for one, rank in ranks.items()]
            passing = self.index.permitted(self.name, candidates, filters)
            if len(passing) >= k:
                break
        return passing[:k]

    def _ids_of(self, papers: Sequence[Paper]) -> list[str]:
        """The ids in the index of papers that the service listed, without those that the index lacks."""
        index_ids = self._index_ids if len(self._index_ids) < _KEPT_IDS else {}
        if new := [paper for paper in papers if paper.paper_id not in index_ids]:
            index = self.index
            by_id = {paper.paper_id: paper for paper in new}
            new_ids = index.take_in(new) if isinstance(index, LiveIndex) else papers_of_index(by_id, index)
            index_ids = {**index_ids, **{paper.paper_id: new_ids.get(paper.paper_id) for paper in new}}
        ids = [paper_id for paper in papers if (paper_id := index_ids[paper.paper_id]) is not None]
        with self._lock:
            self._index_ids = index_ids  # a new one: other threads go on with the old one
            self._counts += Counter(listed=len(papers), lacking=len(papers) - len(ids))
        return ids

    def _pages(self, topic: Topic, filters: Filters) -> Iterator[list[Paper]]:
        if not words_of(topic):
            raise QueryError(
                f"no word to ask {self.look_up.title} for in {topic.text[:60]!r}",
                "Write a sentence with content words.",
            )
        first, last = years_of(filters)
        no_year = first is not None and last is not None and first > last
        for query in () if no_year else self.queries(topic):
            for offset in range(0, self.settings.depth, PAGE):
                page = self.look_up.search(query, filters, offset)
                yield page.papers[: self.settings.depth - offset]
                if not page.has_more:
                    break

    def explain(
        self, topic: Topic, candidates: Sequence[Candidate], papers: Mapping[str, Paper]
    ) -> list[tuple[Match, ...]]:
        """The words of the sentence that titles or abstracts have, but for endings; what each adds is not known: 0."""
        return [_matches(topic, papers.get(one.paper_id) if self.name in one.signals else None) for one in candidates]

    def remark(self, counts: Mapping[str, int]) -> str:
        """How many of the papers that the service listed are not in the index."""
        if not counts["lacking"]:
            return ""
        share = f"{counts['lacking']:,} of {counts['listed']:,} papers that {self.look_up.title} listed"
        return f"{share} are not in the index."


def _matches(topic: Topic, paper: Paper | None) -> tuple[Match, ...]:
    texts = {"title": paper.title, "abstract": paper.abstract or ""} if paper else {}
    matches = []
    for word in words_of(topic):
        beginning = re.compile(rf"\b{word[: max(_BEGINNING, len(word) - _ENDING)]}", re.IGNORECASE)
        if fields := tuple(name for name, text in texts.items() if beginning.search(text)):
            matches.append(Match(word, fields, 0.0))
    return tuple(matches)


def _is_written(paper: Paper, topic: Topic) -> bool:
    """Whether a paper has the title of the one that is written."""
    title = plain_title(topic.citing_title)
    return bool(title) and topic.citing is None and plain_title(paper.title) == title


class LiveIndex(OpenIndex):
    """The papers that services have listed so far, in memory. Safe to use from several threads.

    The papers are not known before they are listed. So the rows of an answer are the ranks of its ids among its own
    papers, not among all papers of an index.
    """

    holds: ClassVar[str] = "papers that a service lists at most"

    def __init__(self) -> None:
        self.path = self.folder = live_folder()
        self.manifest = Manifest(
            citerec=__version__,
            engine="",
            fingerprint="",
            counts=IndexCounts(*[0] * len(fields(IndexCounts))),
            sources=[],
            checksums={},
        )
        self.store = SqliteStore(Path(":memory:"))
        self.rows, self.most_hits = _rows({}), 1000
        self.words = None  # retrievers explain what they found themselves
        self._lock = threading.Lock()

    def take_in(self, papers: Sequence[Paper]) -> Mapping[str, str]:
        """Takes in papers from elsewhere; their ids stay."""
        with self._lock:
            self.store.write(changes_of(papers))
        return {paper.paper_id: paper.paper_id for paper in papers}

    def check_filters(self, filters: Filters) -> None:
        """As `OpenIndex.check_filters`, but nobody knows which fields of study there are."""
        super().check_filters(replace(filters, fields=()))

    def with_same_rows(self, lists: Mapping[str, Candidates]) -> Mapping[str, Candidates]:
        """Several lists, by retriever, as rows of all their papers."""
        ids = {name: candidates.paper_ids() for name, candidates in lists.items()}
        rows = self.rows_for(list(itertools.chain.from_iterable(ids.values())))
        return {name: replace(candidates, papers=rows, rows=rows.rows(ids[name])) for name, candidates in lists.items()}

    def rows_for(self, paper_ids: Sequence[str]) -> PaperRows:
        """Those of the papers that were found."""
        return _rows(self.store.papers(dict.fromkeys(paper_ids)))


def _rows(papers: Mapping[str, Paper]) -> PaperRows:
    ids = sorted(papers, key=str.encode)
    columns = columns_of(papers[paper_id] for paper_id in ids)
    names = {"venues": sorted({one.venue for one in papers.values() if one.venue})}
    return PaperRows(np.array([paper_id.encode() for paper_id in ids], np.bytes_), columns, names=names)


_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r".*[A-Z0-9].*[A-Z0-9]|.+[A-Z]")  # BERT, Word2Vec, mRNA; not Attention
_NAMED = 20  # letters that abbreviations and names of methods count longer
# Words of scholarly prose that say nothing of the topic.
_PROSE = (
    "alone always away became become becomes due enough ever first four indeed instead last made make makes making"
    " mostly namely never nevertheless next nothing now often once others otherwise perhaps quite rather second see"
    " seem seems sometimes thereby third three together two well whereby wherein whole "
    "according achieve achieved apply applied approach approaches article author authors based better called common"
    " commonly compared consider considered current describe described different example existing extensively find"
    " following found general generally give given important improve improved include including increasing introduce"
    " introduced investigate investigated known like literature main method methods new novel number obtain obtained"
    " paper papers popular present presented previous previously prior propose proposed provide provided recent"
    " recently refer related report reported require research researchers result results show showed shown shows"
    " significant significantly similar state stated studied studies study suffices suggest suggested system systems"
    " technique techniques typically use used useful user users uses using various way ways widely work works"
)
_STOP_WORDS = STOP_WORDS.union(_PROSE.split())


def queries_of(topic: Topic, most: int) -> Iterator[str]:
    """Queries for a topic: the first of `most` of its telling words, then of fewer, each in the order of the sentence.

    The last one is the most telling word.
    """
    words = telling_words(topic)
    size = min(most, len(words))
    while size:
        yield " ".join(word for word in words_of(topic) if word in words[:size])
        size = size * 2 // 3


def telling_words(topic: Topic) -> list[str]:
    """The different words of a sentence that tell what it is about, the most telling first.

    Without an index nothing is known of how rare a word is. So abbreviations and names of methods come first, and long
    words before short ones. What may be the name of an author, right before the marker, comes last: titles and
    abstracts do not name authors.
    """
    names = names_before(topic)

    def weight(word: str) -> int:
        return 0 if word.casefold() in names else len(word) + _NAMED * bool(_NAME.fullmatch(word))

    return sorted(words_of(topic), key=weight, reverse=True)


def words_of(topic: Topic) -> list[str]:
    """The words of a sentence, or of those around it if it has none, without stop words and repeats.

    A hyphen parts words: Semantic Scholar finds nothing for hyphenated ones.
    """
    for text in (topic.text, topic.neighbours):
        words: dict[str, str] = {}
        for word in _WORD.findall(text):
            words.setdefault(word.casefold(), word)
        if kept := [
            word for key, word in words.items() if len(key) > 1 and not key.isdecimal() and key not in _STOP_WORDS
        ]:
            return kept
    return []


class S2Settings(LiveSettings):
    """How Semantic Scholar is asked.

    Attributes:
        url: Address of the service.
        words: Words of the first query; if too little is found, fewer are tried.
    """

    url: str = Field(default=SemanticScholar.url, pattern=ADDRESS)
    words: int = Field(default=6, ge=1, le=50)


class S2Retriever(LiveRetriever):
    """Finds what Semantic Scholar lists, in its order. Safe to call from several threads.

    It lists papers that have all words, so fewer words are tried until enough is found.
    """

    name = "s2-api"
    label = "Semantic Scholar"
    service = "Semantic Scholar"
    Settings = S2Settings
    looks_up = SemanticScholar

    def queries(self, topic: Topic) -> Iterable[str]:
        """The telling words of the sentence, then fewer of them."""
        return queries_of(topic, self.settings.words)


class OpenAlexSettings(LiveSettings):
    """How OpenAlex is asked.

    Attributes:
        url: Address of the service.
        words: Words of the query; a paper needs only one of them.
        email: Your address for OpenAlex; by default the one in CITEREC_EMAIL.
    """

    url: str = Field(default=OpenAlex.url, pattern=ADDRESS)
    words: int = Field(default=20, ge=1, le=100)
    email: str = ""


class OpenAlexRetriever(LiveRetriever):
    """Finds what OpenAlex lists for any of the words, in its order. Safe to call from several threads."""

    name = "openalex-api"
    label = "OpenAlex"
    service = "OpenAlex"
    Settings = OpenAlexSettings
    looks_up = OpenAlex

    def queries(self, topic: Topic) -> Iterable[str]:
        """The telling words of the sentence. A word such as NOT would be an operator: they are in small letters."""
        words = [word.lower() for word in telling_words(topic)[: self.settings.words]]
        return [" OR ".join(words)] if words else []
