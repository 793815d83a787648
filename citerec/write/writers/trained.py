"""A writer that learnt which sentences, or parts of them, say best what a paper is about.

Trees say of each word of an abstract how likely it is in the TLDR. Other trees compare the texts that can be made of
the sentences, by what these chances let expect of each.
"""

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import Stemmer
from pydantic import TypeAdapter, ValidationError

from citerec.contexts.learnt import LEARNT, learnt_by_part
from citerec.errors import InputError, ModelError, first_fault
from citerec.files import writing
from citerec.files.hashing import digest_of, file_digest
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest
from citerec.rerank.trees import Trees
from citerec.write.sentences import STOP_WORDS
from citerec.write.tasks import Sentence, TextTask
from citerec.write.writers.base import Kind, WriterPart
from citerec.write.writers.extractive import ExtractiveWriter, attributed, contribution_of, source_sentences
from citerec.write.writers.shorten import LEAST_WORDS, forms_of, leans

WORD_TREES, FORM_TREES, VOCABULARY, DATASHEET = "words.txt", "forms.txt", "vocabulary.json", "datasheet.md"
SHIPPED = Path(__file__).parent / "tldr"
"""The model that comes with citerec."""
SENTENCES_DIRECTORY = writing.Kind(
    "trained writer of TLDRs",
    "citerec-sentences",
    MANIFEST,
    frozenset({WORD_TREES, FORM_TREES, VOCABULARY, DATASHEET, MANIFEST, LEARNT}),
)
_COMMAND = "citerec train writer --kind tldr …"
_REMEDY = f"Train it again: {_COMMAND}"

Features = dict[str, float]
"""The features of a word or a text by name, always in the same order; NaN for what it does not have."""
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
_AUTHORS = {"we", "i", "paper", "work", "articl", "studi"}


@dataclass(slots=True)
class Vocabulary:
    """How often words of abstracts are in their TLDRs; empty before it is counted.

    Attributes:
        target_words: Words of a TLDR, on average.
        share: Share of the words of abstracts that are in the TLDR.
        counts: For each stem, how many abstracts have it, and how many of these have it in their TLDRs.
    """

    target_words: float = 1.0
    share: float = 0.5
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)


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
        self.sentences, self._vocabulary, self._target = sentences, vocabulary, target
        self.stems = list(map(stems_of, sentences))
        self.title = frozenset(stems_of(title)) - STOP_WORDS
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
        papers, shared = self._vocabulary.counts.get(stem, (0, 0))
        own = self._target is not None and papers > 0
        return papers - own, shared - (own and stem in (self._target or ()))

    def _prior(self, stem: str) -> float:
        """Share of the other abstracts with a stem that have it in their TLDRs, smoothed."""
        papers, shared = self._counts(stem)
        return (shared + _PRIOR * self._vocabulary.share) / (papers + _PRIOR)

    def expected(self, stems: Sequence[str], chances: Chances) -> Features:
        """ROUGE-1 that the chances of words let expect of a text, and the share of likely pairs of words."""
        seen = Counter[str]()
        each = []
        for stem in stems:
            each.append(chances.get(stem, 0.0) * _AGAIN ** seen[stem])
            seen[stem] += 1
        total, length, target = sum(each), max(len(stems), 1), self._vocabulary.target_words
        pairs = sum(one * other for one, other in itertools.pairwise(each))
        of_f1 = {"f1": 2 * total / (length + target), "precision": total / length, "recall": total / target}
        return of_f1 | {"pairs": 2 * pairs / (length + target)}

    def word_features(self) -> Iterator[Features]:
        """The features of each word: how often it is in TLDRs, and where and how often it stands in the abstract."""
        priors = {stem: self._prior(stem) for stem in self.words}
        gains = [self.expected(stems, priors)["f1"] for stems in self.stems]
        whole = len(self.sentences)
        for stem, places in self._places.items():
            numbers = sorted({number for number, _ in places})
            number, at = max(places, key=lambda place: gains[place[0]])
            stems, best = self.stems[number], gains[number]
            since = [at - place for place, one in enumerate(stems[:at]) if one in _AUTHORS]
            row: Features = {"prior": priors[stem], "papers": self._counts(stem)[0], "title": stem in self.title}
            row |= {"title words": len(self.title), "letters": len(stem), "count": len(places)}
            row |= {"in sentences": len(numbers), "share": len(numbers) / whole, "sentences": whole}
            row |= {"words": sum(map(len, self.stems)), "first": numbers[0], "place": numbers[0] / whole}
            row |= {"contribution": self.contribution in numbers, "number": number, "before": at}
            row |= {"after": len(stems) - at - 1, "after we": since[-1] if since else np.nan}
            row |= {"best": best, "below best": max(gains) - best}
            row |= {"prior before": priors[stems[at - 1]] if at else np.nan}
            row |= {"prior after": priors[stems[at + 1]] if at + 1 < len(stems) else np.nan}
            yield row | {cue: sum(self.cues[one][cue] for one in numbers) / len(numbers) for cue in _CUES}


