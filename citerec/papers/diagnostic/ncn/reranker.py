"""Reranking by NCN: candidates by the cross-entropy of their titles."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.records import Paper
from citerec.rerank.base import Reranker, WeightedSettings, interpolated, trained_folder
from citerec.retrieve.candidates import Candidates


class NcnSettings(WeightedSettings):
    """How NCN is used."""

    depth: int = Field(
        default=256,
        ge=1,
        description="how many candidates are ranked, 256 in the paper; the rest follow in their order",
    )


class NcnReranker(Reranker):
    """Ranks candidates by the cross-entropy of their titles under a neural citation network.

    Ebesu and Fang (SIGIR 2017). It ranks what was found, and adds nothing. Safe to call from several threads.

    Raises:
        ModelError: The network cannot be opened.
    """

    name = "ncn"
    Settings = NcnSettings

    @classmethod
    def open(cls, index: Path, folder: Path | None, settings: NcnSettings) -> Self:
        """Opens the network in a folder, or the one of the index."""
        return cls(trained_folder(cls, index, folder or settings.model, "ncn"), settings)

    def __init__(self, path: str | Path, settings: NcnSettings | None = None) -> None:
        from citerec.papers.diagnostic.ncn.model import Ncn

        settings = settings or NcnSettings()
        self.folder = Path(path)
        self.model = Ncn.open(path)
        self.weight = self.model.manifest.weight if settings.weight is None else settings.weight
        self.depth = settings.depth

    def rerank(
        self,
        topic: Topic,
        candidates: Candidates,
        papers: Mapping[str, Paper],
        _citances: Mapping[str, str],
        *,
        explain: int = 0,
    ) -> Candidates:
        """Candidates in their new order; new scores combine the network's and the previous ones."""
        head = [papers.get(paper_id) or Paper(paper_id) for paper_id in candidates[: self.depth].paper_ids()]
        return interpolated(candidates, self.model.scores(topic, head), self.weight, self.name, explain=explain)
