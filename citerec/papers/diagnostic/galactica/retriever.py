"""Retrieval by a causal language model that writes the reference (Taylor et al., "Galactica", 2022)."""

import functools
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from pydantic import Field

from citerec.contexts.learnt import Learnt
from citerec.contexts.topic import Topic
from citerec.index.candidates import Candidate
from citerec.index.titles import title_words
from citerec.papers.diagnostic.galactica.matching import match
from citerec.papers.diagnostic.galactica.prompt import (
    PromptSettings,
    check_named,
    learnt_by_model,
    open_model,
    prompt_of,
    reference_to,
)
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import Retriever, check_asked

if TYPE_CHECKING:
    from citerec.index.opened import OpenIndex
    from citerec.models.text_models import TextModel
    from citerec.papers.diagnostic.galactica.model import BeamSearch

_PART = 1000  # papers that are read at once
_REMEMBERED = 1 << 14  # references whose papers are remembered
_LONGEST = 256  # tokens of a reference that a model may be constrained to


class GalacticaSettings(PromptSettings):
    """How references are written, and matched to papers."""

    beams: int = Field(
        default=10, ge=1, le=1000, description="how many references are written; so many papers are found at most"
    )
    max_new_tokens: int = Field(default=60, ge=1, description="longest reference, in tokens")
    length_penalty: float = Field(
        default=1.0, description="a reference scores its log-probability divided by its length to this power"
    )
    distance: float = Field(
        default=0.15,
        ge=0,
        le=1,
        description="largest edit distance of a written title from a paper's, as a share of the longer; 0: no letter",
    )
    constrained: bool = Field(
        default=False, description="whether only references to papers of the index can be written"
    )


class Written(NamedTuple):
    """A reference that the model wrote, and its score."""

    text: str
    score: float


class GalacticaRetriever(Retriever):
    """A causal language model writes references, and the papers that they name are found. Safe to call from threads.

    The number of references does not depend on k: with more beams, others are written. A paper scores the
    log-probability of its best reference, divided by its length. `remark` counts those that name no paper of the index.

    Raises:
        ModelError: The model cannot be opened; this is raised by the first search.
    """

    name = "galactica"
    label = "written"
    Settings = GalacticaSettings
    filters_itself = True

    @classmethod
    def open(cls, index: "OpenIndex", settings: GalacticaSettings) -> Self:
        """Opens the retriever; the model is opened when it is first needed."""
        return cls(index, check_named(index.path, settings, cls.name), settings)

    @classmethod
    def learnt_at(cls, index: Path, settings: GalacticaSettings) -> Learnt:
        """What the model learnt from, if citerec knows it."""
        return learnt_by_model(index, settings)

    def __init__(self, index: "OpenIndex", model: str, settings: GalacticaSettings) -> None:
        self.settings = settings
        self._index = index
        self._name = model
        self._titles = title_words(index)
        # A model writes the same references again and again.
        self._match = functools.lru_cache(_REMEMBERED)(
            lambda text: match(text, self._titles, index.store, settings.distance)
        )
        self._opened: tuple[TextModel, BeamSearch] | None = None
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def close(self) -> None:
        """Releases the model."""
        self._opened = None

    def prepare(self, topics: Sequence[Topic]) -> list[list[Written]]:
        """The references that the model writes for some topics, best first; none for one without words.

        Raises:
            ModelError: The model cannot be opened, or has no room for prompt and reference.
        """
        from citerec.papers.diagnostic.galactica.model import generate

        model, search = self._model()
        asked = [topic for topic in topics if topic.passage]
        prompts = [prompt_of(model, topic, self.settings, search.max_new_tokens) for topic in asked]
        found = iter(generate(model, prompts, search))
        return [
            [Written(model.decode(one.ids), one.score) for one in next(found)] if topic.passage else []
            for topic in topics
        ]

    def search(
        self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Sequence[Written] | None = None
    ) -> list[Candidate]:
        """The k papers whose references score best; fewer if fewer were written and pass the filters.

        `prepared` are the topic's references; if it is None, they are written.

        Raises:
            QueryError: The topic is blank.
            FilterError: k is under 1.
        """
        check_asked(topic, k)
        written = self.prepare([topic])[0] if prepared is None else prepared
        matched = [self._match(one.text) for one in written]
        named = [Candidate(one.paper_id, 0.0) for papers in matched for one in papers]
        passing = {one.paper_id for one in self._index.permitted(self.name, named, filters)}
        found: dict[str, Candidate] = {}
        counts = Counter(written=len(written))
        for one, papers in zip(written, matched, strict=True):
            paper = next((paper for paper in papers if paper.paper_id in passing), None)
            if paper is None:
                counts["left out" if papers else "unmatched"] += 1
            elif paper.paper_id not in found:
                signals = {"galactica": one.score, "galactica_distance": paper.distance}
                found[paper.paper_id] = Candidate(paper.paper_id, one.score, None, signals)
        with self._lock:
            self._counts += counts
        return sorted(found.values(), key=lambda one: (-one.score, one.paper_id.encode()))[:k]

    def counts(self) -> Counter[str]:
        """How many references were written since the last call; how many named no paper, or one that is left out."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return counts

    def remark(self, counts: Mapping[str, int]) -> str:
        """How many references named no paper of the index, and how many one that was left out."""
        if not counts["unmatched"] and not counts["left out"]:
            return ""
        share, out = counts["unmatched"] / counts["written"], counts["left out"]
        return (
            f"{counts['unmatched']:,} of {counts['written']:,} references that were written ({share:.1%}) name no "
            f"paper of the index; {out:,} name one that a filter or a leak rule leaves out."
        )

    def _model(self) -> "tuple[TextModel, BeamSearch]":
        with self._lock:
            if self._opened is None:
                self._opened = self._open_model()
            return self._opened

    def _open_model(self) -> "tuple[TextModel, BeamSearch]":
        from citerec.papers.common.sequences import TokenSequences
        from citerec.papers.diagnostic.galactica.model import BeamSearch, token

        settings = self.settings
        model = open_model(self._name, settings.max_new_tokens)
        search = BeamSearch(
            settings.beams, settings.max_new_tokens, (token(model, settings.end),), settings.length_penalty
        )
        if not settings.constrained:
            return model, search
        room = _LONGEST if model.max_input_tokens is None else min(_LONGEST, model.max_input_tokens // 2)
        references = TokenSequences(ids for ids in self._references(model) if 0 < len(ids) <= room)
        return model, replace(search, max_new_tokens=references.longest, allowed=references.following)

    def _references(self, model: "TextModel") -> Iterator[tuple[int, ...]]:
        """The references to all papers of the index."""
        return (reference_to(model, paper, self.settings) for paper in self._index.store.all_papers())
