"""Linear models of texts over TF-IDF: fitted by scikit-learn, run by numpy; and the tagger that is one of them."""

import functools
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import orjson

from citerec.contexts.markers import CitationMarker, Style, find_markers
from citerec.discourse.classifier import VOCABULARY, WEIGHTS, Paragraph, Probabilities, Tagger, TaggerManifest
from citerec.errors import InputError, ModelError
from citerec.files.progress import Progress, no_progress, told

WORD = re.compile(r"\w+|[^\w\s]")
# Penn Treebank's spaces, which ACL-ARC has, hide citations from the parser.
_SPACE_BEFORE = re.compile(r"\s+([,;:.)\]])")
_SPACE_AFTER = re.compile(r"([(\[])\s+")
_PIECES = range(2, 6)
_BEGINNING = 3  # words
_WINDOW = 3  # words on either side of a citation
_SKIPS = (2, 3)  # cue words apart
_NEIGHBOURS = (-2, -1, 0, 1, 2)
_MOST = 5  # larger counts are treated as this
_CITATION = "cite:"  # how the word for a citation begins
_KINDS = {Style.MANGLED: "mangled", Style.AUTHOR_YEAR_TEXT: "text"}


class Features(NamedTuple):
    """A sentence as the blocks read it.

    Attributes:
        text: In lower case, without spaces around punctuation.
        masked: Its words, with each citation as one word for its form.
        place: Tokens for its place in its paragraph, and for how it and its neighbours cite.
    """

    text: str
    masked: list[str]
    place: list[str]


def describe(paragraph: Sequence[str]) -> list[Features]:
    """The features of each sentence of a paragraph; they depend on neighbours."""
    texts = [_SPACE_AFTER.sub(r"\1", _SPACE_BEFORE.sub(r"\1", sentence)) for sentence in paragraph]
    citations = [find_markers(text) for text in texts]
    forms, cites = list(map(_form, texts, citations)), list(map(bool, citations))
    places = [_place(forms, cites, at) for at in range(len(texts))]
    return list(map(Features, map(str.lower, texts), map(_masked, texts, citations), places))


def _words(text: str) -> list[str]:
    """Words and signs in lower case; digits are zeros."""
    return ["0" * len(word) if word.isdigit() else word for word in WORD.findall(text.lower())]


def _kind(marker: CitationMarker) -> str:
    return _KINDS.get(marker.style, "paren")


def _masked(text: str, markers: Sequence[CitationMarker]) -> list[str]:
    words, end = [], 0
    for marker in markers:
        form = f"{_CITATION}{_kind(marker)}{'+' if marker.works > 1 else ''}"
        words += [*_words(text[end : marker.start]), form]
        end = marker.end
    return words + _words(text[end:])


