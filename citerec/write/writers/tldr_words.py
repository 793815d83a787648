"""What a trained writer of TLDRs sees of the words of an abstract: how likely each is to be in the TLDR."""

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from citerec.write.sentences import STOP_WORDS
from citerec.write.writers.extractive import contribution_of

Floats = npt.NDArray[np.float64]
Chances = Mapping[str, float]
"""For each stem of an abstract, how likely it is to be in the TLDR."""

_TOKEN = re.compile(r"[a-z0-9]+", re.IGNORECASE | re.ASCII)
_PRIOR = 4.0  # papers that are assumed for each word before counting
_AGAIN = 0.3  # how much less likely a word is found in a target a second time
_CUES = {
    "we": r"\b(?:we|our)\b",
    "made": r"\b(?:we|this (?:paper|work|article|study)|i) (?:\w+ )?(?:propose|introduce|present|develop)",
    "did": r"\bwe (?:\w+ )?(?:show|demonstrate|describe|study|investigate|explore|provide|design|prove|analy[sz]e)",
    "here": r"\b(?:in this (?:paper|work|article|study)|here,? we|to this end)\b",
    "found": r"\b(?:results?|experiments?|experimental|empirical|empirically|outperforms?|state[- ]of[- ]the[- ]art|"
    r"achieves?|improves?|demonstrates?|evaluat\w+)\b",
    "contrast": r"\b(?:however|but|although|while|despite|unlike|in contrast|yet|unfortunately)\b",
    "new": r"\b(?:novel|new|first|simple|efficient|effective)\b",
    "method": r"\b(?:method|approach|framework|model|algorithm|architecture|network)\b",
    "problem": r"\b(?:problem|challeng\w+|difficult|limited|expensive|suffers?|remains?|often|typically)\b",
    "details": r"\b(?:specifically|in particular|moreover|furthermore|in addition|additionally|finally|also)\b",
    "refers": r"^(?:this|these|it|they|such|our (?:method|approach|model|framework|algorithm|results?))\b",
    "links": r"https?:|github|code is|available at",
}
CUES = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _CUES.items()}
"""Phrases that tell what a sentence is about."""
_WORD_CUES = ("made", "here", "refers", "new", "method")

ALONE = (
    "prior", "title", "prior in title", "count", "sentences", "contribution", "first", "last", "with we", "place",
    "rare",
)  # fmt: skip
"""What the first guess of a word's chance depends on: a logistic regression."""
WORD_FEATURES = (
    *ALONE, *_WORD_CUES, "after we", "after we in its best", "capitals", "letters", "share before", "words before",
    "words after", "prior before", "prior after", "chance before", "chance after", "title before", "title after",
    "best sentence", "mean sentence", "below best", "in best", "all sentences", "all words", "title words",
    "in sentences", "number", "guess",
)  # fmt: skip
"""The names of the columns of `AbstractWords.features`."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How often words of abstracts are in their TLDRs.

    Attributes:
        papers: How many abstracts were counted.
        target_words: Words of a TLDR, on average.
        share: Share of the words of abstracts that are in the TLDR.
        counts: For each stem, how many abstracts have it, and how many of these have it in their TLDRs.
        weights: Of `ALONE`, in a logistic regression; the constant is last.
    """

    papers: int
    target_words: float
    share: float
    counts: Mapping[str, tuple[int, int]]
    weights: tuple[float, ...] = (0.0,) * (len(ALONE) + 1)

    @classmethod
    def read(cls, file: Path) -> "Vocabulary":
        """A vocabulary from its file; a KeyError, TypeError or ValueError if it is broken."""
        value = orjson.loads(file.read_bytes())
        counts = {stem: (int(papers), int(found)) for stem, (papers, found) in value.pop("counts").items()}
        weights = tuple(map(float, value.pop("weights")))
        if len(weights) != len(ALONE) + 1:
            raise ValueError("it was trained on other features")
        return cls(**value, counts=counts, weights=weights)

    def write(self, file: Path) -> None:
        """Writes it as JSON, one stem per line."""
        head = {name: getattr(self, name) for name in ("papers", "target_words", "share", "weights")}
        counts = ",\n".join(f'"{stem}":[{papers},{found}]' for stem, (papers, found) in sorted(self.counts.items()))
        text = orjson.dumps(head).decode().removesuffix("}")
        file.write_text(f'{text},\n"counts":{{\n{counts}\n}}}}\n', encoding="utf-8")

    def chance(self, stem: str, left_out: Set[str] | None = None) -> float:
        """Share of the abstracts with a stem that have it in their TLDRs, smoothed.

        Args:
            stem: The stem.
            left_out: While learning, the stems of the abstract's own TLDR, which is then not counted.
        """
        papers, found = self.counts.get(stem, (0, 0))
        if left_out is not None and papers:
            papers, found = papers - 1, found - (stem in left_out)
        return (found + _PRIOR * self.share) / (papers + _PRIOR)

    def rare(self, stem: str, left_out: Set[str] | None = None) -> float:
        """The idf of a stem; arguments as for `chance`."""
        papers = self.counts.get(stem, (0, 0))[0]
        return math.log((self.papers + 1) / (papers + (left_out is None or not papers)))


@functools.cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    return functools.lru_cache(100_000)(lambda word: Stemmer.Stemmer("english", 0).stemWord(word))


