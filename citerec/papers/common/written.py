"""Retrieval by models that write citations: a beam search, and the papers of the index that its texts name."""

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from citerec.contexts.provenance import NOTHING, Provenance, provenance_of_part
from citerec.contexts.topic import Topic
from citerec.errors import ModelError, SettingsError
from citerec.index.manifest import trained_of
from citerec.models.encoder import batches_by_length
from citerec.models.find import bare_name, model_or_own, quiet_libraries
from citerec.models.text_models import ModelKind, TextModel
from citerec.records import NO_FILTERS, Filters, Paper
from citerec.retrieve.base import Candidate, CountingRetriever, OpenIndex, check_asked

# At once, on a CPU and on a GPU: tokens of inputs with their beams, padding included; and scores of words, 4 bytes
# each, which are kept at every step.
_TOKENS_AT_ONCE, _SCORES_AT_ONCE = (1 << 14, 1 << 18), (1 << 28, 1 << 30)
_LONGEST = 256  # tokens of a citation that a model may be constrained to
_STEP = 1e-4  # between the papers that one citation names; scores of other citations differ by more


class Written(NamedTuple):
    """A citation that a model wrote, and its score."""

    text: str
    score: float


class TokenSequences:
    """A set of sequences of token ids. Some 40 bytes a sequence and 4 a token are kept.

    Attributes:
        longest: How many tokens the longest sequence has.
    """

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        # Bytes with the highest first sort as numbers do, and sequences that share a beginning are neighbours.
        self._rows = sorted(set(map(_packed, sequences)))
        self.longest = max(map(len, self._rows), default=0) // 4

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, sequence: Sequence[int]) -> bool:
        row = _packed(sequence)
        return self._rows[(at := bisect_left(self._rows, row)) : at + 1] == [row]

    def following(self, begun: Sequence[int]) -> list[int]:
        """The tokens that follow a beginning in some sequence, in order; none if no sequence goes on from it."""
        beginning, tokens = _packed(begun), []
        at = bisect_left(self._rows, beginning + bytes(4))
        while at < len(self._rows) and self._rows[at].startswith(beginning):
            tokens.append(int.from_bytes(self._rows[at][len(beginning) : len(beginning) + 4]))
            at = bisect_left(self._rows, beginning + (tokens[-1] + 1).to_bytes(4), at)
        return tokens


def _packed(sequence: Sequence[int]) -> bytes:
    return np.asarray(sequence, ">u4").tobytes()


