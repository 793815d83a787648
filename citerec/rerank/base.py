"""The interface of rerankers, and their registry.

A reranker is one module of `citerec.rerank` (or an entry point of the group `citerec.rerankers` in another package)
with a subclass of `Reranker` that registers itself:

    @RERANKERS.register
    class Newest(Reranker):
        name = "newest"
        ...

It can then be named in a recipe, after a `+` in `--system`, and in `--set newest.KEY=VALUE`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import orjson

from citerec.contexts.learnt import NOTHING, Learnt, learnt_by_part
from citerec.contexts.topic import Topic
from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError, SettingsError
from citerec.files.registry import Registry
from citerec.index.candidates import Candidate, Candidates, CitanceKey
from citerec.index.generations import trained_of
from citerec.records import Paper, Reason
from citerec.settings import PartSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MANIFEST = "manifest.json"


class Reranker(ABC):
    """Reranks candidates. Safe to call from several threads; equal scores keep the order of the candidates.

    Attributes:
        name: Its name in recipes, settings and errors.
        Settings: The class of its settings: a `PartSettings` whose fields all have defaults and descriptions.
        is_trained: Whether `open` needs a trained one. The `kind` in its manifest is then `citerec-<name>`.
        depth: How many candidates it reranks; the rest follow in their old order.
        reads: What it needs of the candidates besides their columns: nothing, their records, or these with abstracts
            and TLDRs.
        reads_citances: Whether it needs the citing sentences that the search found.
        folder: The folder of a trained reranker; None for one that is not trained.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[PartSettings]] = PartSettings
    is_trained: ClassVar[bool] = False
    depth: int
    reads: ClassVar[Literal["nothing", "records", "texts"]] = "texts"
    reads_citances: bool = False
    folder: Path | None = None

    @classmethod
    @abstractmethod
    def open(cls, index: Path, folder: Path | None, settings: Any) -> Self:
        """Opens the reranker.

        Args:
            index: The index whose candidates it ranks.
            folder: The folder of a trained reranker, if one is named.
            settings: An instance of `Settings`.

        Raises:
            SettingsError: There is no trained reranker.
            ModelError: The trained reranker cannot be opened.
        """

    @classmethod
    def is_default_at(cls, _folder: Path) -> bool:
        """Whether the reranker trained into this folder of an index is used by default; False unless overridden."""
        return False

    @classmethod
    def learnt_over(cls, _folder: Path) -> str | None:
        """The system whose candidates the reranker in a folder learnt to rank, if that matters to it."""
        return None

    @classmethod
    def ships(cls) -> bool:
        """Whether a trained one comes with citerec, for indexes without their own; False unless overridden."""
        return False

    @classmethod
    def learnt_at(cls, index: Path, folder: Path | None, settings: Any) -> Learnt:
        """What the reranker that `open` opens learnt from; nothing if it is not trained."""
        place = folder or getattr(settings, "model", None) or trained_of(index, cls.name)
        return learnt_by_part(place) if cls.is_trained else NOTHING

    @abstractmethod
    def rerank(
        self,
        topic: Topic,
        candidates: Candidates,
        papers: Mapping[str, Paper],
        citances: Mapping[str, str],
        *,
        explain: int = 0,
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


_RERANK = "citerec.rerank"
RERANKERS: Registry[type[Reranker]] = Registry(
    "reranker",
    {
        "ltr": f"{_RERANK}.ltr:LtrReranker",
        "cross-encoder": f"{_RERANK}.cross_encoder:CrossEncoderReranker",
    },
    error=SettingsError,
)
"""Every reranker, by name. Of several that were trained for an index, the first one is the default."""


def trained_at(folder: Path) -> type[Reranker] | None:
    """The reranker that was trained into a folder, by its manifest; None if there is none."""
    try:
        kind = str(orjson.loads((folder / MANIFEST).read_bytes()).get("kind"))
    except (OSError, ValueError, AttributeError):
        return None
    name = kind.removeprefix("citerec-")
    return RERANKERS[name] if name != kind and name in RERANKERS and RERANKERS[name].is_trained else None


def trained_folder(part: type[Reranker], index: Path, folder: str | Path | None, command: str) -> Path:
    """The folder of a trained reranker: the named one, or its own in the index. Raises SettingsError without one."""
    if folder:
        return Path(folder)
    if not trained_of(index, part.name).is_dir():
        raise SettingsError(
            f"{index} has no {part.name}", f"Train one: citerec train {command} --contexts FILE --index {index}"
        )
    return trained_of(index, part.name)


def reranked(
    candidates: Candidates,
    scores: "npt.ArrayLike",
    signal: str,
    read: "npt.ArrayLike | None" = None,
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
    import numpy as np

    new = np.asarray(scores, np.float64)
    if not len(new):
        return candidates
    head, rest = candidates[: len(new)], candidates[len(new) :]
    kept = new if read is None else np.asarray(read, np.float64)
    order = np.argsort(-new, kind="stable")
    ranked = replace(head, scores=new, signals={**head.signals, signal: kept}, reasons=tuple(reasons)).taken(order)
    ranked = replace(ranked, scores=_falling(ranked.scores))
    if not rest:
        return ranked
    below = ranked.scores[-1] - np.arange(1, len(rest) + 1)
    names = [*ranked.signals]
    return replace(
        candidates,
        rows=np.concatenate([ranked.rows, rest.rows]),
        scores=np.concatenate([ranked.scores, below]),
        signals={name: np.concatenate([ranked.signals[name], rest.signal(name)]) for name in names},
        citances=tuple(
            replace(first, keys=np.concatenate([first.keys, then.keys]))
            for first, then in zip(ranked.citances, rest.citances, strict=True)
        ),
        reasons=(*ranked.reasons, *[()] * len(rest)) if reasons else (),
    )


def _falling(scores: "npt.NDArray[np.float64]") -> "npt.NDArray[np.float64]":
    """Scores, best first, of which none equals another: the next lower numbers where some do."""
    import numpy as np

    if (scores[1:] < scores[:-1]).all():
        return scores
    falling = scores.copy()
    for place in range(1, len(falling)):
        falling[place] = min(falling[place], np.nextafter(falling[place - 1], -np.inf))
    return falling


def citance_texts(store: PaperStore, candidates: Iterable[Candidate]) -> dict[str, str]:
    """The citing sentence that the search found for each candidate, by paper id; those without one are left out."""
    return {
        candidate.paper_id: citance_text(store, candidate.paper_id, candidate.citance)
        for candidate in candidates
        if candidate.citance
    }


def citance_text(store: PaperStore, paper_id: str, citance: CitanceKey) -> str:
    """The citing sentence that the search found for a paper.

    Raises:
        IndexUnusableError: The store does not have it.
    """
    texts = store.citances(paper_id, citance.citing_id)
    if citance.position >= len(texts):
        raise IndexUnusableError(
            f"the paper store lacks a sentence in which {citance.citing_id} cites {paper_id}",
            "It is damaged: run `citerec index verify`.",
        )
    return texts[citance.position]
