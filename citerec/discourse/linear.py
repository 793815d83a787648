"""The linear tagger: logistic regression over TF-IDF, and which label follows which. No pretrained model."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import orjson

from citerec.discourse.base import Probabilities, Tagger, TaggerManifest
from citerec.discourse.features import BLOCKS, Tokens, describe
from citerec.discourse.paragraphs import Paragraph
from citerec.discourse.vectors import Vectors
from citerec.errors import ModelError
from citerec.files.progress import Progress, no_progress

VOCABULARY = "vocabulary.json"
WEIGHTS = "weights.safetensors"

# Ours, by cross-validation on the train files; for the balance, dev files were used too (docs/results.md).
INVERSE_REGULARISATION = 3.0
BALANCE = 0.75
"""How much rare labels are weighted up: 0 not at all, 1 to the same total weight for all labels."""
FOLLOWING = 0.4
"""Weight of how often a label follows another, against 1 for the sentence itself."""
_PRIOR = 5.0  # pairs of labels that are assumed for each label before counting
_AT_ONCE = 500  # paragraphs whose vectors are held at once

Floats = npt.NDArray[np.float64]


class LinearTagger(Tagger):
    """Has one weight for each token and label. To get one, use `fit` or `open`.

    Each label is learnt against all others, and probabilities are normalised. The labels of a paragraph form a chain:
    some follow others more often. Probabilities are the marginals of the chain (forward and backward sums).

    Args:
        manifest: Its manifest.
        vectors: Makes vectors of tokens.
        weights: labels × (tokens + 1), the last for the constant.
        following: labels × labels: ln of P(second | first) / P(second).
        name: Its name in results.
    """

    def __init__(
        self,
        manifest: TaggerManifest,
        vectors: Vectors,
        weights: npt.NDArray[np.float32],
        following: npt.NDArray[np.float32],
        name: str = "linear",
    ) -> None:
        self.manifest = manifest
        self.name, self.scheme, self.labels = name, manifest.scheme, manifest.labels
        self._vectors = vectors
        self._weights = weights
        self._following = following

    @classmethod
    def fit(
        cls, paragraphs: Sequence[Paragraph], manifest: TaggerManifest, seed: int, on_progress: Progress = no_progress
    ) -> Self:
        """Learns from paragraphs that have each label of the manifest. Equal paragraphs and seed give equal weights."""
        # The place in a paragraph says nothing if every paragraph has one sentence.
        blocks = BLOCKS if any(len(p.sentences) > 1 for p in paragraphs) else BLOCKS[:-1]
        vectors, rows = Vectors.learn(_described(paragraphs, on_progress), blocks)
        matrix = rows.csr()
        gold = np.array([manifest.labels.index(label) for paragraph in paragraphs for label in paragraph.labels])
        weights = []
        for number in range(len(manifest.labels)):
            on_progress("learning", number, len(manifest.labels))
            weights.append(_one_against_all(matrix, gold == number, seed))
        return cls(manifest, vectors, np.array(weights, np.float32), _following(paragraphs, manifest.labels))

    @classmethod
    def open(cls, folder: Path, manifest: TaggerManifest) -> Self:
        """Opens a tagger that was saved.

        Raises:
            ModelError: Its files are missing, or damaged.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            vocabulary = orjson.loads((folder / VOCABULARY).read_bytes())
            arrays = load_file(folder / WEIGHTS)
            vectors = Vectors(vocabulary, arrays["idf"])
            labels, tokens = len(manifest.labels), sum(map(len, vocabulary.values()))
            shapes = {"idf": (tokens,), "weights": (labels, tokens + 1), "following": (labels, labels)}
            if {name: array.shape for name, array in arrays.items()} != shapes:
                raise ValueError("vocabulary, weights and labels do not fit together")
        except (OSError, SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"the tagger {folder} is damaged: {error}", "Train it again: citerec train tagger …"
            ) from error
        return cls(manifest, vectors, arrays["weights"], arrays["following"], folder.resolve().name)

    def save(self, folder: Path) -> None:
        """Writes vocabulary, weights and manifest into a folder."""
        from safetensors.numpy import save

        (folder / VOCABULARY).write_bytes(orjson.dumps(self._vectors.vocabulary))
        arrays = {"idf": self._vectors.idf, "weights": self._weights, "following": self._following}
        (folder / WEIGHTS).write_bytes(save(arrays))
        self.manifest.write(folder)

    def probabilities(self, paragraphs: Sequence[Sequence[str]]) -> list[Probabilities]:
        """How likely each label is for each sentence; see `Tagger`."""
        found: list[Probabilities] = []
        for begin in range(0, len(paragraphs), _AT_ONCE):
            part = paragraphs[begin : begin + _AT_ONCE]
            matrix = self._vectors.matrix(tokens for paragraph in part for tokens in describe(paragraph))
            scores = matrix @ self._weights[:, :-1].T.astype(np.float64) + self._weights[:, -1]
            alone = -np.logaddexp(0, -scores)  # ln of the logistic function
            alone -= np.logaddexp.reduce(alone, axis=1, keepdims=True)
            ends = np.cumsum([len(paragraph) for paragraph in part])
            found += [_marginals(rows, FOLLOWING * self._following) for rows in np.split(alone, ends)[:-1]]
        return found


def _described(paragraphs: Sequence[Paragraph], on_progress: Progress) -> Iterator[Tokens]:
    for number, paragraph in enumerate(paragraphs):
        if number % _AT_ONCE == 0:
            on_progress("looking at paragraphs", number, len(paragraphs))
        yield from describe(paragraph.sentences)


def _one_against_all(matrix: Any, positive: npt.NDArray[np.bool_], seed: int) -> Floats:
    """The weights of a label against all others, the constant last."""
    from sklearn.linear_model import LogisticRegression

    half = len(positive) / 2
    balance = {True: (half / positive.sum()) ** BALANCE, False: (half / (~positive).sum()) ** BALANCE}
    # The dual form takes a tenth of the time if there are more tokens than sentences.
    model = LogisticRegression(
        C=INVERSE_REGULARISATION, solver="liblinear", dual=True, class_weight=balance, random_state=seed, max_iter=1000
    )
    model.fit(matrix, positive)
    return np.append(model.coef_[0], model.intercept_)


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


def _marginals(alone: Floats, following: npt.NDArray[np.float32]) -> Probabilities:
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
