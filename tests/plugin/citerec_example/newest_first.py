"""A reranker of another package: the newest of the first candidates first."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field

from citerec import Candidates, Paper, Reranker, Topic, reranked
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
        candidates: Candidates,
        papers: Mapping[str, Paper],
        citances: Mapping[str, str],
        *,
        explain: int = 0,
    ) -> Candidates:
        """The first candidates by year, the newest first."""
        years = [papers[paper_id].year or 0 for paper_id in candidates[: self.depth].paper_ids()]
        return reranked(candidates, years, self.name)
