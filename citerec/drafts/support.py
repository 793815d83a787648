"""Whether a cited paper fits the sentence that cites it, and which of its sentences says what that claims.

Both by logistic regression over a few pieces of evidence, standardised. `benchmarks/support.py` makes the model
(`support.json`) and measures it.
"""

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from citerec.contexts.split import splitter
from citerec.corpus.citation_keys import parts_of
from citerec.drafts.base import Place
from citerec.index.columns import Rows, words_in
from citerec.models.encoder import Encoder
from citerec.models.find import SHIPPED_ENCODER
from citerec.records import MARKER, Context, Paper

Floats = NDArray[np.floating[Any]]
MODEL = "support.json"
SUPPORTS, ON_TOPIC, DOES_NOT_FIT = "supports", "on the topic", "does not fit"
"""What is said of a citation."""
FEWEST = 5
"""Papers of a library from which those of one sentence can be told from the others."""

_STEM = 5  # letters of a word that tell its stem
_NEAR = (4, 8, 16)  # words before the citation
_CAPITAL = re.compile(r"\b[A-Z][\w'’-]+")
_BEGINNING = 0.1
"""Share of the sentences of a paper that are its beginning."""

SAYS = ("cosine", "words", "words of neighbours", "place", "beginning", "length", "rank", "cosine of title")
"""Evidence that a sentence of a paper says what a citing sentence claims."""


class Curve(NamedTuple):
    """Logistic regression over evidence.

    Attributes:
        mean: Of each piece of evidence.
        scale: Its standard deviation.
        weights: Its weight.
        constant: What is added.
        threshold: The probability from which the answer is yes.
    """

    mean: Sequence[float]
    scale: Sequence[float]
    weights: Sequence[float]
    constant: float
    threshold: float

    def at(self, evidence: Floats) -> Floats:
        """The probabilities for evidence, (rows, pieces)."""
        values = np.clip((evidence - np.array(self.mean)) / np.array(self.scale), -4, 4)
        return np.asarray(1 / (1 + np.exp(-(values @ np.array(self.weights) + self.constant))))


class Judgement(NamedTuple):
    """What is said of a citation.

    Attributes:
        key: The key that is cited.
        sentence: The citing sentence.
        verdict: `supports`, `on the topic`, or `does not fit`; empty if nothing can be said.
        says: The sentence of the abstract that supports the claim best; empty without an abstract.
        place: Where the sentence stands.
    """

    key: str
    sentence: str
    verdict: str
    says: str
    place: Place


class Support:
    """Compares the sentences of a draft with the papers of its library.

    Args:
        papers: The library: the papers that are cited, or more.

    Attributes:
        vectors: Their vectors, (papers, dimension).
    """

    def __init__(self, papers: Sequence[Paper]) -> None:
        self.papers, self._encoder = papers, shipped_encoder()
        titles = [frozenset(words_in(paper.title)) for paper in papers]
        stems = [*map(_stems, titles)]
        self.vectors = self._encoder.encode([f"{paper.title}. {paper.abstract or ''}" for paper in papers])
        self._title_vectors = self._encoder.encode([paper.title or "." for paper in papers])
        self._counts = Counter(one for words in (*titles, *stems) for one in words)
        self._of_titles = np.array([self._sum(words) or 1.0 for words in titles])
        self._of_stems = np.array([self._sum(words) or 1.0 for words in stems])
        self._titles, self._stems = _postings(titles), _postings(stems)
        texts = zip(titles, papers, strict=True)
        self._texts = _postings([title.union(words_in(paper.abstract or "")) for title, paper in texts])
        self._names = _postings(
            {family.split()[-1].casefold() for name in paper.authors if (family := parts_of(name)[1])}
            for paper in papers
        )

    def evidence(self, context: Context) -> Floats:
        """The evidence that each paper of the library fits a context, (papers, pieces).

        The citation is at `<REF>`, or else at the end of the sentence.

        The pieces are: cosine, cosine among all, rank, words of the title, words of the title around, rarest word,
        words of the abstract, an author named, stems of the title, title near the citation.
        """
        around = f"{context.before} {context.text} {context.after}"
        vectors = self._encoder.encode([context.text, around])
        cosines = self.vectors @ (vectors[0] + 0.5 * vectors[1]) / 1.5
        spread = max(float(cosines.std()), 1e-6)
        rank = (-cosines).argsort().argsort() / max(1, len(cosines))
        own, near = frozenset(words_in(context.text)), frozenset(words_in(around))
        named = {name.casefold() for name in _CAPITAL.findall(context.text)}
        rarest = np.zeros(len(self.papers))
        for word in own & self._titles.keys():
            rows = self._titles[word]
            rarest[rows] = np.maximum(rarest[rows], self._weight(word))
        shared = [
            self._sums(self._titles, own) / self._of_titles,
            self._sums(self._titles, near) / self._of_titles,
            rarest,
            self._sums(self._texts, own) / (self._sum(own) or 1.0),
            self._sums(self._names, named) > 0,
            self._sums(self._stems, _stems(own)) / self._of_stems,
        ]
        before = context.text.partition(MARKER)[0].split()
        parts = self._encoder.encode([" ".join(before[-many:]) or "." for many in _NEAR])
        nearest = (self._title_vectors @ parts.T).max(axis=1)
        dense = [cosines, (cosines - cosines.mean()) / spread, np.log(rank + 0.01)]
        last = (nearest - nearest.mean()) / max(float(nearest.std()), 1e-6)
        return np.stack([*dense, *shared, last], axis=1)

    def fit(self, context: Context) -> dict[str, float]:
        """How probable it is that each paper of the library is cited there, by id; empty if it is too small to tell."""
        if len(self.papers) < FEWEST:
            return {}
        found = shipped_curves()["fit"].at(self.evidence(context))
        return {paper.paper_id: float(one) for paper, one in zip(self.papers, found, strict=True)}

    def fits(self, probability: float) -> bool:
        """Whether a probability of `fit` is as high as those of 95 % of the citations of published papers."""
        return probability >= shipped_curves()["fit"].threshold

    def _weight(self, word: str) -> float:
        return math.log((len(self.papers) + 1) / (self._counts[word] + 0.5))

    def _sum(self, words: Iterable[str]) -> float:
        return sum(map(self._weight, words))

    def _sums(self, postings: Mapping[str, Rows], words: Set[str]) -> Floats:
        """For each paper the weights of those words that it has, (papers,)."""
        sums = np.zeros(len(self.papers))
        for word in words & postings.keys():
            sums[postings[word]] += self._weight(word)
        return sums


