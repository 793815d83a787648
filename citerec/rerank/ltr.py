"""Reranking by a learnt ranker: gradient-boosted trees over `features.FEATURES`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.errors import ModelError
from citerec.files.places import shipped
from citerec.models.loading import MANIFEST, ModelManifest, read_model_manifest
from citerec.records import Paper, Reason
from citerec.rerank.base import Reranker, reranked
from citerec.rerank.features import FEATURES, features_of
from citerec.rerank.trees import Trees
from citerec.retrieve.candidates import Candidates
from citerec.retrieve.fusion import strongest
from citerec.settings import PartSettings

MODEL = "model.txt"
_FUSED = "fused share"
SHIPPED = "ranker"
"""The folder of the ranker that comes with citerec."""


class LtrSettings(PartSettings):
    """How the learnt ranker is used."""

    depth: int = Field(default=300, ge=1, description="how many candidates are reranked; the rest follow them")
    again: float = Field(
        default=-2.0,
        ge=-100,
        le=100,
        description="added to the scores of what the draft cites already; below 0 makes room for what is new",
    )
    model: str | None = Field(
        default=None,
        description="folder of the learnt ranker; by default that of the index, else the one that comes with citerec",
    )


class LtrManifest(ModelManifest):
    """`manifest.json` of a learnt ranker: its training, its scores on dev, its features and their gain."""

    kind: Literal["citerec-ltr"] = "citerec-ltr"
    corpus: str
    """Fingerprint of the index that it learnt on; of several, joined."""
    system: str
    depth: int
    features: tuple[str, ...]
    start: float = 0.0
    """Weight of the fused score, as a share of the best one, to which the trees add: see `started`."""
    gain: dict[str, float]
    """Share of each feature in the gain of the trees."""


class LtrReranker(Reranker):
    """Ranks candidates by gradient-boosted trees. Safe to call from several threads.

    Raises:
        ModelError: There is no trained ranker, it is damaged, or it was trained on other features.
    """

    name = "ltr"
    Settings = LtrSettings
    reads = "nothing"
    is_default = True

    @classmethod
    def open(cls, index: Path, folder: Path | None, settings: LtrSettings) -> Self:
        """Opens the ranker in a folder, or the one of the index, or the one that comes with citerec."""
        return cls(cls.place(index, folder, settings), settings)

    @classmethod
    def place(cls, index: Path, folder: Path | None, settings: LtrSettings) -> Path:
        """As `Reranker.place`; where there is none, that of the one that comes with citerec."""
        own = super().place(index, folder, settings)
        return own if folder or settings.model or (own / MANIFEST).is_file() else shipped(SHIPPED)

    def __init__(self, path: Path, settings: LtrSettings | None = None) -> None:
        self.folder = path
        remedy = "Train it: citerec train ltr --contexts FILE --index INDEX"
        if (manifest := read_model_manifest(path, LtrManifest, "a learnt ranker", remedy)) is None:
            raise ModelError(f"there is no learnt ranker in {path}", remedy)
        self.manifest = manifest
        self._trees = Trees.read(path / MODEL)
        features = manifest.features
        if len(features) != self._trees.features or not set(features) <= set(FEATURES):
            raise ModelError(f"{path} was trained on other features", "Train it again: citerec train ltr")
        chosen = settings or LtrSettings()
        self.depth, self._again = chosen.depth, chosen.again
        self._columns = [list(FEATURES).index(name) for name in features]

    def rerank(
        self,
        topic: Topic,
        candidates: Candidates,
        _papers: Mapping[str, Paper],
        _citances: Mapping[str, str],
        *,
        explain: int = 0,
    ) -> Candidates:
        """Candidates in their new order, with new scores; those beyond `depth` follow in their order."""
        head = candidates[: self.depth]
        if not head:
            return candidates
        features = features_of(topic, head, wanted=self.manifest.features)
        again = self._again * (head.signal("draft_times") > 0)
        scores = self.scores(features) + again
        reasons: list[tuple[Reason, ...]] = [()] * len(head) if explain else []
        shown = np.argsort(-scores, kind="stable")[:explain]  # contributions cost more than scores
        if explain:
            for place, of_one in zip(shown.tolist(), self.reasons(features[shown], again[shown]), strict=True):
                reasons[place] = of_one
        return reranked(candidates, scores, self.name, reasons=reasons)

    def scores(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """The score for each row of `features_of`, (rows,)."""
        added = self._trees.predict(features[:, self._columns])
        return np.asarray(started(features, self.manifest.start) + added)

    def reasons(self, features: npt.NDArray[np.float32], again: Any = 0.0) -> list[tuple[Reason, ...]]:
        """The reasons that add up to the score of each row, except for a constant.

        The SHAP values of the trees, summed by kind of feature.
        `again` is what was added for papers that the draft cites already: a number, or (rows,).
        """
        values = self._trees.contributions(features[:, self._columns])
        kinds = list(dict.fromkeys(feature.kind for feature in FEATURES.values()))
        sums = np.zeros((len(values), len(kinds)))
        for column, name in enumerate(self.manifest.features):
            sums[:, kinds.index(FEATURES[name].kind)] += values[:, column]
        sums[:, kinds.index(FEATURES[_FUSED].kind)] += started(features, self.manifest.start)
        sums[:, kinds.index(FEATURES["cited before"].kind)] += again
        return [strongest(map(Reason, kinds, row)) for row in sums.tolist()]


def started(features: npt.NDArray[np.float32], weight: float) -> npt.NDArray[np.float64]:
    """What the trees add to: a weight times the fused score as a share of the best one, (rows,).

    Trees that learnt what to add to it hold better on other corpora than trees alone: indexes/ranker/DATASHEET.md.
    """
    return np.asarray(weight * np.nan_to_num(features[:, list(FEATURES).index(_FUSED)].astype(float)))
