"""What a trained writer of TLDRs sees of each text that can be made of an abstract: its features, as numbers."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set

import numpy as np
import numpy.typing as npt

from citerec.write.sentences import STOP_WORDS
from citerec.write.writers.shorten import Form, forms_of, leans
from citerec.write.writers.tldr_words import CUES, AbstractWords, Chances, expected, stems_of

_OF_SENTENCES = (
    *CUES, "number", "from end", "place", "from contribution", "is contribution", "first we", "question", "digits",
    "capitals", "commas", "central", "title recall", "title precision", "expected f1", "before", "after",
)  # fmt: skip
_OF_FORMS = (
    "opening", "brackets", "ending", "endings", "words", "share", "begins we", "expected f1", "expected precision",
    "expected recall", "expected pairs", "left out", "rank", "below best", "below best whole", "title f1",
    "rare", "first words", "last words",
)  # fmt: skip
_OF_ABSTRACTS = ("sentences", "words", "title words", "best", "mean")
_OF_SECONDS = (
    *_OF_SENTENCES, "opening", "brackets", "ending", "words", "form f1", "share", "shared", "distance", "first f1",
)  # fmt: skip
FORM_FEATURES = tuple(
    f"{kind} {name}"
    for kind, names in (
        ("sentence", _OF_SENTENCES),
        ("form", _OF_FORMS),
        ("abstract", _OF_ABSTRACTS),
        ("second", _OF_SECONDS),
    )
    for name in names
)
"""The names of the columns of `AbstractForms.features`. Those of a second sentence are NaN for a text of one."""
PAIRS = 12
"""Pairs of forms that are looked at, those with the highest expected F1 (ours, as is `PAIR_WORDS`)."""
PAIRED_FORMS = 60
"""Forms that pairs are made of, the best ones: long texts would have too many. Most abstracts have fewer."""
PAIR_WORDS = 42
"""Words of a pair at most. Nine in ten TLDRs of SciTLDR's training part have at most 31."""
_CAPITALS = re.compile(r"\b\w*[A-Z]\w*[A-Z]\w*")
_Expected = tuple[float, float, float, float]


