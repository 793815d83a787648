"""Retrieval by a causal language model that writes the reference (Taylor et al., "Galactica", 2022)."""

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field
from rapidfuzz.distance import Levenshtein

from citerec.contexts.topic import Topic
from citerec.corpus.matching import plain_title
from citerec.corpus.store import PaperStore
from citerec.errors import ModelError
from citerec.papers.common.written import WritingRetriever
from citerec.records import Filters, Paper
from citerec.retrieve.opened import Search, title_search
from citerec.settings import PartSettings

if TYPE_CHECKING:
    from citerec.models.text_models import TextModel
    from citerec.retrieve.opened import OpenIndex

_REMEMBERED = 1 << 14  # references whose papers are remembered


class PromptSettings(PartSettings):
    """The model, and how it is asked for a reference."""

    model: str | None = Field(
        default=None,
        description="causal language model: a folder, or a name such as facebook/galactica-125m; "
        "by default the folder `galactica` of the index",
    )
    start: str = Field(default="[START_REF]", description="what follows the context, before a reference")
    end: str = Field(default="[END_REF]", description="the token that ends a reference")
    author: bool = Field(default=True, description="whether the first author's surname follows the title")
    max_prompt_tokens: int = Field(
        default=512, ge=1, description="how many tokens of the context are read at most, the last ones"
    )


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


class GalacticaRetriever(WritingRetriever):
    """A causal language model writes references, and the papers that they name are found."""

    name = "galactica"
    label = "written"
    Settings = GalacticaSettings
    kind = "causal model"
    writes = "references"
    remedy = "Name one: -c {key}.model=facebook/galactica-125m, or a folder; or put its folder at {own}"

    def __init__(self, index: "OpenIndex", settings: GalacticaSettings) -> None:
        super().__init__(index, settings)
        search = title_search(index)
        # A model writes the same references again and again.
        self._match = functools.lru_cache(_REMEMBERED)(lambda text: match(text, search, index.store, settings.distance))

    def read(self, model: "TextModel", topic: Topic, room: int) -> tuple[int, ...]:
        """The prompt."""
        return prompt_of(model, topic, self.settings, room)

    def citation(self, model: "TextModel", paper: Paper) -> tuple[int, ...]:
        """The reference."""
        return reference_to(model, paper, self.settings)

    def search_options(self, model: "TextModel") -> Mapping[str, Any]:
        """The token that ends a reference, and the length penalty; raises ModelError if the end is several tokens."""
        ids = model.continuation(self.settings.end)
        if len(ids) != 1 or ids[0] == model.tokenizer.unk_token_id:
            raise ModelError(f"{self.settings.end!r} is not one token of {model.name}", "Name one of its tokens.")
        return {"end": ids[0], "length_penalty": self.settings.length_penalty}

    def named(self, text: str) -> list[str]:
        """As `match`."""
        return self._match(text)

    def chosen(self, _topic: Topic, named: Sequence[list[str]], _filters: Filters) -> list[list[str]]:
        """The first paper of each reference."""
        return [papers[:1] for papers in named]


def prompt_of(model: "TextModel", topic: Topic, settings: PromptSettings, max_new_tokens: int) -> tuple[int, ...]:
    """The tokens of the context up to the marker, then the start of a reference without a space behind it.

    There is room left for `max_new_tokens`.
    """
    most = settings.max_prompt_tokens
    room = most if model.max_input_tokens is None else min(most, model.max_input_tokens - max_new_tokens)
    return model.last_tokens(f"{topic.lead} {settings.start}".strip(), room)


def reference_to(model: "TextModel", paper: Paper, settings: PromptSettings) -> tuple[int, ...]:
    """The tokens of the reference to a paper, with its end; none if the paper has no title."""
    title = " ".join(paper.title.split())
    if not title:
        return ()
    name = f", {surname(paper)}" if settings.author and surname(paper) else ""
    return model.continuation(f" {title}{name}{settings.end}", after=settings.start)


def surname(paper: Paper) -> str:
    """The last word of the first author's name; empty if it is unknown."""
    return paper.authors[0].split()[-1] if paper.authors and paper.authors[0].strip() else ""


def match(reference: str, search: Search, store: PaperStore, most_distant: float = 0.0) -> list[str]:
    """The papers that a reference means, in order of id; several if they share a title, none if no title fits.

    A reference is `Title, Surname`, or a title alone. First come the papers of just this title, of several those whose
    first author has this surname, if any has; else the papers of the nearest title, chosen likewise.

    Args:
        reference: As a model wrote it.
        search: Finds the titles that share most with the reference, which are compared with it.
        store: The records of the papers.
        most_distant: The distance of a title that is still taken for the written one: `distance`.
    """
    papers = sorted(store.papers(search(reference)).values(), key=lambda paper: paper.paper_id.encode())
    titles = [plain_title(paper.title) for paper in papers]
    title, _, author = reference.rpartition(",")
    least, nearest = most_distant, list[Paper]()
    for text, name in ((reference, ""), (title, author)):
        distances = [Levenshtein.normalized_distance(plain_title(text), other) for other in titles]
        if plain_title(text) and titles and min(distances) <= least:
            least = min(distances)
            nearest = [paper for paper, far in zip(papers, distances, strict=True) if far == least]
            wanted = plain_title(name).split()[-1:]
            nearest = [one for one in nearest if wanted and plain_title(surname(one)).split()[-1:] == wanted] or nearest
    return [paper.paper_id for paper in nearest]