def _postings(words: Iterable[Iterable[str]]) -> dict[str, Rows]:
    """For each word the rows of the papers that have it."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, of_one in enumerate(words):
        for word in of_one:
            rows[word].append(row)
    return {word: np.array(having) for word, having in rows.items()}


def _stems(words: Iterable[str]) -> frozenset[str]:
    """The beginnings of the longer words."""
    return frozenset(f"{word[:_STEM]}-" for word in words if len(word) >= _STEM - 1)


library_of = functools.lru_cache(4)(Support)
"""The library of a tuple of papers, which is kept for the next question."""


def sentence_evidence(claim: str, sentences: Sequence[str]) -> Floats:
    """The evidence that each sentence of a paper says what is claimed, (sentences, len(SAYS)); the title is first."""
    words = [words_in(one) for one in sentences]
    counts = Counter(word for one in words for word in set(one))
    weight = {word: math.log(1 + len(sentences) / count) for word, count in counts.items()}
    wanted = set(words_in(claim))
    length = sum(map(len, words)) / max(1, len(words)) or 1.0
    shared = np.array([_bm25(one, wanted, weight, length) for one in words])
    beside = np.pad(shared, 1)
    vectors = shipped_encoder().encode([claim, *sentences])
    cosines = vectors[1:] @ vectors[0]
    place = np.arange(len(sentences)) / max(1, len(sentences))
    rank = np.log1p((-shared).argsort(kind="stable").argsort(kind="stable"))
    neighbours, lengths, of_title = beside[:-2] + beside[2:], np.log1p(list(map(len, words))), vectors[1:] @ vectors[1]
    pieces = [cosines, shared, neighbours, place, place < _BEGINNING, lengths, rank, of_title]
    return np.stack(pieces, axis=1).astype(float)


def _bm25(words: Sequence[str], wanted: set[str], weight: Mapping[str, float], length: float) -> float:
    counts = Counter(word for word in words if word in wanted)
    norm = 1.2 * (0.25 + 0.75 * len(words) / length)
    return sum(weight[word] * count * 2.2 / (count + norm) for word, count in counts.items())


def supporting_sentence(claim: str, paper: Paper) -> tuple[str, bool]:
    """The sentence of a paper's abstract that best says what is claimed, and whether it supports it; "" if it has none.

    It supports it if it is more probable than the best sentences of 95 % of other papers of the library.
    """
    curve = shipped_curves()["says"]
    said, probability = best_sentence(claim, paper, curve)
    return said, probability >= curve.threshold


def best_sentence(claim: str, paper: Paper, curve: Curve) -> tuple[str, float]:
    """The sentence of a paper's abstract that best says what is claimed, by a curve, and how probable that is.

    The probability is 0 for a sentence that shares no word with the claim; "" and 0 for a paper without an abstract.
    """
    abstract = paper.abstract or ""
    sentences = [paper.title, *(abstract[start:end].strip() for start, end in splitter()(abstract))]
    if len(sentences) == 1:
        return "", 0.0
    evidence = sentence_evidence(claim, sentences)[1:]
    found = curve.at(evidence)
    best = int(found.argmax())
    return sentences[1 + best], float(found[best] if evidence[best, SAYS.index("words")] > 0 else 0.0)


@functools.cache
def shipped_encoder() -> Encoder:
    """The static encoder that comes with citerec."""
    return Encoder.open(SHIPPED_ENCODER)


@functools.cache
def shipped_curves() -> dict[str, Curve]:
    """The curves that come with citerec."""
    value = orjson.loads(resources.files("citerec.drafts").joinpath(MODEL).read_bytes())
    return {name: Curve(**value[name]) for name in ("fit", "says")}
