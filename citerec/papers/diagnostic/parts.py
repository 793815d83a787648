"""HAtten as a retriever, by the vectors of a trained model; NCN as a reranker, by the cross-entropy of titles."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field

from citerec.contexts.topic import Topic
from citerec.errors import SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.index.vectors import DenseManifest, DenseOptions
from citerec.records import Paper
from citerec.rerank.base import Records, Reranker, Texts, WeightedSettings, interpolated, trained_folder
from citerec.retrieve.base import Candidates
from citerec.retrieve.dense import DenseRetriever, SearchSettings, Vector

if TYPE_CHECKING:
    from citerec.papers.diagnostic.hatten import Hatten


class HattenRetriever(DenseRetriever):
    """Finds papers by the vectors of a HAtten model. Safe to call from several threads; ties are ordered by paper id.

    The topic's vector is made of the citing paper's title and abstract and the passage; a paper scores the cosine.
    """

    name = "hatten"
    label = "HAtten"
    Settings = SearchSettings  # what is read of a topic is a matter of the model

    @classmethod
    def encode(cls, index: Path, options: DenseOptions, on_progress: Progress, parallelism: Parallelism = HERE) -> str:
        """Makes the vectors of all papers with a model, whose folder the options name; errors as for `encode_index`.

        How many words are read is a matter of the model.

        Raises:
            SettingsError: Another backend than torch is asked for.
        """
        if options.backend not in ("", "torch"):
            raise SettingsError(f"{cls.name} cannot run on {options.backend}", "Leave -c backend out.")
        return super().encode(index, replace(options, open_encoder=_opened), on_progress, parallelism)

    def open_encoder(self) -> "Hatten":
        """Opens the model that the vectors are from."""
        return _opened(self.manifest)

    def prepare(self, topics: Sequence[Topic]) -> Vector:  # type: ignore[override]
        """The vectors of some topics, (topics, dimension); errors as for `DenseRetriever.prepare`."""
        vectors: Vector = self.encoder().encode_topics(topics)
        return vectors


def _opened(named: "DenseOptions | DenseManifest") -> "Hatten":
    """The model that options or a manifest name."""
    from citerec.papers.diagnostic.hatten import Hatten

    return Hatten.open(named.model)


class NcnSettings(WeightedSettings):
    """How NCN is used.

    Attributes:
        depth: How many candidates are ranked, 256 in the paper; the rest follow in their order.
    """

    depth: int = Field(default=256, ge=1)


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

    def __init__(self, path: str | Path, settings: NcnSettings) -> None:
        from citerec.papers.diagnostic.ncn import Ncn

        self.folder = Path(path)
        self.model = Ncn.open(path)
        self.weight = self.model.manifest.weight if settings.weight is None else settings.weight
        self.depth = settings.depth

    def rerank(
        self, topic: Topic, candidates: Candidates, papers: Records, _citances: Texts, *, explain: int = 0
    ) -> Candidates:
        """Candidates in their new order; new scores combine the network's and the previous ones."""
        head = [papers.get(paper_id) or Paper(paper_id) for paper_id in candidates[: self.depth].paper_ids()]
        return interpolated(candidates, self.model.scores(topic, head), self.weight, self.name, explain=explain)
