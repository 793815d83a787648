"""Retrieval by a causal language model that writes the reference (Taylor et al., "Galactica", 2022)."""

import copy
import functools
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from rapidfuzz.distance import Levenshtein

from citerec.contexts.provenance import Provenance
from citerec.contexts.topic import Topic, clean
from citerec.corpus.matching import plain_title
from citerec.corpus.store import PaperStore
from citerec.errors import ModelError
from citerec.models.encoder import batches_by_length
from citerec.models.text_models import IGNORED, TextModel
from citerec.papers.common.written import WritingRetriever, open_writer
from citerec.records import MARKER, Filters, Paper, Reason
from citerec.rerank.base import Records, Reranker, Texts, interpolated, reranked
from citerec.retrieve.base import Candidates, OpenIndex
from citerec.retrieve.entries import Search, title_search
from citerec.settings import PartSettings, Weight

_REMEMBERED = 1 << 14  # references whose papers are remembered


class PromptSettings(PartSettings):
    """The model, and how it is asked for a reference.

    Attributes:
        model: Causal language model: a folder, or a name such as facebook/galactica-125m; by default the folder
            `galactica` of the index.
        start: What follows the context, before a reference.
        end: The token that ends a reference.
        author: Whether the first author's surname follows the title.
        max_prompt_tokens: How many tokens of the context are read at most, the last ones.
    """

    model: str | None = None
    start: str = "[START_REF]"
    end: str = "[END_REF]"
    author: bool = True
    max_prompt_tokens: int = Field(default=512, ge=1)


class GalacticaSettings(PromptSettings):
    """How references are written, and matched to papers.

    Attributes:
        beams: How many references are written; so many papers are found at most.
        max_new_tokens: Longest reference, in tokens.
        length_penalty: A reference scores its log-probability divided by its length to this power.
        distance: Largest edit distance of a written title from a paper's, as a share of the longer; 0: no letter.
        constrained: Whether only references to papers of the index can be written.
    """

    beams: int = Field(default=10, ge=1, le=1000)
    max_new_tokens: int = Field(default=60, ge=1)
    length_penalty: float = 1.0
    distance: float = Field(default=0.15, ge=0, le=1)
    constrained: bool = False


class GalacticaRetriever(WritingRetriever):
    """A causal language model writes references, and the papers that they name are found."""

    name = "galactica"
    label = "written"
    Settings = GalacticaSettings
    kind = "causal model"
    writes = "references"
    remedy = "Name one: -c {key}.model=facebook/galactica-125m, or a folder; or put its folder at {own}"

    def __init__(self, index: OpenIndex, settings: GalacticaSettings) -> None:
        super().__init__(index, settings)
        search = title_search(index)
        # A model writes the same references again and again.
        self._match = functools.lru_cache(_REMEMBERED)(lambda text: match(text, search, index.store, settings.distance))

    def read(self, model: TextModel, topic: Topic, room: int) -> tuple[int, ...]:
        """The prompt."""
        return prompt_of(model, topic, self.settings, room)

    def citation(self, model: TextModel, paper: Paper) -> tuple[int, ...]:
        """The reference."""
        return reference_to(model, paper, self.settings)

    def search_options(self, model: TextModel) -> Mapping[str, Any]:
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


def prompt_of(model: TextModel, topic: Topic, settings: PromptSettings, max_new_tokens: int) -> tuple[int, ...]:
    """The tokens of the context up to the marker, then the start of a reference without a space behind it.

    There is room left for `max_new_tokens`.
    """
    most = settings.max_prompt_tokens
    room = most if model.max_input_tokens is None else min(most, model.max_input_tokens - max_new_tokens)
    return model.last_tokens(f"{lead_of(topic)} {settings.start}".strip(), room)


def lead_of(topic: Topic) -> str:
    """The words up to the marker, with the sentences before if neighbours are used: what a writer goes on from.

    If nothing stands before the marker, it is the words of the sentence.
    """
    before = topic.context.before if topic.neighbours else ""
    return clean(f"{before} {topic.context.text.partition(MARKER)[0]}") or topic.text


def reference_to(model: TextModel, paper: Paper, settings: PromptSettings) -> tuple[int, ...]:
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


_ROOM = 64  # tokens of a reference that are read; longer ones are cut
# References in work at once, and numbers of the largest array, tokens × vocabulary: 256 MB.
_ROWS, _NUMBERS = 256, 1 << 26


