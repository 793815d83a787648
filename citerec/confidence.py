"""How sure a system is of an answer: probabilities that were calibrated on contexts (docs/retrieval.md#confidence).

One calibration comes with citerec: for the default system on any index with vectors. Others belong to one system on one
index: a folder of the index, `trained/confidence/NAME/`, made by `citerec train confidence`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from citerec.contexts.provenance import PROVENANCE, provenance_of_part
from citerec.contexts.topic import Topic, clean, names_before
from citerec.errors import SettingsError
from citerec.files.resume import digest_of
from citerec.files.writing import Kind
from citerec.index.columns import hashes_of
from citerec.index.manifest import trained_of
from citerec.index.vectors import Vectors
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest
from citerec.records import FIRST, MARKER, Confidence
from citerec.retrieve.base import Candidates, Floats
from citerec.retrieve.words import WordsRetriever, cites_others
from citerec.settings import shipped
from citerec.systems import Recipe

_REST = 50
_TINY = 1e-12

DEPTH = 300
"""How many candidates tell how sure a system is."""

EVIDENCE = {
    "lead over 2": "score of the first paper less that of the second",
    "lead over 3": "the same, the third",
    "lead over 5": "the same, the fifth",
    "lead over 10": "the same, the tenth",
    "lead over the rest": "the same, the mean of the 11th to the 50th",
    "share": "share of the first paper in the softmax of the scores",
    "share of ten": "share of the first ten in it",
    "spread": "its entropy",
    "fused of ten": "fused scores of the first ten, as shares of the best",
    "rank by words": "rank of the first paper by BM25, as a logarithm",
    "BM25": "its BM25, as a share of the best",
    "BM25 of ten": "the mean share of the first ten",
    "rank by vectors": "rank of the first paper by its vector, as a logarithm",
    "ranks by vectors of ten": "logarithm of the mean rank of the first ten",
    "cosine": "cosine of its vector",
    "gap of cosines": "how far that is below the best",
    "lead of the cosine": "how far it is above the median of all candidates",
    "spread of cosines": "their standard deviation",
    "likeness": "mean cosine between the first ten papers",
    "abstracts": "share of these whose abstract the index has",
    "papers": "logarithm of how many papers the index has",
    "agreement by words": "how many of the first ten are among the ten best by BM25",
    "agreement by vectors": "the same, by vectors",
    "words matched": "share of the words of the sentence that the first paper has",
    "words matched by none": "share of these words that none of the first ten has",
    "words of the title": "BM25 of its title for the sentence, as a logarithm",
    "rarest word of the title": "the most that one word of the sentence adds to it",
    "words near": "share of the words nearest to the marker that its title has",
    "words": "how many different words the sentence has, as a logarithm",
    "named before": "share of the names right before the marker that are its authors",
    "capital": "whether a word with a capital letter stands before the marker",
    "other citations": "whether the sentence has others",
    "cited already": "whether the draft cites the first paper already",
}
"""What tells how sure a system is of an answer, by name: of the first paper and the first ten of `DEPTH` candidates.

