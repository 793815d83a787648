"""What NCN reads, as numbers: words of texts and titles, and names of authors, from vocabularies of its own."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import orjson

PADDING, UNKNOWN, BEGIN, END = range(4)
_SPECIAL = 4
_WORD = re.compile(r"[^\W_]+")

KINDS = ("texts", "titles", "authors")
"""The vocabularies, by name."""


class Rows(NamedTuple):
    """Texts as numbers, one per row: ids (rows, longest), with padding behind each; lengths (rows,)."""

    ids: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


class Vocabulary:
    """The words that a model knows, numbered from `_SPECIAL` on.

    Attributes:
        words: The known words.
        left_out: How many different words of the training data it does not know.
    """

    def __init__(self, words: Sequence[str], left_out: int) -> None:
        self.words = tuple(words)
        self.left_out = left_out
        self._ids = {word: number for number, word in enumerate(self.words, _SPECIAL)}

    @classmethod
    def of(cls, counts: Counter[str], size: int) -> Self:
        """The most frequent words, at most `size`; ties by the word itself.

        A word that occurs once is left out: so there are unknown words to learn from.
        """
        known = sorted((word for word, count in counts.items() if count > 1), key=lambda word: (-counts[word], word))
        return cls(known[:size], len(counts) - len(known[:size]))

    def __len__(self) -> int:
        return len(self.words) + _SPECIAL

    @property
    def spread(self) -> float:
        """What it costs, in nats, to say which unknown word it is: each left out is equally likely."""
        return math.log(max(1, self.left_out))

    def ids(self, words: Iterable[str]) -> list[int]:
        """The numbers of some words."""
        return [self._ids.get(word, UNKNOWN) for word in words]


class Vocabularies:
    """The three vocabularies of a model: words of contexts, words of titles, and authors."""

    def __init__(self, of_kind: dict[str, Vocabulary]) -> None:
        self.texts, self.titles, self.authors = (of_kind[kind] for kind in KINDS)

    @property
    def sizes(self) -> dict[str, int]:
        """How many numbers each vocabulary has, by its name."""
        return {kind: len(getattr(self, kind)) for kind in KINDS}

    def write(self, file: Path) -> None:
        """Writes them as JSON."""
        found = {kind: getattr(self, kind) for kind in KINDS}
        value = {kind: {"words": one.words, "left_out": one.left_out} for kind, one in found.items()}
        file.write_bytes(orjson.dumps(value))

    @classmethod
    def read(cls, file: Path) -> Self:
        """Reads what `write` wrote; OSError, ValueError, TypeError or KeyError if the file is broken."""
        value = orjson.loads(file.read_bytes())
        return cls(
            {kind: Vocabulary([*map(str, value[kind]["words"])], int(value[kind]["left_out"])) for kind in KINDS}
        )


def words_of(text: str) -> list[str]:
    """The words of a text or a title, in lower case."""
    return _WORD.findall(text.casefold())


def names_of(authors: Iterable[str]) -> list[str]:
    """Authors by first initial and last name, in lower case, as in NCN's data."""
    found = map(words_of, authors)
    return [f"{words[0][0]} {words[-1]}" if len(words) > 1 else words[0] for words in found if words]


def rows_of(texts: Sequence[Sequence[int]], least: int = 1) -> Rows:
    """Texts as rows of numbers, with room for at least `least` in each."""
    lengths = np.array([len(text) for text in texts], np.int64)
    ids = np.full((len(texts), max([least, *lengths.tolist()])), PADDING, np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
    return Rows(ids, lengths)