class TitleLikelihoodSettings(PromptSettings):
    """The model, how it is asked, and how its answer counts.

    Attributes:
        depth: How many candidates are ranked; the rest follow in their order.
        weight: Weight of the likelihood, against 1 for the previous score, scaled; by default it ranks alone.
    """

    depth: int = Field(default=50, ge=1)
    weight: Weight | None = None


class TitleLikelihoodReranker(Reranker):
    """Ranks the first candidates by the mean log-probability of their references' tokens.

    Safe to call from several threads.

    The prompt is that of the retriever `galactica`: the context up to the marker. NCN ranks by the likelihood of titles
    too (Ebesu and Fang, 2017), with a decoder of its own.

    Raises:
        ModelError: The model cannot be opened; this is raised by the first search.
    """

    name = "title-likelihood"
    Settings = TitleLikelihoodSettings

    @classmethod
    def open(cls, index: Path, _folder: Path | None, settings: TitleLikelihoodSettings) -> Self:
        """Opens the reranker; the model is opened when it is first needed."""
        return cls(GalacticaRetriever.model_name(index, settings, cls.name), settings)

    @classmethod
    def provenance_at(cls, index: Path, _folder: Path | None, settings: TitleLikelihoodSettings) -> Provenance:
        """What the model learnt from, if citerec knows it."""
        return GalacticaRetriever.provenance_at(index, settings)

    def __init__(self, model: str, settings: TitleLikelihoodSettings) -> None:
        self.settings = settings
        self.depth = settings.depth
        self._name = model
        self._opened: TextModel | None = None
        self._opening = threading.Lock()

    def rerank(
        self, topic: Topic, candidates: Candidates, papers: Records, _citances: Texts, *, explain: int = 0
    ) -> Candidates:
        """Candidates by the likelihood of their references, or with the previous scores; those without a title last."""
        with self._opening:
            model = self._opened = self._opened or open_writer(self._name, "causal model", _ROOM)
        head = [papers.get(paper_id) or Paper(paper_id) for paper_id in candidates[: self.depth].paper_ids()]
        references = [reference_to(model, paper, self.settings)[:_ROOM] for paper in head]
        lengths = np.array([len(ids) for ids in references])
        scores = likelihoods(model, prompt_of(model, topic, self.settings, _ROOM), references)
        scores /= np.maximum(lengths, 1)
        scores[lengths == 0] = scores[lengths > 0].min(initial=0.0)
        scores = scores.astype(np.float32)
        if (weight := self.settings.weight) is not None:
            return interpolated(candidates, scores, weight, self.name, explain=explain)
        reasons = [(Reason(self.name, score),) for score in scores.tolist()] if explain else ()
        return reranked(candidates, scores, "title_likelihood", reasons=reasons)


def likelihoods(model: TextModel, prompt: Sequence[int], continuations: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """The log-probability of each continuation of a prompt, (continuations,); that of an empty one is 0.

    The prompt is read once. The sum over the tokens is meant, in natural logarithms.
    """
    import torch
    from torch.nn.functional import cross_entropy

    totals = np.zeros(len(continuations))
    numbers = [number for number, ids in enumerate(continuations) if ids]
    *before, last = prompt
    with model.turn, torch.inference_mode(), model.autocast():
        read = model.model(input_ids=model.padded([before], 0), use_cache=True).past_key_values if before else None
        tokens = max(1, _NUMBERS // len(model.tokenizer))
        for batch in batches_by_length([len(continuations[number]) for number in numbers], tokens, _ROWS):
            ids = [continuations[numbers[place]] for place in batch]
            past = copy.deepcopy(read)
            if past is not None:
                past.batch_repeat_interleave(len(ids))
            real = model.padded([[1] * len(row) for row in ids], 0)
            mask = torch.cat([real.new_ones(len(ids), len(before)), real], 1)
            inputs = model.padded([[last, *row[:-1]] for row in ids], model.pad)
            logits = model.model(input_ids=inputs, attention_mask=mask, past_key_values=past).logits
            losses = cross_entropy(logits.float().transpose(1, 2), model.padded(ids, IGNORED), reduction="none")
            totals[[numbers[place] for place in batch]] = -losses.double().sum(1).cpu().numpy()
    return totals
