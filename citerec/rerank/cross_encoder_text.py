"""What a cross-encoder reads: the texts of a pair, and how they are truncated. Training and search both use this."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from citerec.contexts.topic import Topic, clean
from citerec.errors import ModelError
from citerec.index.vectors.build import paper_text
from citerec.records import MARKER, Paper

if TYPE_CHECKING:
    from tokenizers import Encoding

MINOR_SHARE = 0.35
"""Share of the tokens for the citing paper (LCR, Gu et al. 2022, section 4.2), and for a citance on its own side."""


class Pair(NamedTuple):
    """A context and a candidate, as texts.

    Attributes:
        citing: Title and abstract of the citing paper; empty if it is unknown.
        passage: The sentence, and those around it.
        paper: Title and abstract of the candidate.
        citance: A sentence that cites the candidate; empty if there is none.
        rank: The rank of the candidate before, from 1: only models with a rank prior read it.
    """

    citing: str
    passage: str
    paper: str
    citance: str
    rank: int = 1


class TextOptions(BaseModel):
    """What the texts are made of. A model's manifest keeps these options: it is used as it was trained.

    Attributes:
        max_tokens: The largest number of tokens of a pair.
        citing: Whether the citing paper is read.
        citances: Whether a sentence of another paper that cites the candidate is read.
        marker: Whether the place of the citation is read, as a token of its own.
        rank_prior: Whether the candidate's rank before is read too: `citerec.rerank.rank_prior`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_tokens: int = Field(default=512, ge=16, le=8192)
    citing: bool = True
    citances: bool = True
    marker: bool = False
    rank_prior: bool = False


def pair_of(topic: Topic, paper: Paper, citance: str | None, options: TextOptions, rank: int = 1) -> Pair:
    """The texts of a context and a candidate, with a sentence in which another paper cited the candidate.

    The search must have found that sentence under the leak rules.
    """
    return Pair(
        citing=paper_text(topic.citing) if topic.citing and options.citing else "",
        passage=_marked_passage(topic) if options.marker else topic.passage,
        paper=paper_text(paper),
        citance=clean(citance) if citance and options.citances else "",
        rank=rank,
    )


def _marked_passage(topic: Topic) -> str:
    """The passage as `Topic.passage`, with the marker where it was."""
    text = f" {MARKER} ".join(clean(part) for part in topic.context.text.split(MARKER))
    return f"{text} {topic.neighbours}".strip()


class Encoded(NamedTuple):
    """A pair as tokens: their ids, the side to which each belongs, and the rank of the candidate before, from 1."""

    ids: list[int]
    sides: list[int]
    rank: int


class PairTokenizer:
    """Turns pairs into tokens: [CLS] citing paper, passage [SEP] candidate, citance [SEP], or in the model's own form.

    Each side gets at least half of the tokens, and may use what the other leaves. Within a side, the minor part (citing
    paper or citance) is cut first.

    Raises:
        ModelError: The tokenizer is not one of the `tokenizers` library, or has no padding.
    """

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        if not getattr(tokenizer, "is_fast", False) or tokenizer.pad_token_id is None:
            raise ModelError(
                f"the tokenizer of {tokenizer.name_or_path} cannot be used: it is slow, or has no padding",
                "Use a base model with a tokenizer.json, such as allenai/scibert_scivocab_uncased.",
            )
        self.tokenizer = tokenizer
        self._room = max_tokens - tokenizer.num_special_tokens_to_add(pair=True)
        # A saved tokenizer may have truncation and padding of its own.
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()

    def encode(self, pairs: Sequence[Pair]) -> list[Encoded]:
        """The tokens of some pairs."""
        texts = [text for pair in pairs for text in (pair.citing, pair.passage, pair.paper, pair.citance)]
        parts = iter(self._backend.encode_batch_fast(texts, add_special_tokens=False))
        framed = (self._framed(*four) for four in zip(parts, parts, parts, parts, strict=True))
        return [Encoded(both.ids, both.type_ids, pair.rank) for both, pair in zip(framed, pairs, strict=True)]

    def _framed(self, citing: "Encoding", passage: "Encoding", paper: "Encoding", citance: "Encoding") -> "Encoding":
        """The parts, truncated, with the special tokens of the model around each side."""
        from tokenizers import Encoding

        citing.truncate(int(MINOR_SHARE * self._room))
        whole_a, whole_b = len(citing) + len(passage), len(paper) + len(citance)
        _truncate(citing, passage, max(self._room - self._room // 2, self._room - whole_b))
        _truncate(citance, paper, max(self._room // 2, self._room - whole_a))
        sides = Encoding.merge([citing, passage]), Encoding.merge([paper, citance])
        framed: Encoding = self._backend.post_process(*sides)
        return framed

    def padded(self, batch: Sequence[Encoded]) -> Mapping[str, npt.NDArray[np.int64]]:
        """The inputs of a model: arrays of (pairs, tokens of the longest), by name."""
        encoded = {"input_ids": [pair.ids for pair in batch], "token_type_ids": [pair.sides for pair in batch]}
        arrays = self.tokenizer.pad(encoded, padding_side="right", return_attention_mask=True, return_tensors="np")
        return {name: arrays[name] for name in self.inputs}

    @property
    def inputs(self) -> list[str]:
        """The names of the model's inputs."""
        names = ("input_ids", "attention_mask", "token_type_ids")
        return [name for name in names if name in self.tokenizer.model_input_names]


def _truncate(minor: "Encoding", major: "Encoding", room: int) -> None:
    """Truncates both parts of a side to its room: the minor one to its share, or to what the major one leaves."""
    minor.truncate(max(int(MINOR_SHARE * room), room - len(major)))
    major.truncate(room - len(minor))
