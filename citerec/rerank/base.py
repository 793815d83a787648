"""The interface of rerankers, and their registry.

A reranker is one module of `citerec.rerank` (or an entry point of the group `citerec.rerankers` in another package)
with a subclass of `Reranker` that registers itself:

    @RERANKERS.register
    class Newest(Reranker):
        name = "newest"
        ...

It can then be named in a recipe, after a `+` in `--system`, and in `-c newest.KEY=VALUE`.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from citerec.contexts.provenance import Provenance, provenance_of_part
from citerec.contexts.topic import Topic
from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError, SettingsError
from citerec.files.registry import Registry
from citerec.files.resume import read_json
from citerec.index.manifest import trained_of
from citerec.models.loading import MANIFEST
from citerec.records import Paper, Reason
from citerec.retrieve.base import Candidate, Candidates, CitanceKey
from citerec.retrieve.fusion import strongest
from citerec.settings import PartSettings, Weight

Records = Mapping[str, Paper]
"""Records of papers by id."""
Texts = Mapping[str, str]
"""Citing sentences by the id of the cited paper."""


class WeightedSettings(PartSettings):
    """The settings of a trained reranker whose score is weighed against the previous one.

    Attributes:
        model: Folder of the model; by default the one of the index.
        weight: Weight of its score, against 1 for the previous score, both scaled; by default tuned in training.
    """

    model: str | None = None
    weight: Weight | None = None


class Reranker(ABC):
    """Reranks candidates. Safe to call from several threads; equal scores keep the order of the candidates.

    Attributes:
        name: Its name in recipes, settings and errors.
        Settings: The class of its settings: a `PartSettings` whose fields all have defaults and descriptions.
        is_default: Whether one that was trained for an index is used there by default, unless the `weight` in its
            manifest is 0: training found that it does not help.
        depth: How many candidates it reranks; the rest follow in their old order.
        reads: What it needs of the candidates besides their columns: nothing, their records, or these with abstracts
            and TLDRs.
        reads_citances: Whether it needs the citing sentences that the search found.
        folder: The folder of a trained reranker; None for one that is not trained.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[PartSettings]] = PartSettings
    is_default: ClassVar[bool] = False
    depth: int
    reads: ClassVar[Literal["nothing", "records", "texts"]] = "texts"
    reads_citances: bool = False
    folder: Path | None = None

    @classmethod
    def open(cls, _index: Path, _folder: Path | None, _settings: Any) -> Self:
        """Opens the reranker; one that is not trained and has no settings needs none of the arguments.

        Args:
            _index: The index whose candidates it ranks.
            _folder: The folder of a trained reranker, if one is named.
            _settings: An instance of `Settings`.

        Raises:
            SettingsError: There is no trained reranker.
            ModelError: The trained reranker cannot be opened.
        """
        return cls()

    @classmethod
    def place(cls, index: Path, folder: Path | None, settings: Any) -> Path:
        """The folder of the reranker that `open` opens: the named one, or its own in the index."""
        return Path(folder or getattr(settings, "model", None) or trained_of(index, cls.name))

    @classmethod
    def provenance_at(cls, index: Path, folder: Path | None, settings: Any) -> Provenance:
        """What the reranker that `open` opens learnt from; nothing if it is not trained."""
        return provenance_of_part(cls.place(index, folder, settings))

    @abstractmethod
    def rerank(
        self, topic: Topic, candidates: Candidates, papers: Records, citances: Texts, *, explain: int = 0
    ) -> Candidates:
        """All candidates in their new order, with new scores: see `reranked`.

        Args:
            topic: The topic that they were found for.
            candidates: Best first.
            papers: The records of the first `depth` of them, by id; empty if it `reads` nothing.
            citances: The citing sentences that support them, found under the leak rules, by paper id; empty unless
                `reads_citances`.
            explain: How many of the first, in the new order, get reasons for their scores at least.
        """


RERANKERS: Registry[type[Reranker]] = Registry(
    "reranker",
    {"ltr": "citerec.rerank.ltr:LtrReranker", "cross-encoder": "citerec.rerank.cross_encoder:CrossEncoderReranker"},
)
"""Every reranker, by name. Of several that were trained for an index, the first one is the default."""