class AbstractForms:
    """The texts that can be made of an abstract: forms of its sentences, and pairs of forms of two sentences.

    A second sentence that `leans` on the one before it, stands only after that one.

    Args:
        words: The abstract.
        chances: The chances of its words.

    Attributes:
        forms: For each form its sentence's number, and the form; the whole sentence comes before its other forms.
        texts: For each text the places of its forms in `forms`: first each form alone, then the pairs.
    """

    def __init__(self, words: AbstractWords, chances: Chances) -> None:
        self._abstract = words
        self._chances = chances
        self.forms: list[tuple[int, Form]] = [
            (number, form) for number, sentence in enumerate(words.sentences) for form in forms_of(sentence)
        ]
        self._stems = [stems_of(form.text) for _, form in self.forms]
        found = map(self._expected, self._stems)
        alone: dict[tuple[int, ...], _Expected] = {(place,): one for place, one in enumerate(found)}
        best = sorted(alone, key=lambda text: -alone[text][0])[:PAIRED_FORMS]
        self._found = {**alone, **self._pairs(sorted(place for (place,) in best))}
        self.texts = list(self._found)

    def written(self, text: Sequence[int]) -> list[str]:
        """The sentences of a text; of a pair only those with words (data sets have sentences such as ".")."""
        return [self.forms[place][1].text for place in text if self._stems[place]] or [self.forms[text[0]][1].text]

    def _expected(self, stems: Sequence[str]) -> _Expected:
        return expected(stems, self._chances, self._abstract.vocabulary.target_words)

    def _pairs(self, places: Sequence[int]) -> dict[tuple[int, ...], _Expected]:
        found: dict[tuple[int, ...], _Expected] = {}
        for first, second in itertools.combinations(places, 2):
            (one, _), (other, form) = self.forms[first], self.forms[second]
            stems = self._stems[first] + self._stems[second]
            if one < other and len(stems) <= PAIR_WORDS and (other == one + 1 or not leans(form.text)):
                found[first, second] = self._expected(stems)
        best = sorted(found.items(), key=lambda pair: -pair[1][0])
        return dict(best[:PAIRS])

    def features(self) -> npt.NDArray[np.float32]:
        """The features of each text, texts × `FORM_FEATURES`."""
        abstract, chances = self._abstract, self._chances
        f1 = np.array([one[0] for one in self._found.values()])
        whole_of = {number: place for place, (number, _) in reversed(list(enumerate(self.forms)))}
        of_wholes = [float(f1[whole_of[number]]) for number in range(len(abstract.sentences))]
        ranks = np.argsort(np.argsort(-f1, kind="stable"), kind="stable")
        endings = Counter((number, form.opening, form.brackets) for number, form in self.forms)
        of_sentences = self._of_sentences(of_wholes)
        sizes = (len(abstract.sentences), sum(map(len, abstract.stems)), len(abstract.title) or np.nan)
        rows = []
        for row, (text, found) in enumerate(self._found.items()):
            number, form = self.forms[text[0]]
            own = [stem for place in text for stem in self._stems[place]]
            whole = [stem for place in text for stem in abstract.stems[self.forms[place][0]]]
            left_out = (Counter(whole) - Counter(own)).elements()
            rows.append(
                (
                    *of_sentences[number],
                    form.opening,
                    form.brackets,
                    form.ending,
                    endings[number, form.opening, form.brackets],
                    len(own),
                    len(own) / max(len(whole), 1),
                    own[:1] == ["we"],
                    *found,
                    _mean([chances.get(stem, 0.0) for stem in left_out]),
                    ranks[row],
                    f1.max() - f1[row],
                    max(of_wholes) - f1[row],
                    _overlap(own, abstract.title)[2],
                    _mean([self._rare(stem) for stem in own]),
                    _mean([chances.get(stem, 0.0) for stem in own[:4]]),
                    _mean([chances.get(stem, 0.0) for stem in own[-4:]]),
                    *sizes,
                    f1.max(),
                    f1.mean(),
                    *self._of_second(text, of_sentences),
                )
            )
        return np.array(rows, np.float32).reshape(-1, len(FORM_FEATURES))

    def _of_second(self, text: tuple[int, ...], of_sentences: Sequence[Sequence[float]]) -> Sequence[float]:
        """The features of the second sentence of a text."""
        if len(text) == 1:
            return (np.nan,) * len(_OF_SECONDS)
        first, second = text
        number, form = self.forms[second]
        own, before = self._stems[second], set(self._stems[first])
        return (
            *of_sentences[number],
            form.opening,
            form.brackets,
            form.ending,
            len(own),
            self._found[second,][0],
            len(own) / max(len(self._abstract.stems[number]), 1),
            sum(stem in before for stem in own) / max(len(own), 1),
            number - self.forms[first][0],
            self._found[first,][0],
        )

    def _of_sentences(self, f1: Sequence[float]) -> list[tuple[float, ...]]:
        """The features of each sentence, given the F1 that is expected of each."""
        abstract = self._abstract
        last = len(abstract.sentences) - 1
        vectors = [self._vector(stems) for stems in abstract.stems]
        first_we = next((n for n, sentence in enumerate(abstract.sentences) if CUES["we"].search(sentence)), -1)
        rows = []
        for number, sentence in enumerate(abstract.sentences):
            rest: dict[str, float] = {}
            for vector in (*vectors[:number], *vectors[number + 1 :]):
                for stem, weight in vector.items():
                    rest[stem] = rest.get(stem, 0.0) + weight
            rows.append(
                (
                    *(cue.search(sentence) is not None for cue in CUES.values()),
                    number,
                    last - number,
                    number / max(last, 1),
                    number - abstract.contribution,
                    number == abstract.contribution,
                    number == first_we,
                    "?" in sentence,
                    sum(map(str.isdigit, sentence)),
                    len(_CAPITALS.findall(sentence)),
                    sentence.count(","),
                    _cosine(vectors[number], rest),
                    *_overlap(abstract.stems[number], abstract.title)[:2],
                    f1[number],
                    f1[number - 1] if number else np.nan,
                    f1[number + 1] if number < last else np.nan,
                )
            )
        return rows

    def _vector(self, stems: Sequence[str]) -> dict[str, float]:
        """The content words of a sentence with their weights, tf × idf."""
        counts = Counter(stem for stem in stems if stem not in STOP_WORDS)
        return {stem: count * self._rare(stem) for stem, count in counts.items()}

    def _rare(self, stem: str) -> float:
        return self._abstract.vocabulary.rare(stem, self._abstract.left_out)


def _overlap(stems: Sequence[str], title: Set[str]) -> tuple[float, float, float]:
    """Recall, precision and F1 of the content words of a title; NaN without a title."""
    if not title:
        return np.nan, np.nan, np.nan
    own = {stem for stem in stems if stem not in STOP_WORDS}
    shared = len(own & title)
    return shared / len(title), shared / max(len(own), 1), 2 * shared / (len(own) + len(title))


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    dot = sum(weight * other[stem] for stem, weight in one.items() if stem in other)
    norms = math.sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
    return dot / norms if norms else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else np.nan