def stems_of(text: str) -> list[str]:
    """The stems of a text, by Porter's second stemmer. Like ROUGE, it knows only letters and digits of ASCII."""
    stem = _stemmer()
    return [stem(word) if len(word) > 3 else word for word in map(str.lower, _TOKEN.findall(text))]


def expected(stems: Sequence[str], chances: Chances, target: float) -> tuple[float, float, float, float]:
    """F1, precision and recall of ROUGE-1 that the chances of words let expect, and the share of likely pairs."""
    seen = Counter[str]()
    each = []
    for stem in stems:
        each.append(chances.get(stem, 0.0) * _AGAIN ** seen[stem])
        seen[stem] += 1
    total, length = sum(each), max(len(stems), 1)
    pairs = sum(one * other for one, other in itertools.pairwise(each))
    return 2 * total / (length + target), total / length, total / target, 2 * pairs / (length + target)


class AbstractWords:
    """The words of an abstract.

    Args:
        sentences: Its sentences, at least one.
        title: The title, empty if it is not known.
        vocabulary: The counts of words.
        left_out: As for `Vocabulary.chance`.

    Attributes:
        words: The stems of the abstract, each once.
        stems: The stems of each sentence.
        title: The stems of the title's content words.
        contribution: The number of the sentence that `contribution` picks.
    """

    def __init__(
        self, sentences: Sequence[str], title: str, vocabulary: Vocabulary, left_out: Set[str] | None = None
    ) -> None:
        self.sentences = sentences
        self.vocabulary = vocabulary
        self.left_out = left_out
        self.stems = [stems_of(sentence) for sentence in sentences]
        self.title = frozenset(stem for stem in stems_of(title) if stem not in STOP_WORDS)
        self.contribution = contribution_of(sentences)
        self.words = list(dict.fromkeys(stem for stems in self.stems for stem in stems))
        self._places: dict[str, list[tuple[int, int]]] = {stem: [] for stem in self.words}
        for number, stems in enumerate(self.stems):
            for at, stem in enumerate(stems):
                self._places[stem].append((number, at))

    def alone(self) -> Floats:
        """For the first guess, words × `ALONE`."""
        whole = len(self.sentences)
        ours = [CUES["we"].search(sentence) is not None for sentence in self.sentences]
        rows = []
        for stem in self.words:
            chance = self.vocabulary.chance(stem, self.left_out)
            prior = math.log(chance / (1 - chance))
            numbers = sorted({number for number, _ in self._places[stem]})
            rows.append(
                (
                    prior,
                    stem in self.title,
                    prior * (stem in self.title),
                    math.log(len(self._places[stem])),
                    len(numbers) / whole,
                    self.contribution in numbers,
                    numbers[0] == 0,
                    numbers[-1] == whole - 1,
                    sum(ours[number] for number in numbers) / len(numbers),
                    numbers[0] / whole,
                    self.vocabulary.rare(stem, self.left_out),
                )
            )
        return np.array(rows, np.float64).reshape(-1, len(ALONE))

    def features(self) -> Floats:
        """The features of each word, words × `WORD_FEATURES`: itself, its neighbours and its sentences."""
        alone = self.alone()
        *weights, constant = self.vocabulary.weights
        guesses = (1 / (1 + np.exp(-alone @ np.array(weights) - constant))).tolist()
        chances = dict(zip(self.words, guesses, strict=True))
        gains = [expected(stems, chances, self.vocabulary.target_words)[0] for stems in self.stems]
        best = int(np.argmax(gains))
        cues = [[CUES[name].search(sentence) is not None for name in _WORD_CUES] for sentence in self.sentences]
        printed = [_TOKEN.findall(sentence) for sentence in self.sentences]
        since = [_since_we(stems) for stems in self.stems]
        sizes = (len(self.sentences), sum(map(len, self.stems)), len(self.title))
        rows = []
        for word, stem in enumerate(self.words):
            places = self._places[stem]
            numbers = {number for number, _ in places}
            number, at = max(places, key=lambda place: gains[place[0]])
            stems = self.stems[number]
            before = stems[at - 1] if at else ""
            after = stems[at + 1] if at + 1 < len(stems) else ""
            own = [gains[one] for one in sorted(numbers)]
            rows.append(
                (
                    *alone[word],
                    *np.any([cues[one] for one in numbers], axis=0),
                    min((since[one][place] for one, place in places if since[one][place] > 0), default=np.nan),
                    since[number][at],
                    max(sum(map(str.isupper, printed[one][place])) for one, place in places),
                    len(printed[number][at]),
                    at / len(stems),
                    at,
                    len(stems) - at - 1,
                    *(self.vocabulary.chance(one, self.left_out) if one else np.nan for one in (before, after)),
                    *(chances.get(one, np.nan) for one in (before, after)),
                    before in self.title,
                    after in self.title,
                    max(own),
                    sum(own) / len(own),
                    gains[best] - max(own),
                    best in numbers,
                    *sizes,
                    len(numbers),
                    number,
                    guesses[word],
                )
            )
        return np.array(rows, np.float64).reshape(-1, len(WORD_FEATURES))


def _since_we(stems: Sequence[str]) -> list[float]:
    """How many words each is after the last "we" or "this paper" before it; NaN if there is none."""
    found: list[float] = []
    last = None
    for at, stem in enumerate(stems):
        found.append(np.nan if last is None else at - last)
        if stem in ("we", "i") or (stem in ("paper", "work", "articl", "studi") and at and stems[at - 1] == "this"):
            last = at
    return found
