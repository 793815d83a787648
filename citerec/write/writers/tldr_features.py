"""What a trained writer of TLDRs sees of an abstract: its words, and the texts that can be made of its sentences."""

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import Stemmer

from citerec.write.sentences import STOP_WORDS
from citerec.write.writers.extractive import contribution_of
from citerec.write.writers.shorten import Form, forms_of, leans

Features = dict[str, Any]
"""The features of a word or a text by name, always in the same order: numbers, NaN for what it does not have."""
Chances = Mapping[str, float]
"""For each stem of an abstract, how likely it is to be in the TLDR."""

PAIRS = 12
"""Pairs of forms that are looked at, those with the highest expected F1 (ours, as is `PAIR_WORDS`)."""
PAIRED_FORMS = 60
"""Forms that pairs are made of, the best ones: long texts would have too many. Most abstracts have fewer."""
PAIR_WORDS = 42
"""Words of a pair at most. Nine in ten TLDRs of SciTLDR's training part have at most 31."""
_PRIOR = 4.0  # papers that are assumed for each word before counting
_AGAIN = 0.3  # how much less likely a word is found in a target a second time
_TOKEN = re.compile(r"[a-z0-9]+", re.IGNORECASE | re.ASCII)
_CAPITALS = re.compile(r"\b\w*[A-Z]\w*[A-Z]\w*")
# Phrases that tell what a sentence is about.
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
_WEIGHTS = 12  # of `Abstract.first_features`, and the constant
_CUTS = ("opening", "brackets", "ending")  # what `Form` says of the parts that are left out
_WORD_CUES = ("made", "here", "refers", "new", "method")


class Expected(NamedTuple):
    """ROUGE-1 that the chances of words let expect of a text, and the share of likely pairs of words."""

    f1: float
    precision: float
    recall: float
    pairs: float


@dataclass(slots=True)
class Vocabulary:
    """How often words of abstracts are in their TLDRs; empty before it is counted.

    Attributes:
        papers: How many abstracts were counted.
        target_words: Words of a TLDR, on average.
        share: Share of the words of abstracts that are in the TLDR.
        counts: For each stem, how many abstracts have it, and how many of these have it in their TLDRs.
        weights: Of `Abstract.first_features`, in a logistic regression; the constant is last.
    """

    papers: int = 0
    target_words: float = 1.0
    share: float = 0.5
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    weights: tuple[float, ...] = (0.0,) * _WEIGHTS

    @classmethod
    def read(cls, file: Path) -> "Vocabulary":
        """A vocabulary from its file; a KeyError, TypeError or ValueError if it is broken."""
        value = orjson.loads(file.read_bytes())
        counts = {stem: (int(papers), int(shared)) for stem, (papers, shared) in value.pop("counts").items()}
        weights = tuple(map(float, value.pop("weights")))
        if len(weights) != _WEIGHTS:
            raise ValueError("it was trained on other features")
        return cls(**value, counts=counts, weights=weights)

    def write(self, file: Path) -> None:
        """Writes it as JSON, one stem per line."""
        head = {name: getattr(self, name) for name in ("papers", "target_words", "share", "weights")}
        counts = ",\n".join(f'"{stem}":[{papers},{shared}]' for stem, (papers, shared) in sorted(self.counts.items()))
        text = orjson.dumps(head).decode().removesuffix("}")
        file.write_text(f'{text},\n"counts":{{\n{counts}\n}}}}\n', encoding="utf-8")