def trained_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of what was trained into a folder; None if there is none, empty if it is broken."""
    return read_json(folder / MANIFEST) or {} if (folder / MANIFEST).is_file() else None


def trained_at(folder: Path) -> type[Reranker] | None:
    """The reranker that was trained into a folder, by the kind in its manifest, `citerec-<name>`; None without one."""
    kind = (trained_manifest(folder) or {}).get("kind")
    return next((RERANKERS[name] for name in RERANKERS if kind == f"citerec-{name}"), None)


def trained_folder(part: type[Reranker], index: Path, folder: str | Path | None, command: str) -> Path:
    """The folder of a trained reranker: the named one, or its own in the index. Raises SettingsError without one."""
    place = part.place(index, Path(folder) if folder else None, None)
    if not folder and not place.is_dir():
        remedy = f"Train one: citerec train {command} --contexts FILE --index {index}"
        raise SettingsError(f"{index} has no {part.name}", remedy)
    return place


def reranked(
    candidates: Candidates,
    scores: npt.ArrayLike,
    signal: str,
    read: npt.ArrayLike | None = None,
    reasons: Sequence[tuple[Reason, ...]] = (),
) -> Candidates:
    """The first candidates by new scores; equal scores keep their order, and the rest follow in theirs.

    Of equal scores, each gets the next lower number than the one before it: whoever orders by score, and ties by paper
    id, sees the same order. The old scores of the rest are on another scale: they get new ones below the lowest new
    score.

    Args:
        candidates: In their old order, best first.
        scores: The new scores of the first of them, (read,).
        signal: The name of the signal that is kept.
        read: Its values, (read,), if they are not the scores.
        reasons: The reasons for each new score, if they are explained.
    """
    new = np.asarray(scores, np.float64)
    if not len(new):
        return candidates
    rest = np.arange(len(new), len(candidates))
    order = np.argsort(-new, kind="stable")
    falling = new[order]
    if not (np.diff(falling) < 0).all():
        # A score, or the next number below the one above it if it is not lower.
        lowered = itertools.accumulate(falling, lambda above, score: min(score, math.nextafter(above, -math.inf)))
        falling = np.fromiter(lowered, np.float64)
    values = candidates.signal(signal).copy()
    values[: len(new)] = new if read is None else read
    explained = (*reasons, *[()] * len(rest)) if reasons else ()
    ranked = replace(candidates, signals={**candidates.signals, signal: values}, reasons=explained)
    return replace(
        ranked.taken(np.concatenate([order, rest])),
        scores=np.concatenate([falling, falling[-1] - np.arange(1, len(rest) + 1)]),
    )


def interpolated(
    candidates: Candidates, scores: npt.ArrayLike, weight: float, name: str, *, explain: int = 0
) -> Candidates:
    """Candidates by their scores and those of a model that read them, both standardised over those that it read.

    Equal scores keep the order of the candidates, and candidates that were not read follow the others: see `reranked`.

    Args:
        candidates: In their old order, best first.
        scores: The model's scores of the first of them, (read,).
        weight: Their weight, against 1 for the own scores.
        name: The model's name, for signals and reasons.
        explain: Whether there are reasons, if it is not 0.
    """
    added = weight * standardised(scores)
    own = standardised(candidates.scores[: len(added)])
    pairs = zip(own.tolist(), added.tolist(), strict=True) if explain else ()
    reasons = [strongest([Reason("ranking before", before), Reason(name, plus)]) for before, plus in pairs]
    return reranked(candidates, own + added, name.replace("-", "_"), scores, reasons)


def standardised(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Scores with mean 0 and deviation 1; all 0 if they are equal."""
    values = np.asarray(scores, np.float64)
    deviation = values.std() if len(values) else 0.0
    return np.asarray((values - values.mean()) / deviation) if deviation > 1e-12 else np.zeros_like(values)


def citance_texts(store: PaperStore, candidates: Iterable[Candidate]) -> dict[str, str]:
    """The citing sentence that the search found for each candidate, by paper id; those without one are left out."""
    return {one.paper_id: citance_text(store, one.paper_id, one.citance) for one in candidates if one.citance}


def citance_text(store: PaperStore, paper_id: str, citance: CitanceKey) -> str:
    """The citing sentence that the search found for a paper.

    Raises:
        IndexUnusableError: The store does not have it.
    """
    texts = store.citances(paper_id, citance.citing_id)
    if citance.position >= len(texts):
        fault = f"the paper store lacks a sentence in which {citance.citing_id} cites {paper_id}"
        raise IndexUnusableError(fault, "It is damaged: run `citerec index verify`.")
    return texts[citance.position]
