"""A reranker of another package: the newest of the first candidates first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import Field

from citerec import Candidate, Paper, Reranker, Topic
from citerec.rerank.base import in_new_order
from citerec.settings import PartSettings


class NewestFirstSettings(PartSettings):
    """How many are put in order."""

    depth: int = Field(default=10, ge=1, description="how many candidates are put in order")


class NewestFirst(Reranker):
    """Orders the first candidates by year."""

    name = "newest-first"
    Settings = NewestFirstSettings

    def __init__(self, depth: int) -> None:
        self.depth = depth

    @classmethod
    def open(cls, index: Path, folder: Path | None, settings: NewestFirstSettings) -> Self:
        """There is nothing to open."""
        return cls(settings.depth)

    def rerank(
        self,
        topic: Topic,
        candidates: Sequence[Candidate],
        papers: Mapping[str, Paper],
        citances: Mapping[str, str],
        *,
        explain: bool = False,
    ) -> list[Candidate]:
        """The first candidates by year, the newest first."""
        head = [replace(one, score=float(papers[one.paper_id].year or 0)) for one in candidates[: self.depth]]
        return in_new_order(head, candidates[self.depth :]) if head else []