class Abstract:
    """An abstract and its words.

    Args:
        sentences: Its sentences, at least one.
        title: The title, empty if it is not known.
        vocabulary: The counts of words.
        target: While learning, the stems of the abstract's own TLDR, which is then not counted.

    Attributes:
        words: The stems of the abstract, each once.
        stems: The stems of each sentence.
        title: The stems of the title's content words.
        cues: For each sentence, which phrases it has that tell what it is about.
        contribution: The number of the sentence that `contribution` picks.
    """

    def __init__(
        self, sentences: Sequence[str], title: str, vocabulary: Vocabulary, target: Set[str] | None = None
    ) -> None:
        self.sentences = sentences
        self.vocabulary = vocabulary
        self.target = target
        self.stems = [stems_of(sentence) for sentence in sentences]
        self.title = frozenset(_content(stems_of(title)))
        self.cues = [
            {name: re.search(cue, sentence, re.IGNORECASE) is not None for name, cue in _CUES.items()}
            for sentence in sentences
        ]
        self.contribution = contribution_of(sentences)
        self._places: dict[str, list[tuple[int, int]]] = {}
        for number, stems in enumerate(self.stems):
            for at, stem in enumerate(stems):
                self._places.setdefault(stem, []).append((number, at))
        self.words = list(self._places)

    def _counts(self, stem: str) -> tuple[int, int]:
        """How many other abstracts have a stem, and how many of these have it in their TLDRs."""
        papers, shared = self.vocabulary.counts.get(stem, (0, 0))
        own = self.target is not None and papers > 0
        return papers - own, shared - (own and stem in (self.target or ()))

    def chance(self, stem: str) -> float:
        """Share of the abstracts with a stem that have it in their TLDRs, smoothed."""
        papers, shared = self._counts(stem)
        return (shared + _PRIOR * self.vocabulary.share) / (papers + _PRIOR)

    def rare(self, stem: str) -> float:
        """The idf of a stem."""
        return math.log((self.vocabulary.papers + 1) / (self._counts(stem)[0] + 1))

    def expected(self, stems: Sequence[str], chances: Chances) -> Expected:
        """What the chances of words let expect of a text."""
        seen = Counter[str]()
        each = []
        for stem in stems:
            each.append(chances.get(stem, 0.0) * _AGAIN ** seen[stem])
            seen[stem] += 1
        total, length, target = sum(each), max(len(stems), 1), self.vocabulary.target_words
        pairs = sum(one * other for one, other in itertools.pairwise(each))
        return Expected(2 * total / (length + target), total / length, total / target, 2 * pairs / (length + target))

    def first_features(self) -> Iterator[Features]:
        """Of each word, the features that the first guess of its chance depends on: a logistic regression."""
        whole = len(self.sentences)
        for stem, places in self._places.items():
            chance = self.chance(stem)
            prior = math.log(chance / (1 - chance))
            numbers = sorted({number for number, _ in places})
            yield {
                "prior": prior,
                "title": stem in self.title,
                "prior in title": prior * (stem in self.title),
                "count": math.log(len(places)),
                "sentences": len(numbers) / whole,
                "contribution": self.contribution in numbers,
                "first": numbers[0] == 0,
                "last": numbers[-1] == whole - 1,
                "with we": sum(self.cues[number]["we"] for number in numbers) / len(numbers),
                "place": numbers[0] / whole,
                "rare": self.rare(stem),
            }

    def word_features(self) -> Iterator[Features]:
        """The features of each word: its first ones, those of its neighbours and of its sentences, and the guess."""
        first = list(self.first_features())
        *weights, constant = self.vocabulary.weights
        guesses = (1 / (1 + np.exp(-table(first) @ np.array(weights) - constant))).tolist()
        chances = dict(zip(self.words, guesses, strict=True))
        gains = [self.expected(stems, chances).f1 for stems in self.stems]
        best = int(np.argmax(gains))
        printed = [_TOKEN.findall(sentence) for sentence in self.sentences]
        since = [_since_we(stems) for stems in self.stems]
        for features, (stem, places) in zip(first, self._places.items(), strict=True):
            numbers = {number for number, _ in places}
            number, at = max(places, key=lambda place: gains[place[0]])
            stems = self.stems[number]
            around = {"before": stems[at - 1] if at else "", "after": stems[at + 1] if at + 1 < len(stems) else ""}
            own = [gains[one] for one in sorted(numbers)]
            yield {
                **features,
                **{cue: any(self.cues[one][cue] for one in numbers) for cue in _WORD_CUES},
                "after we": min((since[one][place] for one, place in places if since[one][place] > 0), default=np.nan),
                "after we in its best": since[number][at],
                "capitals": max(sum(map(str.isupper, printed[one][place])) for one, place in places),
                "letters": len(printed[number][at]),
                "share before": at / len(stems),
                "words before": at,
                "words after": len(stems) - at - 1,
                **{f"prior {side}": self.chance(other) if other else np.nan for side, other in around.items()},
                **{f"chance {side}": chances.get(other, np.nan) for side, other in around.items()},
                **{f"title {side}": other in self.title for side, other in around.items()},
                "best sentence": max(own),
                "mean sentence": sum(own) / len(own),
                "below best": gains[best] - max(own),
                "in best": best in numbers,
                "all sentences": len(self.sentences),
                "all words": sum(map(len, self.stems)),
                "title words": len(self.title),
                "in sentences": len(numbers),
                "number": number,
                "guess": chances[stem],
            }

    def sentence_features(self, f1: Sequence[float]) -> Iterator[Features]:
        """The features of each sentence, given the F1 that is expected of each."""
        last = len(self.sentences) - 1
        first_we = next((number for number, cues in enumerate(self.cues) if cues["we"]), -1)
        central = self._central()
        for number, sentence in enumerate(self.sentences):
            recall, precision, _ = self.title_overlap(self.stems[number])
            yield {
                **self.cues[number],
                "number": number,
                "from end": last - number,
                "place": number / max(last, 1),
                "from contribution": number - self.contribution,
                "is contribution": number == self.contribution,
                "first we": number == first_we,
                "question": "?" in sentence,
                "digits": sum(map(str.isdigit, sentence)),
                "capitals": len(_CAPITALS.findall(sentence)),
                "commas": sentence.count(","),
                "central": central[number],
                "title recall": recall,
                "title precision": precision,
                "expected f1": f1[number],
                "before": f1[number - 1] if number else np.nan,
                "after": f1[number + 1] if number < last else np.nan,
            }

    def title_overlap(self, stems: Sequence[str]) -> tuple[float, float, float]:
        """Recall, precision and F1 of the content words of the title; NaN without a title."""
        if not self.title:
            return np.nan, np.nan, np.nan
        own = _content(stems).keys()
        shared = len(own & self.title)
        return shared / len(self.title), shared / max(len(own), 1), 2 * shared / (len(own) + len(self.title))

    def _central(self) -> list[float]:
        """The cosine of each sentence with the rest of the abstract, content words weighted by tf · idf."""
        bags = [_content(stems) for stems in self.stems]
        stems = list(dict.fromkeys(itertools.chain.from_iterable(bags)))
        counts = np.array([[bag[stem] for stem in stems] for bag in bags], np.float64)
        idf = np.array([self.rare(stem) for stem in stems])
        own, rest = counts * idf, (counts.sum(axis=0) - counts) * idf
        norms = np.sqrt((own * own).sum(axis=1) * (rest * rest).sum(axis=1))
        return list((own * rest).sum(axis=1) / np.where(norms > 0, norms, 1))


