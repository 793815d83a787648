"""A writer that learnt which sentences, or parts of them, say best what a paper is about.

Trees say of each word of an abstract how likely it is in the TLDR. Other trees compare the texts that can be made of
the sentences, by what these chances let expect of each.
"""

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import orjson
import Stemmer

from citerec.contexts.provenance import PROVENANCE, provenance_of_part
from citerec.errors import ModelError
from citerec.files import writing
from citerec.files.resume import digest_of, file_digest
from citerec.files.text import STOP_WORDS
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest
from citerec.rerank.ltr import Trees
from citerec.write.tasks import Sentence, TextTask
from citerec.write.writers.base import Kind, WriterPart, checked
from citerec.write.writers.extractive import (
    ExtractiveWriter,
    any_of,
    attributed,
    contribution_of,
    impersonal,
    source_sentences,
    stands_alone,
)

LEAST_WORDS = 6
"""Words that a shorter form has at least, and that an ending which is left out leaves in the sentence."""

_OPENING = re.compile(rf"(?i)(?:{any_of('connectives')})(?:\s*,\s*|\s+(?=we\b))")
# What comes before "we": a phrase, but neither a condition ("Ideally, we would …") nor what is reported ("We show that,
# …").
_BEFORE_WE = re.compile(
    r"(?i)(?!(?:if|when|whenever|unless|assuming|given|under|provided|only)\b)(?:(?!\bthat\b)[^;:])*?,\s+"
    r"(?=(?:we|I)\b(?! (?:would|could|should|might)\b))"
)
_AFTER_COMMA, _AFTER_SPACE = (any_of(name).replace(" ", r"\s+") for name in ("after_comma", "after_space"))
_ENDING = re.compile(
    rf"""
    (?:\s*,\s*|\s+[-–—]+\s+|\s*[—–]\s*)(?=(?:{_AFTER_COMMA}|\w+ing)\b)
    |\s*;\s*
    |\s*:\s+
    |\s*,?\s+(?=and\s+(?:we\s+|this\s+paper\s+)?(?:\w+ly\s+)?(?:{any_of("reporting_verbs")})s?\b)
    |\s+(?=(?:{_AFTER_SPACE}|by\s+\w+ing)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BRACKETS = re.compile(r"\s*\((?:[^()]|\([^()]*\))*\)")
_STOP = re.compile(r"[\s.?!,;:]*$")
_VERB = re.compile(rf"(?i)\b(?:we|I)\s+\w+|\b(?:{any_of('auxiliaries')}|(?:{any_of('main_verbs')})s?)\b")
_SUBORDINATE = re.compile(rf"(?i)(?:{any_of('subordinate')}|\w+ing)\b")
_MAIN_CLAUSE = re.compile(r",\s+(?:\S+\s+){3}\S|\bwe\s+\w+")
# The second: a clause whose verb may be in the part that is left out.
_LEFT_HANGING = re.compile(
    rf"(?i)\b(?:{any_of('left_hanging')})$|\b(?:how|why|whether|what|second,? we)(?:\s+\S+){{1,5}}$"
)
_LEANS = re.compile(
    r"(?i)(?:this(?! (?:paper|work|article|study)\b)|these|those|it|they|such|its|their|both|but|yet|and|so|or)\b"
)


@dataclass(eq=False, slots=True)
class Form:
    """A sentence, or a shorter form of it.

    Attributes:
        number: The number of the sentence in its abstract.
        cuts: What is left out, as features. `opening`, before it: 0 nothing, 1 a connective, 2 a phrase before "we".
            `brackets`: whether text in brackets is. `ending`: how many of the places where its end may be left out come
            before its own end, plus 1; 0 if it is whole.
        stems: The stems of its words.
    """

    text: str
    number: int
    cuts: "Features"
    stems: list[str]


def forms_of(sentence: str, number: int = 0) -> list[Form]:
    """A sentence as it is, then its shorter forms; each text once."""
    rest = sentence.strip()
    openings = [(0, rest)]
    for opening, pattern in ((1, _OPENING), (2, _BEFORE_WE)):
        if (match := pattern.match(rest)) and _is_long(rest[match.end() :]):
            rest = rest[match.end() :]
            openings.append((opening, rest[:1].upper() + rest[1:]))
    forms: dict[str, Form] = {}
    for opening, whole in openings:
        for brackets, body in enumerate((whole, _BRACKETS.sub("", whole))):
            if not brackets or _is_long(body):
                for ending, text in enumerate([body, *_heads(body)]):
                    cuts = {"opening": opening, "brackets": brackets, "ending": ending}
                    forms.setdefault(text, Form(text, number, cuts, stems_of(text)))
    return list(forms.values())


def leans(sentence: str) -> bool:
    """Whether a sentence begins with what refers to the one before it: "this", "but", "moreover"."""
    return bool(_LEANS.match(sentence) or _OPENING.match(sentence))


def _heads(sentence: str) -> Iterator[str]:
    """What is left of a sentence without one of its endings, if that is a sentence by itself."""
    for place in _ENDING.finditer(sentence):
        head, rest = sentence[: place.start()], sentence[place.start() :]
        if _is_long(head) and len(rest.split()) > 1 and _is_sentence(head, rest):
            yield _STOP.sub("", head) + "."


def _is_long(text: str) -> bool:
    return len(text.split()) >= LEAST_WORDS


def _is_sentence(head: str, rest: str) -> bool:
    """Whether the beginning of a sentence is one by itself, as far as rules can tell."""
    is_closed = all(head.count(first) == head.count(last) for first, last in ("()", "[]", "{}", "“”"))
    is_even = head.count('"') % 2 == 0 == head.count("$") % 2
    lacks_but = re.search(r"\bnot only\b", head, re.IGNORECASE) and "but" in rest
    lacks_clause = _SUBORDINATE.match(head) and not _MAIN_CLAUSE.search(head)
    lacks_end = lacks_but or lacks_clause or _LEFT_HANGING.search(head)
    return is_closed and is_even and not lacks_end and bool(_VERB.search(head))


WORD_TREES, FORM_TREES, VOCABULARY = "words.txt", "forms.txt", "vocabulary.json"
SHIPPED = Path(__file__).parent / "tldr"
"""The model that comes with citerec."""
_FILES = frozenset({WORD_TREES, FORM_TREES, VOCABULARY, MANIFEST, PROVENANCE})
SENTENCES_DIRECTORY = writing.Kind("trained writer of TLDRs", "citerec-sentences", MANIFEST, _FILES)
_COMMAND = "citerec train writer --kind tldr …"

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
_WORD_CUES = ("made", "here", "refers", "new", "method")


@dataclass(slots=True)
class Vocabulary:
    """How often words of abstracts are in their TLDRs; empty before it is counted.

    Attributes:
        papers: How many abstracts were counted.
        target_words: Words of a TLDR, on average.
        share: Share of the words of abstracts that are in the TLDR.
        weights: Of `Abstract.first_features`, in a logistic regression; the constant is last.
        counts: For each stem, how many abstracts have it, and how many of these have it in their TLDRs.
    """

    papers: int = 0
    target_words: float = 1.0
    share: float = 0.5
    weights: Sequence[float] = (0.0,) * 12
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class Abstract:
    """An abstract and its words.

    Args:
        sentences: Its sentences, at least one.
        title: The title, empty if it is not known.
        vocabulary: The counts of words.

    Attributes:
        words: The stems of the abstract, each once.
        counts: For each stem, how many abstracts have it, and how many of these have it in their TLDRs; while learning
            without this abstract.
        stems: The stems of each sentence.
        title: The stems of the title's content words.
        cues: For each sentence, which phrases it has that tell what it is about.
        contribution: The number of the sentence that `contribution` picks.
    """

    def __init__(self, sentences: Sequence[str], title: str, vocabulary: Vocabulary) -> None:
        self.sentences, self.vocabulary = sentences, vocabulary
        self.stems = list(map(stems_of, sentences))
        self.title = frozenset(_content(stems_of(title)))
        self.cues = [
            {name: bool(re.search(cue, sentence, re.IGNORECASE)) for name, cue in _CUES.items()}
            for sentence in sentences
        ]
        self.contribution = contribution_of(sentences)
        self._places: dict[str, list[tuple[int, int]]] = {}
        for number, stems in enumerate(self.stems):
            for at, stem in enumerate(stems):
                self._places.setdefault(stem, []).append((number, at))
        self.words = list(self._places)
        self.counts = vocabulary.counts

    def chance(self, stem: str) -> float:
        """Share of the abstracts with a stem that have it in their TLDRs, smoothed; NaN for no stem."""
        papers, shared = self.counts.get(stem, (0, 0 if stem else np.nan))
        return (shared + _PRIOR * self.vocabulary.share) / (papers + _PRIOR)

    def rare(self, stem: str) -> float:
        """The idf of a stem."""
        return math.log((self.vocabulary.papers + 1) / (self.counts.get(stem, (0, 0))[0] + 1))

    def expected(self, stems: Sequence[str], chances: Chances) -> Features:
        """ROUGE-1 that the chances of words let expect of a text, and the share of likely pairs of words."""
        seen = Counter[str]()
        each = []
        for stem in stems:
            each.append(chances.get(stem, 0.0) * _AGAIN ** seen[stem])
            seen[stem] += 1
        total, length, target = sum(each), max(len(stems), 1), self.vocabulary.target_words
        pairs = sum(one * other for one, other in itertools.pairwise(each))
        of_f1 = {"f1": 2 * total / (length + target), "precision": total / length, "recall": total / target}
        return of_f1 | {"pairs": 2 * pairs / (length + target)}

    def first_features(self) -> Iterator[Features]:
        """Of each word, the features that the first guess of its chance depends on: a logistic regression."""
        whole = len(self.sentences)
        for stem, places in self._places.items():
            chance, is_title = self.chance(stem), stem in self.title
            prior = math.log(chance / (1 - chance))
            numbers = sorted({number for number, _ in places})
            with_we = sum(self.cues[number]["we"] for number in numbers) / len(numbers)
            row: Features = {"prior": prior, "title": is_title, "prior in title": prior * is_title}
            row |= {"count": math.log(len(places)), "sentences": len(numbers) / whole}
            row |= {"contribution": self.contribution in numbers}
            row |= {"first": numbers[0] == 0, "last": numbers[-1] == whole - 1, "with we": with_we}
            yield row | {"place": numbers[0] / whole, "rare": self.rare(stem)}

    def word_features(self) -> Iterator[Features]:
        """The features of each word: its first ones, those of its neighbours and of its sentences, and the guess."""
        first = list(self.first_features())
        *weights, constant = self.vocabulary.weights
        guesses = (1 / (1 + np.exp(-table(first) @ np.array(weights) - constant))).tolist()
        chances = dict(zip(self.words, guesses, strict=True))
        gains = [self.expected(stems, chances)["f1"] for stems in self.stems]
        printed = [_TOKEN.findall(sentence) for sentence in self.sentences]
        since = [_since_we(stems) for stems in self.stems]
        sizes = {"all sentences": len(self.sentences), "all words": sum(map(len, self.stems))}
        sizes |= {"title words": len(self.title)}
        for features, (stem, places) in zip(first, self._places.items(), strict=True):
            numbers = {number for number, _ in places}
            number, at = max(places, key=lambda place: gains[place[0]])
            stems = self.stems[number]
            after = len(stems) - at - 1
            around = {"before": stems[at - 1] if at else "", "after": stems[at + 1] if after else ""}
            own = [gains[one] for one in sorted(numbers)]
            after_we = min((since[one][place] for one, place in places if since[one][place] > 0), default=np.nan)
            capitals = max(sum(map(str.isupper, printed[one][place])) for one, place in places)
            row = features | {cue: any(self.cues[one][cue] for one in numbers) for cue in _WORD_CUES}
            row |= {"after we": after_we, "after we in its best": since[number][at], "capitals": capitals}
            row |= {"letters": len(printed[number][at]), "share before": at / len(stems)}
            row |= {"words before": at, "words after": after}
            row |= {f"prior {side}": self.chance(other) for side, other in around.items()}
            row |= {f"chance {side}": chances.get(other, np.nan) for side, other in around.items()}
            row |= {f"title {side}": other in self.title for side, other in around.items()}
            row |= {"best sentence": max(own), "mean sentence": sum(own) / len(own)}
            row |= {"below best": max(gains) - max(own), "in best": int(np.argmax(gains)) in numbers}
            row |= sizes | {"in sentences": len(numbers), "number": number, "guess": chances[stem]}
            yield row

    def sentence_features(self, f1: Sequence[float]) -> Iterator[Features]:
        """The features of each sentence, given the F1 that is expected of each."""
        last = len(self.sentences) - 1
        first_we = next((number for number, cues in enumerate(self.cues) if cues["we"]), -1)
        around = [np.nan, *f1, np.nan]
        central = self._central()
        for number, sentence in enumerate(self.sentences):
            recall, precision, _ = self.title_overlap(self.stems[number])
            from_contribution = number - self.contribution
            row: Features = self.cues[number] | {"number": number, "from end": last - number}
            row |= {"place": number / max(last, 1), "from contribution": from_contribution}
            row |= {"is contribution": from_contribution == 0, "first we": number == first_we}
            row |= {"question": "?" in sentence, "digits": sum(map(str.isdigit, sentence))}
            row |= {"capitals": len(_CAPITALS.findall(sentence)), "commas": sentence.count(",")}
            row |= {"central": central[number], "title recall": recall, "title precision": precision}
            yield row | {"expected f1": f1[number], "before": around[number], "after": around[number + 2]}

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
        forms = [form for number, sentence in enumerate(abstract.sentences) for form in forms_of(sentence, number)]
        # For each text its forms, and what is expected of it.
        self._expected: dict[tuple[Form, ...], Features] = {
            (form,): abstract.expected(form.stems, chances) for form in forms
        }
        best = set(sorted(self._expected, key=lambda text: -self._expected[text]["f1"])[:PAIRED_FORMS])
        pairs = {}
        for one, other in itertools.combinations((form for form in forms if (form,) in best), 2):
            follows = other.number == one.number + 1 or (other.number > one.number and not leans(other.text))
            if follows and len(one.stems + other.stems) <= PAIR_WORDS:
                pairs[one, other] = abstract.expected(one.stems + other.stems, chances)
        self._expected |= dict(sorted(pairs.items(), key=lambda pair: -pair[1]["f1"])[:PAIRS])
        self.texts = [[form.text for form in text if form.stems] or [text[0].text] for text in self._expected]
        self.wholes = [place for place, form in enumerate(forms) if not any(form.cuts.values())]

    def features(self) -> Iterator[Features]:
        """The features of each text: of its first sentence, its forms, the abstract, and its second sentence."""
        abstract = self._abstract
        f1 = np.array([expected["f1"] for expected in self._expected.values()])
        of_wholes = f1[self.wholes].tolist()
        sentences = list(abstract.sentence_features(of_wholes))
        ranks = np.argsort(np.argsort(-f1, kind="stable"), kind="stable")
        endings = Counter(_beginning(text[0]) for text in self._expected if len(text) < 2)
        of_abstract: Features = {"sentences": len(abstract.sentences), "words": sum(map(len, abstract.stems))}
        of_abstract |= {"title words": len(abstract.title) or np.nan, "best": f1.max(), "mean": f1.mean()}
        for row, (text, expected) in enumerate(self._expected.items()):
            first, second = text[0], text[-1]
            own = [stem for form in text for stem in form.stems]
            whole = [stem for form in text for stem in abstract.stems[form.number]]
            of_form = first.cuts | {"endings": endings[_beginning(first)]}
            of_form |= {"words": len(own), "share": len(own) / max(len(whole), 1), "begins we": own[:1] == ["we"]}
            of_form |= {f"expected {name}": value for name, value in expected.items()}
            of_form |= {"left out": self._chance((Counter(whole) - Counter(own)).elements()), "rank": ranks[row]}
            of_form |= {"below best": f1.max() - f1[row], "below best whole": max(of_wholes) - f1[row]}
            of_form |= {"title f1": abstract.title_overlap(own)[2], "rare": _mean(map(abstract.rare, own))}
            of_form |= {"first words": self._chance(own[:4]), "last words": self._chance(own[-4:])}
            size, before = len(second.stems), set(first.stems)
            of_second = sentences[second.number] | second.cuts
            of_second |= {"words": size, "form f1": self._expected[second,]["f1"]}
            of_second |= {"share": size / max(len(abstract.stems[second.number]), 1)}
            of_second |= {"shared": sum(stem in before for stem in second.stems) / max(size, 1)}
            of_second |= {"distance": second.number - first.number, "first f1": self._expected[first,]["f1"]}
            if len(text) == 1:
                of_second = dict.fromkeys(of_second, np.nan)
            parts = {"sentence": sentences[first.number], "form": of_form, "abstract": of_abstract, "second": of_second}
            yield {f"{part} {name}": value for part, values in parts.items() for name, value in values.items()}

    def _chance(self, stems: Iterable[str]) -> float:
        """The mean chance of some words."""
        return _mean(self._chances.get(stem, 0.0) for stem in stems)


def _beginning(form: Form) -> tuple[int, int, int]:
    return form.number, form.cuts["opening"], form.cuts["brackets"]


def feature_names(vocabulary: Vocabulary) -> list[list[str]]:
    """The names of the features of words, and of those of texts."""
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


def _content(stems: Sequence[str]) -> Counter[str]:
    """How often each stem occurs, without stop words."""
    return Counter(stem for stem in stems if stem not in STOP_WORDS)


def _since_we(stems: Sequence[str]) -> list[float]:
    """How many words each is after the last "we" or "this paper" before it; NaN if there is none."""
    last, since = np.nan, []
    for at, (before, stem) in enumerate(itertools.pairwise(["", *stems])):
        since.append(at - last)
        if stem in ("we", "i") or (stem in ("paper", "work", "articl", "studi") and before == "this"):
            last = at
    return since


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else np.nan


class SentencesManifest(ModelManifest):
    """`manifest.json` of a trained writer: what it learnt from and how, and its scores by cross-validation."""

    kind: Literal["citerec-sentences"] = "citerec-sentences"
    gain: Mapping[str, Mapping[str, float]] = {}
    """Share of each feature in the gain of the trees of the shipped one, of words and of forms."""
    training: dict[str, Any]
    scores: dict[str, float]
    """ROUGE-1, stemmed, of tasks that the trees did not learn from (cross-validation); × 100."""


@dataclass(frozen=True)
class TrainedOptions:
    """Options of `trained`.

    Attributes:
        model: The folder of a model that `citerec train writer --kind tldr` made; by default the one of citerec.
        as_written: Whether a TLDR keeps "we" and "this paper".
    """

    model: str = str(SHIPPED)
    as_written: bool = False


def open_trained(_name: str, kind: Kind, *, options: Mapping[str, Any] | None = None) -> ExtractiveWriter:
    """A writer of sentences that trees chose from each source, as most like its TLDR, and shortened.

    A TLDR has one or two, without "we" and "this paper". Other kinds of text have one, attributed to its authors as
    `attributed` does.

    Raises:
        InputError: There is another option, or a value is wrong.
        ModelError: There is no such model, or it is damaged.
    """
    chosen = checked(TrainedOptions, options or {}, "trained")
    folder = Path(chosen.model).expanduser()
    if read_model_manifest(folder, SentencesManifest, "a trained writer of TLDRs", f"Run {_COMMAND}") is None:
        raise ModelError(f"there is no trained writer of TLDRs in {folder}", f"Run {_COMMAND}")
    trees_of_words, trees_of_texts = (Trees.read(folder / name, _COMMAND) for name in (WORD_TREES, FORM_TREES))
    vocabulary = Vocabulary(**orjson.loads((folder / VOCABULARY).read_bytes()))
    phrase, most = (None if chosen.as_written else impersonal, 2) if kind == "tldr" else (attributed, 1)

    def pick(task: TextTask) -> list[Sentence]:
        """The best text for each source, of `most` sentences at most; the first of equals."""
        picked = []
        for number, source in enumerate(task.sources):
            if sentences := tuple(filter(str.strip, source_sentences(source))):
                abstract = Abstract(sentences, source.title, vocabulary)
                # The trees of words give the logarithm of the odds.
                odds = trees_of_words.predict(table(abstract.word_features())).tolist() if abstract.words else []
                chances = {stem: 1 / (1 + math.exp(-one)) for stem, one in zip(abstract.words, odds, strict=True)}
                texts = Texts(abstract, chances)
                scores = trees_of_texts.predict(table(texts.features(), np.float32)).tolist()
                short = [one for one in zip(scores, texts.texts, strict=True) if len(one[1]) <= most]
                short = [one for one in short if stands_alone(one[1][0])] or short
                picked += [Sentence(text, (number,)) for text in max(short, key=lambda one: one[0])[1]]
        return picked

    digest = digest_of([file_digest(folder / name) for name in (WORD_TREES, FORM_TREES, VOCABULARY)])
    settings = {"kind": kind, "model": "shipped" if folder == SHIPPED else folder.name, "digest": digest}
    settings |= {"as_written": "true"} if chosen.as_written else {}
    writer = ExtractiveWriter("trained", pick, phrase=phrase, settings=settings)
    writer.provenance = provenance_of_part(folder)
    return writer


TRAINED = WriterPart("trained", open_trained)
