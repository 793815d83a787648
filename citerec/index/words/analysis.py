"""From texts to terms: words in lower case, without Lucene's English stop words, stemmed by Porter's algorithm."""

import array
import functools
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STOP_WORDS = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
    "s",
})  # fmt: skip
"""Those of Lucene's EnglishAnalyzer, and the s of a possessive, which it takes off."""

# Chinese and Japanese are written without spaces: there each character is a word, as in Lucene's StandardTokenizer.
_WORDS_OF_ASCII = bytes(ord(chr(code).lower()) if re.match(r"\w", chr(code)) else ord(" ") for code in range(128))
_WORDS_OF_ASCII += bytes(128)
"""Letters in lower case, digits and _ as they are, and a space for all else: twice as fast as a regular expression."""
_IDEOGRAPHS = r"\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in order, stop words among them."""
    if text.isascii():
        return text.encode().translate(_WORDS_OF_ASCII).decode().split()
    return _WORD.findall(text.lower())


def stems(words: Sequence[str]) -> list[str]:
    """The stem of each word (Porter, An algorithm for suffix stripping, Program 14(3), 1980; PyStemmer)."""
    import Stemmer

    stemmed: list[str] = Stemmer.Stemmer("porter", 0).stemWords(words)  # a new one: threads must not share them
    return stemmed


def terms_of(text: str) -> list[str | None]:
    """The terms of a text at their places, as phrases are compared; None in place of a stop word."""
    words = words_of(text)
    return [None if word in STOP_WORDS else stem for word, stem in zip(words, stems(words), strict=True)]


@functools.lru_cache(1 << 16)
def hash_of(text: str) -> int:
    """The hash of a text, 64 bits: most words and names come again."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def term_weights(texts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The terms of some texts with weights, each with its weight: that of each text as often as it has the term."""
    weights: dict[str, float] = {}
    for text, weight in texts:
        for term in terms_of(text) if weight else ():
            if term is not None:
                weights[term] = weights.get(term, 0.0) + weight
    return weights


class Analysis(NamedTuple):
    """The terms of some texts.

    Attributes:
        terms: The different terms, in order of their numbers.
        numbers: These numbers, 64 bits of a hash, (terms,): so a vocabulary is an array that opens without reading. Two
            terms of a vocabulary of ten million have the same number with a probability of 3 in a million.
        places: The place among them of each word that is no stop word, text after text, (words,).
        texts: The number of the text of each of these words, (words,).
    """

    terms: list[str]
    numbers: NDArray[np.uint64]
    places: NDArray[np.int32]
    texts: NDArray[np.int64]


def analysis_of(texts: Sequence[str]) -> Analysis:
    """The terms of some texts; each different word is stemmed once."""
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__  # a new word gets the next number
    word_ids, lengths = array.array("i"), np.empty(len(texts), np.int64)
    for at, text in enumerate(texts):
        words = words_of(text)
        lengths[at] = len(words)
        word_ids.extend(map(vocabulary.__getitem__, words))
    stemmed = stems([*vocabulary])
    numbers = np.array([*map(hash_of, stemmed)], np.uint64)
    numbers, firsts, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    kept, words_at = np.array([word not in STOP_WORDS for word in vocabulary], bool), np.frombuffer(word_ids, np.intc)
    is_term = kept[words_at]
    owners = np.repeat(np.arange(len(texts)), lengths)[is_term]
    terms = [stemmed[at] for at in firsts.tolist()]
    return Analysis(terms, numbers, inverse.astype(np.int32)[words_at[is_term]], owners)