It is scores and ranks, what the words and vectors of the index say of the first papers, and what the sentence says of
its citation; but for the size of the index it means much the same in every one.
"""


def evidence_of(topic: Topic, candidates: Candidates, words: WordsRetriever | None, vectors: Vectors | None) -> Floats:
    """The evidence of an answer, (len(EVIDENCE),): NaN where it is unknown.

    Args:
        topic: The topic.
        candidates: What was found, best first; at least the first `DEPTH`, and one.
        words: The words of the index; None if it has none.
        vectors: The vectors that were searched; None if there are none.
    """
    head = candidates[:DEPTH]
    known = _of_scores(head) | _of_ranks(head) | _of_records(topic, head)
    if vectors is not None:
        _, near = vectors.of(head.rows[:FIRST])
        others = len(near) * (len(near) - 1)
        known["likeness"] = (float(((near @ near.T).sum() - len(near)) / others)) if others else np.nan
    if words is not None:
        known |= _of_words(topic, head[:FIRST], words)
    return np.array([known.get(name, np.nan) for name in EVIDENCE], np.float64)


def _of_scores(candidates: Candidates) -> dict[str, float]:
    scores = candidates.scores
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    leads = {f"lead over {rank}": scores[0] - scores[rank - 1] for rank in (2, 3, 5, 10) if rank <= len(scores)}
    if len(rest := scores[FIRST:_REST]):
        leads["lead over the rest"] = scores[0] - rest.mean()
    spread = -float(np.sum(shares * np.log(np.maximum(shares, _TINY))))
    return {**leads, "share": shares[0], "share of ten": shares[:FIRST].sum(), "spread": spread}


def _of_ranks(candidates: Candidates) -> dict[str, float]:
    """What the signals say of the first papers, against the other candidates; what was not found ranks last."""
    known: dict[str, float] = {}
    for signal, name in (("bm25", "words"), ("dense", "vectors")):
        values = candidates.signal(signal)
        if np.isnan(values).all():
            continue
        values = np.where(np.isnan(values), np.nanmin(values), values)
        ranks = 1.0 + (values[:FIRST, None] < values).sum(axis=1)
        known[f"rank by {name}"] = np.log1p(ranks[0])
        known[f"agreement by {name}"] = float((ranks <= FIRST).sum())
        if signal == "dense":
            known["ranks by vectors of ten"] = np.log1p(ranks.mean())
            known |= {"cosine": values[0], "gap of cosines": values.max() - values[0]}
            known |= {"lead of the cosine": values[0] - np.median(values), "spread of cosines": values.std()}
        elif values.max() > 0:
            known |= {"BM25": values[0] / values.max(), "BM25 of ten": values[:FIRST].mean() / values.max()}
    if (fused := np.nan_to_num(candidates.signal("fused"))).max() > 0:
        known["fused of ten"] = fused[:FIRST].mean() / fused.max()
    return known


def _of_records(topic: Topic, candidates: Candidates) -> dict[str, float]:
    before, marker, _ = topic.context.text.partition(MARKER)
    last = clean(before).split()[-1:]
    (first,) = candidates.paper_ids()[:1]
    names = hashes_of(names_before(topic))
    columns = candidates.papers.columns
    authors = columns.of(candidates.rows[:1]).authors
    return {
        "papers": np.log(len(candidates.papers)),
        "abstracts": float(columns.has_abstract[candidates.rows[:FIRST]].mean()),
        "named before": float(np.isin(names, authors[:, 1]).mean()) if len(names) else 0.0,
        "capital": float(bool(marker and last and last[0][0].isupper())),
        "other citations": float(cites_others(topic)),
        "cited already": float(first in (topic.cited_before or ())),
    }


def _of_words(topic: Topic, candidates: Candidates, words: WordsRetriever) -> dict[str, float]:
    near, in_text, title = words.matched(topic, candidates.paper_ids())
    if not len(near):
        return {}
    has = in_text > 0
    return {
        "words matched": has[0].mean(),
        "words matched by none": 1 - has.any(axis=0).mean(),
        "words of the title": np.log1p(title.sum()),
        "rarest word of the title": title.max(),
        "words near": (title[near] > 0).mean() if near.any() else np.nan,
        "words": np.log1p(len(near)),
    }


_FARTHEST = 3.0  # standard deviations: what is farther away than all that was learnt from counts as so far


class Curve(BaseModel):
    """From evidence to the probability of one event: a logistic regression.

    Attributes:
        weights: Of each piece of evidence, standardised.
        constant: Added to the weighted sum.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    weights: tuple[float, ...]
    constant: float