def suggestions(
    model: TextModel,
    inputs: Sequence[Sequence[int]],
    beams: int,
    max_new_tokens: int,
    end: int | None = None,
    length_penalty: float = 1.0,
    allowed: TokenSequences | None = None,
) -> list[list[Written]]:
    """The texts that a beam search finds for each input, best first, each once; fewer if fewer are allowed.

    Inputs of similar length are read together: only the last digits of scores depend on the others of a batch.

    Args:
        model: An encoder-decoder; or a causal model, which goes on from the inputs.
        inputs: Token ids.
        beams: How many texts are followed and returned.
        max_new_tokens: The longest text, with its end.
        end: A token that ends a text, beside the model's own.
        length_penalty: A text scores the sum of its log-probabilities, divided by its length to this power.
        allowed: All texts that may be written, with their ends; by default any.
    """
    import torch
    from transformers import GenerationConfig

    ends = [*([] if end is None else [end]), *model.end]
    config = GenerationConfig(  # type: ignore[no-untyped-call]
        max_new_tokens=max_new_tokens,
        num_beams=max(2, beams),  # a single one gets no score
        num_return_sequences=beams,
        do_sample=False,
        length_penalty=length_penalty,
        eos_token_id=ends or None,
        pad_token_id=model.pad,
        return_dict_in_generate=True,
        output_scores=True,
    )
    tokens, scores = (limits[model.device == "cuda"] for limits in (_TOKENS_AT_ONCE, _SCORES_AT_ONCE))
    most = max(1, scores // (config.num_beams * max_new_tokens * len(model.tokenizer)))
    lengths = [len(ids) + max_new_tokens * model.is_causal for ids in inputs]
    texts: list[list[Written]] = [[] for _ in inputs]
    for rows in batches_by_length(lengths, tokens // config.num_beams, most):
        tensors = model.tensors([inputs[row] for row in rows], pad_before=model.is_causal)
        begin = tensors["input_ids"].shape[1] if model.is_causal else 1

        def following(_: int, ids: torch.Tensor, begin: int = begin) -> list[int]:
            return (allowed.following(ids[begin:].tolist()) if allowed else []) or [model.pad]  # it must name one

        with model.turn, torch.inference_mode(), model.autocast(), quiet_libraries():
            written = model.model.generate(
                **tensors, generation_config=config, prefix_allowed_tokens_fn=following if allowed else None
            )
        scored = list(zip(written.sequences[:, begin:].tolist(), written.sequences_scores.tolist(), strict=True))
        for place, row in enumerate(rows):
            best: dict[str, float] = {}
            for ids, score in scored[place * beams : (place + 1) * beams]:
                length = next((at for at, one in enumerate(ids) if one in ends), len(ids))
                if allowed is None or ids[: length + 1] in allowed:  # beams left over are filled with anything
                    best.setdefault(model.decode(ids[:length]), score)
            texts[row] = [Written(*one) for one in sorted(best.items(), key=lambda one: (-one[1], one[0]))]
    return texts


class WritingRetriever(CountingRetriever):
    """A model writes citations, and the papers that they name are found. Safe to call from several threads.

    A paper scores the log-probability of its best citation, divided by its length. The number of citations does not
    depend on k. `counts` says how many were written, how many named no paper, and how many one that is left out. The
    model is opened when it is first needed.

    Attributes:
        kind: The kind of model.
        writes: What its texts are, in the plural.
        remedy: How to get a model, with `{own}` for its place in the index.

    Raises:
        ModelError: The model cannot be opened; this is raised by the first search.
    """

    filters_itself = True
    kind: ClassVar[ModelKind]
    writes: ClassVar[str]
    remedy: ClassVar[str]

    @classmethod
    def provenance_at(cls, index: Path, settings: Any) -> Provenance:
        """What the model learnt from, if it says so."""
        name = model_or_own(settings.model, trained_of(index, cls.name))
        return provenance_of_part(bare_name(name)) if name else NOTHING

    @classmethod
    def model_name(cls, index: Path, settings: Any, part: str = "") -> str:
        """The model of the settings, or that of the index; raises SettingsError if there is neither.

        `part` is who needs it, by default the retriever.
        """
        part, own = part or cls.name, trained_of(index, cls.name)
        if name := model_or_own(settings.model, own):
            return name
        remedy = cls.remedy.format(key=part.replace("-", "_"), own=own, index=index)
        raise SettingsError(f"{part} needs a model of the kind {cls.kind}, and {index} has none", remedy)

    def __init__(self, index: OpenIndex, settings: Any) -> None:
        super().__init__(index, settings)
        self._name = self.model_name(index.path, settings)
        self._opened: tuple[TextModel, TokenSequences | None] | None = None

    def close(self) -> None:
        """Releases the model."""
        self._opened = None

    @abstractmethod
    def read(self, model: TextModel, topic: Topic, room: int) -> Sequence[int]:
        """What the model reads of a topic; a causal one with room for so many tokens."""

    @abstractmethod
    def citation(self, model: TextModel, paper: Paper) -> Sequence[int]:
        """The citation of a paper as the model may write it, with its end; empty if it has none."""

    @abstractmethod
    def named(self, text: str) -> Sequence[str]:
        """The ids of the papers that a citation names."""

    @abstractmethod
    def chosen(self, topic: Topic, named: Sequence[list[str]], filters: Filters) -> Sequence[Sequence[str]]:
        """Of the papers that each citation names, and that pass the filters, those that count, in their order."""

    def search_options(self, _model: TextModel) -> Mapping[str, Any]:
        """Other arguments of `suggestions`; none by default."""
        return {}

    def prepare(self, topics: Sequence[Topic]) -> list[list[Written]]:
        """The citations that the model writes for some topics, best first; none for one without words.

        Raises:
            ModelError: The model cannot be opened, or has no room for so many tokens.
        """
        model, allowed = self._open()
        longest = allowed.longest if allowed else self.settings.max_new_tokens
        inputs = [self.read(model, topic, longest) for topic in topics if topic.passage]
        more = self.search_options(model)
        written = iter(suggestions(model, inputs, self.settings.beams, longest, allowed=allowed, **more))
        return [next(written) if topic.passage else [] for topic in topics]

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
        named = [self.named(one.text) for one in written]
        every = [Candidate(paper_id, 0.0) for papers in named for paper_id in papers]
        passing = {one.paper_id for one in self.index.permitted(self.name, every, filters)}
        kept = [[paper_id for paper_id in papers if paper_id in passing] for papers in named]
        scores: dict[str, float] = {}
        for one, papers in zip(written, self.chosen(topic, kept, filters), strict=True):
            for place, paper_id in enumerate(papers):
                scores.setdefault(paper_id, one.score - _STEP * place)
        unknown = sum(not papers for papers in named)
        left_out = sum(not papers for papers in kept) - unknown
        with self._lock:
            self._counts.update({"written": len(written), "unknown": unknown, "left out": left_out})
        candidates = [Candidate(paper_id, score, None, {self.name: score}) for paper_id, score in scores.items()]
        return sorted(candidates, key=lambda one: (-one.score, one.paper_id.encode()))[:k]

    def remark(self, counts: Mapping[str, int]) -> str:
        """How many citations named no paper of the index, and how many one that was left out."""
        written, unknown, out = (counts[name] for name in ("written", "unknown", "left out"))
        if not unknown and not out:
            return ""
        return (
            f"{unknown:,} of {written:,} {self.writes} that were written ({unknown / written:.1%}) name no paper of "
            f"the index; {out:,} name one that a filter or a leak rule leaves out."
        )

    def _open(self) -> tuple[TextModel, TokenSequences | None]:
        with self._lock:
            if self._opened is None:
                model = open_writer(self._name, self.kind, self.settings.max_new_tokens)
                allowed = None
                if self.settings.constrained:
                    room = min(_LONGEST, (model.max_output_tokens or 2 * _LONGEST) // 2)
                    citations = (self.citation(model, paper) for paper in self.index.store.all_papers())
                    allowed = TokenSequences(ids for ids in citations if 0 < len(ids) <= room)
                self._opened = model, allowed
            return self._opened


def open_writer(name: str, kind: ModelKind, max_new_tokens: int) -> TextModel:
    """Opens a model. Raises ModelError if it cannot be opened, or has no room for what it is to write."""
    model = TextModel.open(name, kinds=[kind])
    if model.max_output_tokens is not None and max_new_tokens >= model.max_output_tokens:
        fault = f"{name} has room for {model.max_output_tokens} tokens, and a citation may have {max_new_tokens}"
        raise ModelError(fault, "Give fewer max_new_tokens.")
    return model
