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
from typing import Any, ClassVar, Self

import orjson

from citerec.contexts.learnt import NOTHING, Learnt, learnt_by_part
from citerec.contexts.topic import Topic
from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError, SettingsError
from citerec.groundwork.registry import Registry
from citerec.records import Paper
from citerec.retrieve.base import Candidate, CitanceKey
from citerec.settings import PartSettings

MANIFEST = "manifest.json"


class Reranker(ABC):
    """Reranks candidates. Safe to call from several threads; ties are ordered by paper id.

    Attributes:
        name: Its name in recipes, settings and errors.
        Settings: The class of its settings: a `PartSettings` whose fields all have defaults and descriptions.
        preference: Of several rerankers trained for an index, the one with the highest value is the default.
        trained_kind: The `kind` in the manifest of a trained reranker; None for a reranker that is not trained.
        depth: How many candidates it reranks; the rest follow in their old order.
        reads_citances: Whether it needs the citing sentences that the search found.
        folder: The folder of a trained reranker; None for one that is not trained.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[PartSettings]] = PartSettings
    preference: ClassVar[int] = 0
    trained_kind: ClassVar[str | None] = None
    depth: int
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
    def learnt_at(cls, index: Path, folder: Path | None, settings: Any) -> Learnt:
        """What the reranker that `open` opens learnt from; nothing if it is not trained."""
        place = folder or getattr(settings, "model", None) or index / cls.name
        return learnt_by_part(place) if cls.trained_kind else NOTHING

    @abstractmethod
    def rerank(
        self,
        topic: Topic,
        candidates: Sequence[Candidate],
        papers: Mapping[str, Paper],
        citances: Mapping[str, str],
        *,
        explain: bool = False,
    ) -> list[Candidate]:
        """All candidates in their new order, with new scores.

        Args:
            topic: The topic that they were found for.
            candidates: Best first.
            papers: The records of the first `depth` of them.
            citances: The citing sentences that support them, found under the leak rules, by paper id; empty unless
                `reads_citances`.
            explain: Whether each of the first `depth` gets reasons for its score.
        """


RERANKERS: Registry[type[Reranker]] = Registry(
    "reranker", "citerec.rerank", error=SettingsError, order=lambda part: -part.preference
)
"""Every reranker, by name; the preferred ones first."""


def trained_at(folder: Path) -> type[Reranker] | None:
    """The reranker that was trained into a folder, by its manifest; None if there is none."""
    try:
        kind = orjson.loads((folder / MANIFEST).read_bytes()).get("kind")
    except (OSError, ValueError, AttributeError):
        return None
    return next((part for _, part in RERANKERS.items() if kind and part.trained_kind == kind), None)


def trained_folder(part: type[Reranker], index: Path, folder: str | Path | None, command: str) -> Path:
    """The folder of a trained reranker: the named one, or its own in the index. Raises SettingsError without one."""
    if folder:
        return Path(folder)
    if not (index / part.name).is_dir():
        raise SettingsError(
            f"{index} has no {part.name}", f"Train one: citerec train {command} --contexts FILE --index {index}"
        )
    return index / part.name


def in_new_order(ranked: Iterable[Candidate], rest: Iterable[Candidate]) -> list[Candidate]:
    """Candidates by their new scores (there is at least one), ties by paper id; the rest follow in their order.

    The old scores of the rest are on another scale, so they get new ones below the lowest new score.
    """
    ordered = sorted(ranked, key=lambda candidate: (-candidate.score, candidate.paper_id.encode()))
    lowest = ordered[-1].score
    return ordered + [replace(candidate, score=lowest - place) for place, candidate in enumerate(rest, 1)]


def citance_texts(store: PaperStore, candidates: Iterable[Candidate]) -> dict[str, str]:
    """The citing sentence that the search found for each candidate, by paper id."""
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