class Texts:
    """The texts that can be made of an abstract: forms of its sentences, and pairs of forms of two sentences.

    A second sentence that `leans` on the one before it, stands only after that one.

    Args:
        abstract: The abstract.
        chances: The chances of its words.

    Attributes:
        texts: The sentences of each text: first each form alone, then the pairs. Of a pair, a sentence without words
            is left out (data sets have sentences such as ".").
        wholes: For each sentence of the abstract, the place in `texts` at which it is whole.
    """

    def __init__(self, abstract: Abstract, chances: Chances) -> None:
        self._abstract, self._chances = abstract, chances
        # For each form its sentence's number, and the form.
        self._forms: list[tuple[int, Form]] = [
            (number, form) for number, sentence in enumerate(abstract.sentences) for form in forms_of(sentence)
        ]
        self._stems = [stems_of(form.text) for _, form in self._forms]
        # For each text the places of its forms, and what is expected of it.
        self._expected: dict[tuple[int, ...], Expected] = {
            (place,): abstract.expected(stems, chances) for place, stems in enumerate(self._stems)
        }
        best = sorted(self._expected, key=lambda places: -self._expected[places].f1)[:PAIRED_FORMS]
        pairs = {}
        for (first,), (second,) in itertools.combinations(sorted(best), 2):
            (one, _), (other, form) = self._forms[first], self._forms[second]
            stems = self._stems[first] + self._stems[second]
            if one < other and len(stems) <= PAIR_WORDS and (other == one + 1 or not leans(form.text)):
                pairs[first, second] = abstract.expected(stems, chances)
        self._expected |= dict(sorted(pairs.items(), key=lambda pair: -pair[1].f1)[:PAIRS])
        self.texts = [
            [self._forms[place][1].text for place in places if self._stems[place]] or [self._forms[places[0]][1].text]
            for places in self._expected
        ]
        self.wholes = [place for place, (_, form) in enumerate(self._forms) if form == Form(form.text)]

    def features(self) -> Iterator[Features]:
        """The features of each text: of its first sentence, its forms, the abstract, and its second sentence."""
        abstract = self._abstract
        f1 = np.array([expected.f1 for expected in self._expected.values()])
        f1_of_wholes = f1[self.wholes].tolist()
        sentences = list(abstract.sentence_features(f1_of_wholes))
        ranks = np.argsort(np.argsort(-f1, kind="stable"), kind="stable")
        endings = Counter((number, form.opening, form.brackets) for number, form in self._forms)
        for row, (places, expected) in enumerate(self._expected.items()):
            number, form = self._forms[places[0]]
            own = [stem for place in places for stem in self._stems[place]]
            whole = [stem for place in places for stem in abstract.stems[self._forms[place][0]]]
            second = self._second_features(places[0], places[-1], sentences)
            yield {
                **{f"sentence {name}": value for name, value in sentences[number].items()},
                **{f"form {cut}": getattr(form, cut) for cut in _CUTS},
                "form endings": endings[number, form.opening, form.brackets],
                "form words": len(own),
                "form share": len(own) / max(len(whole), 1),
                "form begins we": own[:1] == ["we"],
                **{f"form expected {name}": value for name, value in expected._asdict().items()},
                "form left out": self._chance(list((Counter(whole) - Counter(own)).elements())),
                "form rank": ranks[row],
                "form below best": f1.max() - f1[row],
                "form below best whole": max(f1_of_wholes) - f1[row],
                "form title f1": abstract.title_overlap(own)[2],
                "form rare": _mean([abstract.rare(stem) for stem in own]),
                "form first words": self._chance(own[:4]),
                "form last words": self._chance(own[-4:]),
                "abstract sentences": len(abstract.sentences),
                "abstract words": sum(map(len, abstract.stems)),
                "abstract title words": len(abstract.title) or np.nan,
                "abstract best": f1.max(),
                "abstract mean": f1.mean(),
                **{f"second {name}": value if len(places) > 1 else np.nan for name, value in second.items()},
            }

    def _second_features(self, first: int, second: int, sentences: Sequence[Features]) -> Features:
        """The features of the second form of a text; those of its sentence are given."""
        number, form = self._forms[second]
        own, before = self._stems[second], set(self._stems[first])
        return {
            **sentences[number],
            **{cut: getattr(form, cut) for cut in _CUTS},
            "words": len(own),
            "form f1": self._expected[second,].f1,
            "share": len(own) / max(len(self._abstract.stems[number]), 1),
            "shared": sum(stem in before for stem in own) / max(len(own), 1),
            "distance": number - self._forms[first][0],
            "first f1": self._expected[first,].f1,
        }

    def _chance(self, stems: Sequence[str]) -> float:
        """The mean chance of some words."""
        return _mean([self._chances.get(stem, 0.0) for stem in stems])


