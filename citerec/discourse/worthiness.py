"""Sentences that look like they need a citation: logistic regression over words, places and neighbours.

The model (`worthiness.json`) is made by `benchmarks/worthiness.py` from papers whose citations were taken out.
"""

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import orjson

from citerec.contexts.sections import is_introduction, is_related_work
from citerec.discourse.features import Tokens
from citerec.discourse.vectors import Vectors

BLOCKS = ("words", "place")
MODEL = "worthiness.json"
FEWEST_WORDS, MOST_WORDS = 6, 80
"""Shorter and longer pieces of text are rarely sentences."""

_WORD = re.compile(r"\w+|[^\w\s]")
_DIGITS = re.compile(r"\d+")
_ENDS = re.compile(r"[.!?][\"”’')]*$")
_SIGNS = {
    "others": re.compile(r"\bet al\b"),
    "acronym": re.compile(r"\b[A-Z]{2,}"),
    "own": re.compile(r"\b(?:we|our|us|this paper)\b", re.IGNORECASE),
    "figure": re.compile(r"\b(?:figure|fig|table|section|equation|algorithm|theorem|lemma)\b", re.IGNORECASE),
    "year": re.compile(r"\b(?:19|20)\d\d\b"),
}
_COUNTED = {
    "names": re.compile(r"(?<=[a-z,] )[A-Z]\w+"),
    "symbols": re.compile(r"(?<!\w)[B-HJ-Zb-z](?!\w)|[=<>∈]"),  # "a" and "I" are words
}
_MOST_COUNTED = 3


class Sentence(NamedTuple):
    """A sentence without its citations, and whether it had one."""

    text: str
    cites: bool


class Worthiness:
    """Says how likely a sentence has a citation in a published paper.

    Attributes:
        vectors: Makes vectors of what `describe` says.
        weights: One for each token, and the constant.
        threshold: The probability from which a sentence should be pointed out.
        manifest: What it was made from, and how good it is.
    """

    def __init__(
        self, vectors: Vectors, weights: Sequence[float], threshold: float, manifest: Mapping[str, Any]
    ) -> None:
        self.vectors, self.weights = vectors, np.array(weights)
        self.threshold, self.manifest = threshold, manifest

    def probabilities(self, sentences: Sequence[Tokens]) -> Any:
        """How likely each sentence cites, by what `describe` says of it."""
        scores = self.vectors.matrix(sentences) @ self.weights[:-1] + self.weights[-1]
        return 1 / (1 + np.exp(-scores))


@functools.cache
def shipped() -> Worthiness:
    """The model that comes with citerec."""
    stated = orjson.loads(resources.files("citerec.discourse").joinpath(MODEL).read_bytes())
    vectors = Vectors(stated.pop("vocabulary"), np.array(stated.pop("idf"), np.float32))
    return Worthiness(vectors, stated.pop("weights"), stated.pop("threshold"), stated)


def is_sentence(text: str) -> bool:
    """Whether a text is long enough for a sentence, not too long, and ends like one."""
    return FEWEST_WORDS <= len(text.split()) <= MOST_WORDS and _ENDS.search(text) is not None


def describe(paragraph: Sequence[Sentence], at: int, section: str | None) -> Tokens:
    """What the model sees of a sentence: its words, its place, and whether its neighbours cite."""
    text = paragraph[at].text
    words = _WORD.findall(_DIGITS.sub("0", text.lower()))
    before, after = paragraph[max(0, at - 3) : at], paragraph[at + 1 : at + 4]
    place = [
        f"section {_kind(section)}",
        f"before {before[-1].cites if before else None}",
        f"after {after[0].cites if after else None}",
        f"near {sum(one.cites for one in (*before, *after))}",
        f"length {min(len(text.split()) // 8, 5)}",
        *(f"has {name}" for name, sign in _SIGNS.items() if sign.search(text)),
        *(f"{name} {min(len(sign.findall(text, 1)), _MOST_COUNTED)}" for name, sign in _COUNTED.items()),
    ]
    if not before:
        place.append("first")
    return {
        "words": [*words, *map(" ".join, itertools.pairwise(words))],
        "place": place,
    }


def _kind(section: str | None) -> str:
    if is_related_work(section):
        return "related work"
    return "introduction" if is_introduction(section) else "other"