class Texts:
    """The texts that can be made of an abstract: forms of its sentences, and pairs of forms of two sentences.

    A second sentence that `leans` on the one before it, stands only after that one.

    Args:
        abstract: The abstract.
        chances: The chances of its words.

    Attributes:
        texts: The sentences of each text: first each form alone, then the pairs, without very short sentences (data
            sets have some such as ".").
        wholes: For each sentence of the abstract, the place in `texts` at which it is whole.
    """

    def __init__(self, abstract: Abstract, chances: Chances) -> None:
        self._abstract, self._chances = abstract, chances
        # For each form its sentence's number, the form, and its stems.
        self._forms = [
            (number, form, stems_of(form))
            for number, sentence in enumerate(abstract.sentences)
            for form in forms_of(sentence)
        ]
        numbers = [number for number, *_ in self._forms]
        self.wholes = [numbers.index(number) for number in range(len(abstract.sentences))]
        # For each text the places of its forms, and what is expected of it.
        self._expected: dict[tuple[int, ...], Features] = {
            (place,): abstract.expected(stems, chances) for place, (*_, stems) in enumerate(self._forms)
        }
        best = sorted(self._expected, key=lambda places: -self._expected[places]["f1"])[:PAIRED_FORMS]
        pairs = {}
        for (first,), (second,) in itertools.combinations(sorted(best), 2):
            (one, _, stems), (other, form, others) = self._forms[first], self._forms[second]
            fits = min(len(stems), len(others)) >= LEAST_WORDS and len(stems) + len(others) <= PAIR_WORDS
            if fits and one < other and (other == one + 1 or not leans(form)):
                pairs[first, second] = abstract.expected(stems + others, chances)
        self._expected |= dict(sorted(pairs.items(), key=lambda pair: -pair[1]["f1"])[:PAIRS])
        self.texts = [[self._forms[place][1] for place in places] for places in self._expected]

    def features(self) -> Iterator[Features]:
        """The features of each text: what is expected of it and of the abstract, and those of its sentences."""
        f1 = np.array([expected["f1"] for expected in self._expected.values()])
        ranks = np.argsort(np.argsort(-f1, kind="stable"), kind="stable")
        best_whole = f1[self.wholes].max()
        for row, (places, expected) in enumerate(self._expected.items()):
            own = [stem for place in places for stem in self._forms[place][2]]
            chances = [self._chances.get(stem, 0.0) for stem in own] or [0.0]
            features = expected | {"rank": ranks[row], "best": f1.max(), "mean": f1.mean(), "words": len(own)}
            features |= {"below best": f1.max() - f1[row], "below best whole": best_whole - f1[row]}
            features |= {"all words": sum(map(len, self._abstract.stems)), "sentences": len(self.wholes)}
            features |= {"first words": np.mean(chances[:4]), "last words": np.mean(chances[-4:])}
            features |= {f"first {name}": value for name, value in self._of_form(places[0], f1).items()}
            second = self._of_form(places[-1], f1)
            if len(places) == 1:
                second = dict.fromkeys(second, np.nan)
            yield features | {f"second {name}": value for name, value in second.items()}

    def _of_form(self, place: int, f1: npt.NDArray[np.float64]) -> Features:
        """The features of a form of a sentence."""
        number, form, stems = self._forms[place]
        abstract, around = self._abstract, [np.nan, *f1[self.wholes], np.nan]
        shared = len(abstract.title.intersection(stems))
        row: Features = abstract.cues[number] | {"number": number, "from end": len(self.wholes) - 1 - number}
        row |= {"from contribution": number - abstract.contribution, "f1": f1[place], "question": "?" in form}
        row |= {"title": shared / len(abstract.title) if abstract.title else np.nan}
        row |= {"share": len(stems) / max(len(abstract.stems[number]), 1), "whole f1": around[number + 1]}
        return row | {"before": around[number], "after": around[number + 2]}


def feature_names(vocabulary: Vocabulary) -> list[list[str]]:
    """The names of the features of words, and of those of texts; a ValueError if the vocabulary is for others."""
    sample = Abstract(("We cut trees.",), "", vocabulary)
    return [list(next(rows)) for rows in (sample.word_features(), Texts(sample, {}).features())]


