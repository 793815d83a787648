"""Sentences that look like they need a citation: logistic regression over words, places and neighbours.

The model (`worthiness.json`) is made by `benchmarks/worthiness.py` from papers whose citations were taken out.
"""

import functools
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import orjson

from citerec.contexts.sections import is_introduction, is_related_work
from citerec.discourse.linear import WORD, Blocks, LinearModel, ngrams

MODEL = "worthiness.json"
FEWEST_WORDS, MOST_WORDS = 6, 80
"""Shorter and longer pieces of text are rarely sentences."""

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
    """A sentence without its citations, whether it had one, the keys that it cites, and the sentence with a `<REF>`.

    This `<REF>` stands for the first citation.
    """

    text: str
    cites: bool
    keys: tuple[str, ...] = ()
    marked: str = ""


class Placed(NamedTuple):
    """A sentence at its place: the sentences of its paragraph, its number among them, and the headline above."""

    paragraph: Sequence[Sentence]
    at: int
    section: str | None


class Worthiness(NamedTuple):
    """Says how likely a sentence has a citation in a published paper.

    Attributes:
        model: Has one output, over `BLOCKS`.
        threshold: The probability from which a sentence should be pointed out.
    """

    model: LinearModel
    threshold: float

    def probabilities(self, sentences: Sequence[Placed]) -> Any:
        """How likely each sentence cites, (sentences,)."""
        return 1 / (1 + np.exp(-self.model.scores(sentences)[:, 0]))


@functools.cache
def shipped() -> Worthiness:
    """The model that comes with citerec."""
    facts = orjson.loads(resources.files("citerec.discourse").joinpath(MODEL).read_bytes())
    return Worthiness(LinearModel(BLOCKS, facts["vocabulary"], facts["idf"], [facts["weights"]]), facts["threshold"])


def is_sentence(text: str) -> bool:
    """Whether a text is long enough for a sentence, not too long, and ends like one."""
    return FEWEST_WORDS <= len(text.split()) <= MOST_WORDS and _ENDS.search(text) is not None


def _words(sentence: Placed) -> list[str]:
    text = sentence.paragraph[sentence.at].text
    return ngrams(WORD.findall(_DIGITS.sub("0", text.lower())), 2)


def _place(sentence: Placed) -> list[str]:
    """The section of a sentence, its form, and whether its neighbours cite."""
    paragraph, at, section = sentence
    text = paragraph[at].text
    before, after = paragraph[max(0, at - 3) : at], paragraph[at + 1 : at + 4]
    other = "introduction" if is_introduction(section) else "other"
    return [
        f"section {'related work' if is_related_work(section) else other}",
        f"before {before[-1].cites if before else None}",
        f"after {after[0].cites if after else None}",
        f"near {sum(one.cites for one in (*before, *after))}",
        f"length {min(len(text.split()) // 8, 5)}",
        *(f"has {name}" for name, sign in _SIGNS.items() if sign.search(text)),
        *(f"{name} {min(len(sign.findall(text, 1)), _MOST_COUNTED)}" for name, sign in _COUNTED.items()),
        *(() if before else ("first",)),
    ]


BLOCKS: Blocks = {"words": (_words, 1.0), "place": (_place, 1.0)}
"""Words and pairs of words; place, form and neighbours."""
