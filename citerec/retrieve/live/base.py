"""What retrievers that ask a web service have in common."""

import re
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.corpus.matching import plain_title
from citerec.errors import QueryError
from citerec.records import NO_FILTERS, Filters, Match, Paper
from citerec.retrieve.base import Retriever, check_asked
from citerec.retrieve.candidates import Candidate, Candidates
from citerec.retrieve.live.words import words_of
from citerec.settings import PartSettings
from citerec.sources.look_up import PAGE, LookUp, Manners, years_of

if TYPE_CHECKING:
    from citerec.retrieve.opened import OpenIndex

ADDRESS = r"^https?://[\w.-]+(:\d+)?(/\S*)?$"
"""The pattern of addresses of services."""

_KEPT_IDS = 1 << 16
_BEGINNING, _ENDING = 4, 3  # letters that two forms of a word share at least, and in which they may differ


class LiveSettings(PartSettings):
    """How a web service is asked."""

    url: str
    depth: int = Field(default=PAGE, ge=1, le=1000, description="how many papers are read for one query at most")
    pace: float = Field(default=1.0, ge=0, le=3600, description="seconds between two requests of this computer")
    timeout: float = Field(default=30.0, gt=0, le=3600, description="seconds to wait for an answer")
    tries: int = Field(default=3, ge=1, le=10, description="how often a busy service is asked")
    keep_days: float = Field(
        default=7.0, ge=0, le=3650, description="days that answers are kept on this computer; 0 to keep none"
    )


class LiveRetriever(Retriever):
    """Finds what a web service lists for the words of the sentence. Safe to call from several threads.

    The services give no scores that can be compared, so a paper scores 1 / its rank. Where the topic has no record of
    the citing paper, papers of the same title are left out.

    Raises:
        ServiceError: The service cannot be reached, refuses, or answers something else; raised by searches.
    """

    filters_itself = True
    looks_up: ClassVar[type[LookUp]]

    @classmethod
    def open(cls, index: "OpenIndex", settings: Any) -> Self:
        """Opens it; nothing is asked yet."""
        return cls(index, settings)

    def __init__(self, index: "OpenIndex", settings: Any) -> None:
        self.settings = settings
        self._index = index
        manners = {name: value for name, value in settings if name in Manners.__dataclass_fields__}
        self.look_up = self.looks_up(Manners(section=self.name.replace("-", "_"), **manners))
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._known: dict[str, str | None] = {}

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
        passing = self._index.permitted(self.name, [], filters)
        for papers in self._pages(topic, filters):
            others = [paper for paper in papers if not _is_written(paper, topic)]
            for paper_id in self._ids_of(others):
                ranks.setdefault(paper_id, len(ranks) + 1)
            found = [Candidate(one, 1 / rank, None, {self.name: 1 / rank}) for one, rank in ranks.items()]
            passing = self._index.permitted(self.name, found, filters)
            if len(passing) >= k:
                break
        return passing[:k]

    def _ids_of(self, papers: Sequence[Paper]) -> list[str]:
        """The ids in the index of papers that the service listed, without those that the index lacks."""
        known = self._known if len(self._known) < _KEPT_IDS else {}
        if new := [paper for paper in papers if paper.paper_id not in known]:
            found = self._index.ids_of(new)
            known = {**known, **{paper.paper_id: found.get(paper.paper_id) for paper in new}}
        ids = [paper_id for paper in papers if (paper_id := known[paper.paper_id]) is not None]
        with self._lock:
            self._known = known  # a new one: other threads go on with the old one
            self._counts += Counter(listed=len(papers), lacking=len(papers) - len(ids))
        return ids

    def _pages(self, topic: Topic, filters: Filters) -> Iterator[list[Paper]]:
        asked = False
        first, last = years_of(filters)
        no_year = first is not None and last is not None and first > last
        for query in () if no_year else self.queries(topic):
            asked = True
            for offset in range(0, self.settings.depth, PAGE):
                page = self.look_up.search(query, filters, offset)
                yield page.papers[: self.settings.depth - offset]
                if not page.has_more:
                    break
        if not asked and not words_of(topic):
            raise QueryError(
                f"no word to ask {self.look_up.title} for in {topic.text[:60]!r}",
                "Write a sentence with content words.",
            )

    def explain(self, topic: Topic, candidates: Sequence[Candidate]) -> list[tuple[Match, ...]]:
        """The words of the sentence that titles or abstracts have, but for endings; what each adds is not known: 0."""
        papers = self._index.store.papers([one.paper_id for one in candidates if self.name in one.signals])
        return [_matches(topic, papers.get(one.paper_id)) for one in candidates]

    def counts(self) -> Counter[str]:
        """How many papers the service listed since the last call, and how many of these are not in the index."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return counts

    def remark(self, counts: Mapping[str, int]) -> str:
        """How many of the papers that the service listed are not in the index."""
        if not counts["lacking"]:
            return ""
        share = f"{counts['lacking']:,} of {counts['listed']:,} papers that {self.look_up.title} listed"
        return f"{share} are not in the index."


def _matches(topic: Topic, paper: Paper | None) -> tuple[Match, ...]:
    texts = {"title": paper.title, "abstract": paper.abstract or ""} if paper else {}
    found = []
    for word in words_of(topic):
        beginning = re.compile(rf"\b{word[: max(_BEGINNING, len(word) - _ENDING)]}", re.IGNORECASE)
        if fields := tuple(name for name, text in texts.items() if beginning.search(text)):
            found.append(Match(word, fields, 0.0))
    return tuple(found)


def _is_written(paper: Paper, topic: Topic) -> bool:
    """Whether a paper has the title of the one that is written."""
    title = plain_title(topic.citing_title)
    return bool(title) and topic.citing is None and plain_title(paper.title) == title
