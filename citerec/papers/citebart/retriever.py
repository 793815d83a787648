"""Retrieval by an encoder-decoder that writes author and year of the cited paper (CiteBART, EMNLP 2025)."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from pydantic import Field

from citerec.contexts.learnt import NOTHING, Learnt, learnt_by_part
from citerec.contexts.topic import Topic
from citerec.errors import QueryError, SettingsError
from citerec.index.base import WordSettings
from citerec.index.candidates import Candidate
from citerec.index.generations import trained_of
from citerec.models.find import bare_name, model_or_own
from citerec.papers.citebart.citation import citation_of, input_of, normalised
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import Retriever, check_asked
from citerec.retrieve.words import WordsRetriever
from citerec.settings import PartSettings

if TYPE_CHECKING:
    from citerec.index.opened import OpenIndex
    from citerec.models.text_models import TextModel
    from citerec.papers.common.sequences import TokenSequences

NAME = "citebart"
MAX_INPUT_TOKENS = 350  # CiteBART
_PART = 1000  # papers that are read at once
_ALIKE = 1000  # how many hits of a search by words order the papers of one author and year
_STEP = 1e-4  # between two of these; scores of other citations differ by more


class CiteBartSettings(PartSettings):
    """The model, and how citations are written."""

    model: str | None = Field(
        default=None, description=f"encoder-decoder: a folder or a name; by default the folder `{NAME}` of the index"
    )
    beams: int = Field(default=20, ge=2, le=1000, description="how many citations are written; 20 in the paper")
    max_new_tokens: int = Field(default=24, ge=2, description="longest citation, in tokens")
    max_input_tokens: int = Field(
        default=MAX_INPUT_TOKENS, ge=8, description="how many tokens are read at most; 350 in the paper"
    )
    constrained: bool = Field(default=False, description="whether only citations of papers of the index can be written")


class Opened(NamedTuple):
    """The model, the papers of each citation, and the citations that it may write if it may not write others."""

    model: "TextModel"
    papers_of: Mapping[str, Sequence[str]]
    allowed: "TokenSequences | None"


class Written(NamedTuple):
    """A citation that the model wrote, and its score."""

    text: str
    score: float


class CiteBartRetriever(Retriever):
    """An encoder-decoder writes author and year in place of the citation, and the papers of that name are found.

    Papers of one author and year are ordered by words, as `words` finds them. A paper scores the log-probability of
    its citation, divided by its length. Safe to call from several threads.

    Raises:
        ModelError: The model cannot be opened; this is raised by the first search.
    """

    name = NAME
    label = "author and year"
    Settings = CiteBartSettings
    filters_itself = True

    @classmethod
    def open(cls, index: "OpenIndex", settings: CiteBartSettings) -> Self:
        """Opens the retriever; the model is opened when it is first needed."""
        if model_or_own(settings.model, trained_of(index.path, NAME)) is None:
            raise SettingsError(
                f"{index.path} has no {NAME}",
                f"Train one: citerec train {NAME} --contexts FILE --index {index.path}",
            )
        return cls(index, settings)

    @classmethod
    def learnt_at(cls, index: Path, settings: CiteBartSettings) -> Learnt:
        """What the model learnt from, if it says so."""
        name = model_or_own(settings.model, trained_of(index, NAME))
        return learnt_by_part(bare_name(name)) if name else NOTHING

    def __init__(self, index: "OpenIndex", settings: CiteBartSettings) -> None:
        self.settings = settings
        self._index = index
        self._words = WordsRetriever.open(index, WordSettings())
        self._lock = threading.Lock()
        self._opened: Opened | None = None
        self._counts: Counter[str] = Counter()

    def close(self) -> None:
        """Releases the model."""
        self._opened = None

    def prepare(self, topics: Sequence[Topic]) -> list[list[Written]]:
        """The citations that the model writes for some topics, best first; none for one without words.

        Raises:
            ModelError: The model cannot be opened, or has no room for so many tokens.
        """
        from citerec.papers.citebart.suggestions import suggestions

        model, _, allowed = self._open()
        settings = self.settings
        longest, following = (allowed.longest, allowed.following) if allowed else (settings.max_new_tokens, None)
        asked = [topic for topic in topics if topic.passage]
        inputs = [input_of(model, topic, settings.max_input_tokens).ids for topic in asked]
        with self._lock:
            written = iter(suggestions(model, inputs, settings.beams, longest, following))
        return [[Written(*one) for one in next(written)] if topic.passage else [] for topic in topics]

    def search(
        self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Sequence[Written] | None = None
    ) -> list[Candidate]:
        """The k papers whose citations score best; fewer if fewer were written and pass the filters.

        `prepared` are the topic's citations; if it is None, they are written.

        Raises:
            QueryError: The topic is blank.
            FilterError: k is under 1.
        """
        check_asked(topic, k)
        written = self.prepare([topic])[0] if prepared is None else prepared
        papers_of = self._open().papers_of
        scores: dict[str, float] = {}
        named = [(papers_of.get(normalised(one.text), ()), one.score) for one in written]
        places = self._places(topic, filters) if any(len(papers) > 1 for papers, _ in named) else {}
        for papers, score in named:
            alike = sorted(papers, key=lambda one: (places.get(one, _ALIKE), one.encode())) if papers[1:] else papers
            for place, paper_id in enumerate(alike):
                scores.setdefault(paper_id, score - _STEP * place)
        found = [Candidate(paper_id, score, None, {NAME: score}) for paper_id, score in scores.items()]
        passing = self._index.permitted(self.name, found, filters)
        with self._lock:
            self._counts += Counter(written=len(written), unknown=sum(not papers for papers, _ in named))
        return sorted(passing, key=lambda one: (-one.score, one.paper_id.encode()))[:k]

    def _places(self, topic: Topic, filters: Filters) -> dict[str, int]:
        """The places of papers in a search by words."""
        try:
            found = self._words.search(topic, min(_ALIKE, self._index.manifest.counts.papers), filters)
        except QueryError:  # no word to search for
            return {}
        return {one.paper_id: place for place, one in enumerate(found)}

    def counts(self) -> Counter[str]:
        """How many citations were written since the last call, and how many of these named no paper of the index."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return counts

    def remark(self, counts: Mapping[str, int]) -> str:
        """How many citations named no paper of the index."""
        if not (unknown := counts["unknown"]):
            return ""
        share = f"{unknown:,} of {counts['written']:,} citations that were written ({unknown / counts['written']:.1%})"
        return f"{share} are those of no paper of the index."

    def _open(self) -> Opened:
        with self._lock:
            if self._opened is None:
                from citerec.models.text_models import TextModel
                from citerec.papers.common.sequences import TokenSequences

                name = model_or_own(self.settings.model, trained_of(self._index.path, NAME))
                assert name is not None  # checked by `open`
                model = TextModel.open(name, kinds=["encoder-decoder"])
                papers_of: dict[str, list[str]] = {}  # some 150 bytes a paper
                for paper_id, citation in self._citations():
                    papers_of.setdefault(normalised(citation), []).append(paper_id)
                room = self.settings.max_new_tokens
                written = (model.encode_text(citation, room).ids for _, citation in self._citations())
                self._opened = Opened(model, papers_of, TokenSequences(written) if self.settings.constrained else None)
            return self._opened

    def _citations(self) -> Iterator[tuple[str, str]]:
        """The papers of the index, each with its citation."""
        for paper in self._index.store.all_papers():
            if citation := citation_of(paper):
                yield paper.paper_id, citation