def feature_names() -> tuple[list[str], list[str]]:
    """The names of the features of words, and of those of texts."""
    sample = Abstract(("We cut trees.",), "", Vocabulary())
    return list(next(sample.word_features())), list(next(Texts(sample, {}).features()))


def table(rows: Iterable[Features], kind: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Rows of features as an array, rows × features."""
    return np.array([list(row.values()) for row in rows], kind)


def stems_of(text: str) -> list[str]:
    """The stems of a text, by Porter's second stemmer. Like ROUGE, it knows only letters and digits of ASCII."""
    return [_stem(word) if len(word) > 3 else word for word in map(str.lower, _TOKEN.findall(text))]


@functools.lru_cache(100_000)
def _stem(word: str) -> str:
    return str(Stemmer.Stemmer("english", 0).stemWord(word))


def _content(stems: Sequence[str]) -> Counter[str]:
    """How often each stem occurs, without stop words."""
    return Counter(stem for stem in stems if stem not in STOP_WORDS)


def _since_we(stems: Sequence[str]) -> list[float]:
    """How many words each is after the last "we" or "this paper" before it; NaN if there is none."""
    authors = [
        at
        for at, stem in enumerate(stems)
        if stem in ("we", "i") or (stem in ("paper", "work", "articl", "studi") and at and stems[at - 1] == "this")
    ]
    return [at - max((one for one in authors if one < at), default=np.nan) for at in range(len(stems))]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else np.nan
