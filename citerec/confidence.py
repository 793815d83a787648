"""How sure a system is of an answer: probabilities that were calibrated on contexts (docs/retrieval.md#confidence).

A calibration belongs to one system on one index. It is a folder of the index, `confidence/NAME/`, made by
`citerec train confidence`.
"""

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from citerec.contexts.provenance import PROVENANCE, provenance_of_part
from citerec.errors import SettingsError
from citerec.files.hashing import digest_of
from citerec.files.writing import Kind
from citerec.index.manifest import trained_of
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest
from citerec.records import Confidence
from citerec.retrieve.base import Candidates, Floats
from citerec.systems import Recipe

CALIBRATION = Kind("calibration", "citerec-confidence", MANIFEST, frozenset({MANIFEST, PROVENANCE}))


class Curve(BaseModel):
    """From evidence to the probability of one event: a logistic regression, whose score is calibrated.

    Attributes:
        weights: Of each piece of evidence, standardised.
        constant: Added to the weighted sum.
        scores: Weighted sums, ascending.
        probabilities: What they mean, ascending too: isotonic regression; in between, straight lines.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    weights: tuple[float, ...]
    constant: float
    scores: tuple[float, ...]
    probabilities: tuple[float, ...]


class Curves(BaseModel):
    """The curves of both events.

    Attributes:
        mean: Mean of each piece of evidence.
        scale: Standard deviation of each.
        first: The curve of `Confidence.first`.
        among_ten: The curve of `Confidence.among_ten`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    first: Curve
    among_ten: Curve

    def at(self, evidence: Floats) -> Floats:
        """The probabilities, (answers, events), for evidence, (answers, pieces); what is missing counts as the mean."""
        standardised = np.nan_to_num((evidence - np.array(self.mean)) / np.array(self.scale), nan=0.0)
        columns = []
        for curve in (self.first, self.among_ten):
            sums = standardised @ np.array(curve.weights) + curve.constant
            columns.append(np.interp(sums, curve.scores, curve.probabilities))
        return np.stack(columns, axis=1)


class Calibration(Curves, ModelManifest):
    """`manifest.json` of a calibration: all that there is to it.

    Attributes:
        corpus: Fingerprint of the index.
        system: Name of the system, as it was given.
        recipe: Its recipe.
        made_for: Digest of all that the system's scores depend on; if it differs, the calibration is not used.
        signals: The signals that are evidence.
        training: The file of contexts, how many, and how many were left out.
        measured: For each event, on contexts that a curve was not fitted on: see `citerec.train.ranking`.
    """

    kind: Literal["citerec-confidence"] = "citerec-confidence"
    corpus: str
    system: str
    recipe: dict[str, Any]
    made_for: str
    signals: tuple[str, ...]
    training: dict[str, Any]
    measured: dict[str, dict[str, float]]

    def of(self, candidates: Candidates) -> Confidence:
        """How sure the system is of an answer; at least its first ten candidates must be given. 0 if it is empty."""
        if not candidates:
            return Confidence(0.0, 0.0)
        first, among_ten = self.at(candidates.evidence(self.signals)[None])[0].tolist()
        return Confidence(first, max(first, among_ten))


def calibration_folder(index: Path, recipe: Recipe) -> Path:
    """Where the calibration of a system lies in an index: its parts, and a digest of its settings."""
    whole = recipe.whole()
    parts = re.sub(r"[^\w.+-]", "_", "+".join([*whole.retrievers, *whole.rerankers]))
    return trained_of(index, "confidence") / f"{parts[:80]}-{digest_of(whole.to_json())[:8]}"


def open_calibration(index: Path, recipe: Recipe, wanted: str) -> Calibration | None:
    """The calibration of a system; None if there is none, or it was made for other papers, vectors or trained parts.

    Raises:
        ModelError: It is broken, or of another version.
    """
    folder = calibration_folder(index, recipe)
    again = f"Make it again: citerec train confidence --contexts FILE --index {index}, or remove {folder}."
    calibration = read_model_manifest(folder, Calibration, "a calibration", again)
    return calibration if calibration and calibration.made_for == wanted else None


def calibrated_on(index: Path, recipe: Recipe) -> frozenset[str]:
    """Digests of the contexts that the calibration of a system was fitted on; none without one."""
    return provenance_of_part(calibration_folder(index, recipe)).trained_on


def not_calibrated(index: Path, recipe: Recipe, system: str) -> SettingsError:
    """The error that confidence is asked of a system that has no calibration, or an old one."""
    fault = f"{index} has no calibration of {system} with these settings"
    remedy = "Make it on contexts with cited papers, with the same settings"
    if (calibration_folder(index, recipe) / MANIFEST).is_file():
        fault, remedy = f"{system} was calibrated for {index} before its papers, vectors or rankers changed", "Again"
    return SettingsError(fault, f"{remedy}: citerec train confidence --contexts FILE --index {index} --system {system}")