class Curves(BaseModel):
    """The curves of the events.

    Attributes:
        mean: Mean of each piece of evidence.
        scale: Standard deviation of each.
        curves: The curve of each field of `Confidence`, by its name; a missing one is sure.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    curves: Mapping[str, Curve]

    def standardised(self, evidence: Floats) -> Floats:
        """Evidence, (answers, pieces), as the curves see it; what is missing counts as the mean."""
        values = (evidence - np.array(self.mean)) / np.array(self.scale)
        return np.asarray(np.clip(np.nan_to_num(values, nan=0.0), -_FARTHEST, _FARTHEST))

    def at(self, evidence: Floats) -> dict[str, Floats]:
        """The probabilities of the events, (answers,) each, for evidence, (answers, pieces)."""
        values = self.standardised(evidence)
        sums = {name: values @ np.array(curve.weights) + curve.constant for name, curve in self.curves.items()}
        return {name: 1 / (1 + np.exp(-of_event)) for name, of_event in sums.items()}


class Calibration(Curves, ModelManifest):
    """`manifest.json` of a calibration: all that there is to it.

    Attributes:
        corpus: Fingerprint of the index; empty for the shipped one, which is for every index.
        system: Name of the system, as it was given.
        recipe: Its recipe.
        made_for: Digest of all that the system's scores depend on; if it differs, the calibration is not used. Of the
            shipped one, that of the ranker.
        evidence: The names of the pieces of evidence.
        training: The file of contexts, how many, and how many were left out.
        measured: For each event, on contexts that a curve was not fitted on: see `citerec.train.confidence`.
    """

    kind: Literal["citerec-confidence"] = "citerec-confidence"
    corpus: str
    system: str
    recipe: dict[str, Any]
    made_for: str
    evidence: tuple[str, ...]
    training: dict[str, Any]
    measured: dict[str, dict[str, float]]

    def of(self, evidence: Floats) -> Confidence:
        """How sure the system is of an answer with some evidence, (len(EVIDENCE),)."""
        events = {name: float(of_one[0]) for name, of_one in self.at(evidence[None]).items()}
        return Confidence(**{**events, "among_ten": max(events["first"], events["among_ten"])})


CHANCE = "chance"
"""The signal that says how probable it is that a candidate is right."""


def chances(scores: Floats, confidence: Confidence) -> Floats:
    """How probable it is that each candidate is right, (candidates,), from their scores and how sure the system is.

    Those of the first ten beside the first share what is left of `Confidence.among_ten`, by the softmax of their
    scores; later ones get nothing.
    """
    probabilities = np.zeros(len(scores))
    probabilities[0] = confidence.first
    shares = np.exp(scores[1:FIRST] - scores[0])
    probabilities[1:FIRST] = (confidence.among_ten - confidence.first) * shares / max(shares.sum(), _TINY)
    return probabilities


CALIBRATION = Kind("calibration", "citerec-confidence", MANIFEST, frozenset({MANIFEST, PROVENANCE}))
SHIPPED = "confidence"
"""The folder of the calibration that comes with citerec: of the default system with vectors, on any index."""


def calibration_folder(index: Path, recipe: Recipe) -> Path:
    """Where the calibration of a system lies in an index: its parts, and a digest of its settings."""
    whole = recipe.whole()
    parts = re.sub(r"[^\w.+-]", "_", "+".join([*whole.retrievers, *whole.rerankers]))
    return trained_of(index, "confidence") / f"{parts[:80]}-{digest_of(whole.to_json())[:8]}"


def open_calibration(index: Path, recipe: Recipe, made_for: str, ranker: str | None) -> Calibration | None:
    """The calibration of a system on an index, or else the shipped one; None if neither was made for it.

    Args:
        index: The index.
        recipe: The recipe of the system.
        made_for: A digest of all that its scores depend on.
        ranker: The digest of its learnt ranker, if it has one.

    Raises:
        ModelError: It is broken, or of another version.
    """
    folder = calibration_folder(index, recipe)
    again = f"Make it again: citerec train confidence --contexts FILE --index {index}, or remove {folder}."
    own = read_model_manifest(folder, Calibration, "a calibration", again)
    if own and own.made_for == made_for and own.evidence == tuple(EVIDENCE):
        return own
    if ranker is None:
        return None
    every = read_model_manifest(shipped(SHIPPED), Calibration, "a calibration", "Install citerec again.")
    wanted = ranker, recipe.whole().to_json(), tuple(EVIDENCE)
    return every if every and (every.made_for, every.recipe, every.evidence) == wanted else None


def calibrated_on(calibration: Calibration, index: Path, recipe: Recipe) -> frozenset[str]:
    """Digests of the contexts that the calibration of a system was fitted on."""
    folder = calibration_folder(index, recipe) if calibration.corpus else shipped(SHIPPED)
    return provenance_of_part(folder).trained_on


def not_calibrated(index: Path, recipe: Recipe, system: str) -> SettingsError:
    """The error that confidence is asked of a system that has no calibration, or an old one."""
    fault = f"{index} has no calibration of {system} with these settings"
    remedy = "Make it on contexts with cited papers, with the same settings"
    if (calibration_folder(index, recipe) / MANIFEST).is_file():
        fault, remedy = f"{system} was calibrated for {index} before its papers, vectors or rankers changed", "Again"
    return SettingsError(fault, f"{remedy}: citerec train confidence --contexts FILE --index {index} --system {system}")