def table(rows: Iterable[Features], kind: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Rows of features as an array, rows × features."""
    return np.array([list(row.values()) for row in rows], kind)


def stems_of(text: str) -> list[str]:
    """The stems of a text, by Porter's second stemmer. Like ROUGE, it knows only letters and digits of ASCII."""
    return [_stem(word) if len(word) > 3 else word for word in map(str.lower, _TOKEN.findall(text))]


@functools.lru_cache(100_000)
def _stem(word: str) -> str:
    return str(Stemmer.Stemmer("english", 0).stemWord(word))


class SentencesManifest(ModelManifest):
    """`manifest.json` of a trained writer: what it learnt from and how, and its scores by cross-validation."""

    kind: Literal["citerec-sentences"] = "citerec-sentences"
    gain: dict[str, dict[str, float]]
    """Share of each feature in the gain of the trees, of words and of forms."""
    scores: dict[str, float]
    """ROUGE-1, stemmed, of tasks that the trees did not learn from (cross-validation); × 100."""


class SentenceModel:
    """Predicts how much each text that can be made of an abstract is like its TLDR: ROUGE-1 F1, up to a constant.

    Args:
        folder: The folder of the model.

    Raises:
        ModelError: There is none, it is damaged, or it was trained on other features.
    """

    def __init__(self, folder: Path) -> None:
        if read_model_manifest(folder, SentencesManifest, "a trained writer of TLDRs", _REMEDY) is None:
            raise ModelError(f"there is no trained writer of TLDRs in {folder}", _REMEDY)
        try:
            self._words, self._texts = (Trees.read(folder / name, _COMMAND) for name in (WORD_TREES, FORM_TREES))
            self._vocabulary = TypeAdapter(Vocabulary).validate_json((folder / VOCABULARY).read_bytes())
            if [self._words.features, self._texts.features] != list(map(len, feature_names(self._vocabulary))):
                raise ValueError("it was trained on other features")
        except (OSError, ValueError, TypeError, KeyError) as error:
            fault = first_fault(error) if isinstance(error, ValidationError) else error
            raise ModelError(f"the writer in {folder} cannot be read: {fault}", _REMEDY) from error

    def best(self, sentences: Sequence[str], title: str, most: int = 2) -> list[str]:
        """The best text of `most` sentences at most; the first of equals."""
        abstract = Abstract(sentences, title, self._vocabulary)
        # The trees of words give the logarithm of the odds.
        odds = self._words.predict(table(abstract.word_features())).tolist() if abstract.words else []
        chances = {stem: 1 / (1 + math.exp(-one)) for stem, one in zip(abstract.words, odds, strict=True)}
        texts = Texts(abstract, chances)
        scores = self._texts.predict(table(texts.features(), np.float32))
        scored = [one for one in zip(scores.tolist(), texts.texts, strict=True) if len(one[1]) <= most]
        return max(scored, key=lambda one: one[0])[1]

    def pick(self, task: TextTask, most: int = 2) -> list[Sentence]:
        """The best text for each source, of `most` sentences at most."""
        return [
            Sentence(sentence, (number,))
            for number, source in enumerate(task.sources)
            if (sentences := tuple(filter(str.strip, source_sentences(source))))
            for sentence in self.best(sentences, source.title, most)
        ]


def open_trained(_name: str, kind: Kind, *, options: Mapping[str, Any]) -> ExtractiveWriter:
    """A writer of sentences that a `SentenceModel` chose from each source and shortened.

    A TLDR has one or two, as they are. Other kinds of text have one, attributed to its authors as `attributed` does.
    The model is the one of citerec, or that of the folder `model`, which `citerec train writer --kind tldr` made.

    Raises:
        InputError: There is another option.
        ModelError: There is no such model, or it is damaged.
    """
    if unknown := set(options) - {"model"}:
        raise InputError(f"there is no option {min(unknown)!r} of trained", "Give model=FOLDER.")
    folder = Path(options.get("model") or SHIPPED).expanduser()
    model = SentenceModel(folder)
    digest = digest_of([file_digest(folder / name) for name in (WORD_TREES, FORM_TREES, VOCABULARY)])
    name = "shipped" if folder == SHIPPED else folder.name
    phrase, most = (None, 2) if kind == "tldr" else (attributed, 1)
    settings = {"kind": kind, "model": name, "digest": digest}
    writer = ExtractiveWriter("trained", functools.partial(model.pick, most=most), phrase=phrase, settings=settings)
    writer.learnt = learnt_by_part(folder)
    return writer


TRAINED = WriterPart("trained", open_trained)