def _form(text: str, markers: Sequence[CitationMarker]) -> list[str]:
    """How often, how and where a sentence cites, and how long it is."""
    kinds = list(map(_kind, markers))
    form = [f"citations{min(len(markers), _MOST)}", f"works{min(sum(c.works for c in markers), _MOST)}"]
    form += [f"{kind}{min(kinds.count(kind), _MOST)}" for kind in ("text", "paren", "mangled")]
    if markers:
        quarters = [4 * marker.start // len(text) for marker in markers]
        form += [f"first-{kinds[0]}{quarters[0]}", f"last-{kinds[-1]}{quarters[-1]}"]
        form.append(f"group{min(max(marker.works for marker in markers), _MOST)}")
    return [*form, f"length{min(len(text.split()) // 6, 8)}"]


def _place(forms: Sequence[list[str]], cites: Sequence[bool], at: int) -> list[str]:
    """The place of a sentence in its paragraph, and how it, its neighbours and the last citing sentence cite."""
    whole = len(forms)
    place = [f"first{at == 0}", f"last{at == whole - 1}", f"whole{min(whole, 8)}"]
    place += [f"from-begin{min(at, _MOST)}", f"from-end{min(whole - 1 - at, _MOST)}"]
    place += [f"citing{min(sum(cites), _MOST)}/{min(whole, 6)}"]
    for away in _NEIGHBOURS:
        place += [f"{away}{token}" for token in (forms[at + away] if 0 <= at + away < whole else ["none"])]
    last = next((before for before in range(at - 1, -1, -1) if cites[before]), None)
    if last is None:
        return [*place, "since-none"]
    since, also = f"since{min(at - last, 4)}", "cites" if cites[at] else ""
    place += [since, *(f"since {token}" for token in forms[last])]
    return place + [f"{since} {token} {also}" for token in forms[last]]


def ngrams(words: Sequence[str], longest: int) -> list[str]:
    """The words, the pairs of words in a row and so on, up to so many in a row."""
    return [" ".join(words[at : at + n]) for n in range(1, longest + 1) for at in range(len(words) - n + 1)]


def _pieces(sentence: Features) -> list[str]:
    words = [f" {word} " for word in sentence.text.split()]
    pieces = ([word[at : at + n] for at in range(len(word) - n + 1)] or [word] for word in words for n in _PIECES)
    return list(itertools.chain.from_iterable(pieces))


def _surroundings(sentence: Features) -> list[str]:
    """Words near citations by their distance, function and cue words by their side, and how the sentence begins."""
    words = sentence.masked
    citations = [at for at, word in enumerate(words) if word.startswith(_CITATION)]
    near = [f"{to - at}{words[to]}" for at in citations for to in range(len(words)) if 0 < abs(to - at) <= _WINDOW]
    first = citations[0] if citations else len(words)
    _, sided = _lexicon()
    sides = [f"{'<' if at < first else '>'}{word}" for at, word in enumerate(words) if word in sided]
    return [*near, *sides, *(f"^{' '.join(words[:n])}" for n in range(1, _BEGINNING + 1))]


def _cues(sentence: Features) -> list[str]:
    """Citations and classes of cue words, without other words: alone, in a row, and with others between them."""
    classes, _ = _lexicon()
    named = ([word] if word.startswith(_CITATION) else classes.get(word, ()) for word in sentence.masked)
    row = [name for name, _ in itertools.groupby(itertools.chain.from_iterable(named))]
    return ngrams(row, 3) + [f"{one}..{other}" for skip in _SKIPS for one, other in zip(row, row[skip:], strict=False)]


@functools.cache
def _lexicon() -> tuple[Mapping[str, Sequence[str]], frozenset[str]]:
    """The words of cues.toml: the classes of each, and those whose side counts."""
    lexicon = tomllib.loads(resources.files("citerec.discourse").joinpath("cues.toml").read_text(encoding="utf-8"))
    classes: dict[str, list[str]] = {}
    for name, words in lexicon["classes"].items():
        for word in words.split():
            classes.setdefault(word, []).append(name)
    return classes, frozenset(lexicon["sides"]["words"].split())


BLOCKS: dict[str, tuple[Any, float]] = {
    "words": (lambda sentence: ngrams(_words(sentence.text), 2), 1.0),
    "characters": (_pieces, 1.0),
    "surroundings": (_surroundings, 0.5),
    "cues": (_cues, 0.5),
    "place": (attrgetter("place"), 1.0),
}
"""Words and pairs of words; pieces of 2 to 5 characters within a word; the text around the citations; classes of cue
words in their order (cues.toml); the form of this sentence and of its neighbours. For each block the function from a
sentence to its tokens, and the weight (ours: by cross-validation on the train files, docs/results.md)."""


# Ours, by cross-validation on the train files; for the balance, dev files were used too (docs/results.md).
INVERSE_REGULARISATION = 3.0
BALANCE = 0.75
"""How much rare labels are weighted up: 0 not at all, 1 to the same total weight for all labels."""
FOLLOWING = 0.4
"""Weight of how often a label follows another, against 1 for the sentence itself."""
_PRIOR = 5.0  # pairs of labels that are assumed for each label before counting

Floats = npt.NDArray[np.float64]
Blocks = Mapping[str, tuple[Callable[[Any], Sequence[str]], float]]
"""By the name of a block of tokens: the function from a sentence to its tokens, and the block's weight."""


class LinearModel:
    """A weight for each token and output. It needs no scikit-learn to run, only to be fitted.

    Args:
        blocks: The blocks of tokens. It uses those of the vocabulary.
        vocabulary: The tokens of each block in the order of the columns.
        idf: The inverse document frequency of each token, blocks one after the other.
        weights: outputs × (tokens + 1), the last for the constant.

    Raises:
        ValueError: There are not as many numbers as tokens.
        KeyError: There is no such block.
    """

    def __init__(self, blocks: Blocks, vocabulary: Mapping[str, Sequence[str]], idf: Any, weights: Any) -> None:
        self.vocabulary = vocabulary
        self.idf, self.weights = np.asarray(idf, np.float32), np.asarray(weights, np.float32)
        count = sum(map(len, vocabulary.values()))
        if self.idf.shape != (count,) or self.weights.shape[1:] != (count + 1,):
            raise ValueError("vocabulary and weights do not fit together")
        self._rows = np.ascontiguousarray(self.weights.T, np.float64)  # one for each token, and the constant
        numbers = iter(range(count))
        self._blocks = [
            (*blocks[name], {token: next(numbers) for token in tokens}) for name, tokens in vocabulary.items()
        ]

    @classmethod
    def of(cls, blocks: Blocks, vectorizer: Any, weights: Any) -> Self:
        """The model of a `tfidf` that was fitted, and of weights that were learned over its columns."""
        parts = dict(vectorizer.transformer_list)
        vocabulary = {name: part.get_feature_names_out().tolist() for name, part in parts.items()}
        return cls(blocks, vocabulary, np.concatenate([part.idf_ for part in parts.values()]), weights)

    def scores(self, sentences: Sequence[Any]) -> Floats:
        """The log-odds of each output for each sentence, sentences × outputs; the vectors are those of `tfidf`."""
        scores = np.tile(self._rows[-1], (len(sentences), 1))
        for row, sentence in zip(scores, sentences, strict=True):
            for tokens_of, weight, columns in self._blocks:
                counts = Counter(columns[token] for token in tokens_of(sentence) if token in columns)
                if counts:
                    places = list(counts)
                    values = (1 + np.log(list(counts.values()))) * self.idf[places]
                    row += weight / np.linalg.norm(values) * (values @ self._rows[places])
        return scores


def tfidf(blocks: Blocks) -> Any:
    """scikit-learn's TF-IDF of each block times its weight, side by side, without tokens of one sentence only."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import FeatureUnion

    options = {"sublinear_tf": True, "min_df": 2}
    parts = [(name, TfidfVectorizer(analyzer=tokens_of, **options)) for name, (tokens_of, _) in blocks.items()]
    return FeatureUnion(parts, transformer_weights={name: weight for name, (_, weight) in blocks.items()})


class LinearTagger(Tagger):
    """Logistic regression over TF-IDF, and which label follows which. To get one, use `fit` or `open`.

    Each label is learned against all others, and probabilities are normalised. The labels of a paragraph form a chain:
    some follow others more often. Probabilities are the marginals of the chain (forward and backward sums).

    Args:
        manifest: Its manifest.
        model: Has one output for each label.
        following: labels × labels: ln of P(second | first) / P(second).
        name: Its name in results.

    Raises:
        ValueError: There are not as many outputs as labels.
    """

    def __init__(
        self, manifest: TaggerManifest, model: LinearModel, following: npt.NDArray[np.float32], name: str = "linear"
    ) -> None:
        self.manifest = manifest
        self.name, self.scheme, self.labels = name, manifest.scheme, manifest.labels
        if not len(self.labels) == len(model.weights) == len(following) == following.shape[-1]:
            raise ValueError("weights and labels do not fit together")
        self._model, self._following = model, following

    @classmethod
    def fit(
        cls, paragraphs: Sequence[Paragraph], manifest: TaggerManifest, seed: int, on_progress: Progress = no_progress
    ) -> Self:
        """Learns from paragraphs that have each label of the manifest. Equal paragraphs and seed give equal weights.

        Raises:
            InputError: The sentences have too little in common.
        """
        from sklearn.linear_model import LogisticRegression

        on_progress("looking at paragraphs", 0, len(paragraphs))
        sentences = [sentence for paragraph in paragraphs for sentence in describe(paragraph.sentences)]
        # The place in a paragraph says nothing if every paragraph has one sentence.
        blocks = {name: BLOCKS[name] for name in BLOCKS if name != "place" or len(sentences) > len(paragraphs)}
        vectorizer = tfidf(blocks)
        try:
            matrix = vectorizer.fit_transform(sentences)
        except ValueError as error:  # no token of a block is in two sentences
            raise InputError("the sentences to learn from have too little in common", "Give more of them.") from error
        gold = np.array([label for paragraph in paragraphs for label in paragraph.labels])
        weights = []
        for label in told(manifest.labels, "learning", on_progress, len(manifest.labels)):
            classifier = LogisticRegression(
                C=INVERSE_REGULARISATION,
                solver="liblinear",
                dual=True,  # a tenth of the time if there are more tokens than sentences
                class_weight={side: (len(gold) / 2 / ((gold == label) == side).sum()) ** BALANCE for side in (0, 1)},
                random_state=seed,
                max_iter=1000,
            ).fit(matrix, (gold == label).astype(int))
            weights.append(np.append(classifier.coef_[0], classifier.intercept_))
        return cls(manifest, LinearModel.of(blocks, vectorizer, weights), _following(paragraphs, manifest.labels))

    @classmethod
    def open(cls, folder: Path, manifest: TaggerManifest) -> Self:
        """Opens a tagger that was saved.

        Raises:
            ModelError: Its files are missing, or damaged.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            arrays = load_file(folder / WEIGHTS)
            vocabulary = orjson.loads((folder / VOCABULARY).read_bytes())
            model = LinearModel(BLOCKS, vocabulary, arrays["idf"], arrays["weights"])
            return cls(manifest, model, arrays["following"], folder.resolve().name)
        except (OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
            remedy = "Train it again: citerec train tagger …"
            raise ModelError(f"the tagger {folder} is damaged: {error}", remedy) from error

    def save(self, folder: Path) -> None:
        """Writes vocabulary, weights and manifest into a folder."""
        from safetensors.numpy import save

        (folder / VOCABULARY).write_bytes(orjson.dumps(self._model.vocabulary))
        arrays = {"idf": self._model.idf, "weights": self._model.weights, "following": self._following}
        (folder / WEIGHTS).write_bytes(save(arrays))
        self.manifest.write(folder)

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[Probabilities]:
        """How likely each label is for each sentence; see `Tagger`."""
        odds = (self._model.scores(describe(paragraph)) for paragraph in paragraphs)
        # ln of each label's probability by its sentence alone: of the logistic function, normalised.
        logistic = (-np.logaddexp(0, -one) for one in odds)
        alone = (one - np.logaddexp.reduce(one, axis=1, keepdims=True) for one in logistic)
        return [marginals(one, FOLLOWING * self._following) for one in alone]


def _following(paragraphs: Iterable[Paragraph], labels: tuple[str, ...]) -> npt.NDArray[np.float32]:
    """For each pair of labels ln of P(second | first) / P(second), smoothed towards 0."""
    pairs, single = np.zeros((len(labels), len(labels))), np.zeros(len(labels))
    for paragraph in paragraphs:
        numbers = [labels.index(label) for label in paragraph.labels]
        np.add.at(single, numbers, 1)
        np.add.at(pairs, (numbers[:-1], numbers[1:]), 1)
    share = single / single.sum()
    pairs += _PRIOR * share
    return np.asarray(np.log(pairs / pairs.sum(axis=1, keepdims=True) / share), np.float32)


def marginals(alone: Floats, following: npt.NDArray[np.floating[Any]]) -> Probabilities:
    """The probability of each label at each place of a chain (Rabiner 1989, forward and backward), rows of 1.

    Args:
        alone: ln of each label's probability by its sentence alone, sentences × labels.
        following: ln of the weight of the second label after the first, labels × labels.
    """
    forward, backward = alone.copy(), np.zeros_like(alone)
    for at in range(1, len(alone)):
        forward[at] += np.logaddexp.reduce(forward[at - 1][:, None] + following, axis=0)
    for at in range(len(alone) - 2, -1, -1):
        backward[at] = np.logaddexp.reduce(following + alone[at + 1] + backward[at + 1], axis=1)
    total = forward + backward
    total -= np.logaddexp.reduce(total, axis=1, keepdims=True)
    return np.exp(total)
