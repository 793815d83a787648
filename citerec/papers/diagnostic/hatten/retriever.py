"""HAtten as a retriever: the vectors of a model of `citerec train hatten`, searched as those of other encoders are."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.contexts.topic import Topic
from citerec.errors import SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.index.vectors.vectors import DenseManifest
from citerec.retrieve.dense import DenseRetriever, SearchSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.vectors.build import DenseOptions
    from citerec.papers.diagnostic.hatten.model import Hatten


class HattenSettings(SearchSettings):
    """How the vectors are searched. What is read of a topic is a matter of the model."""


class HattenRetriever(DenseRetriever):
    """Finds papers by the vectors of a HAtten model. Safe to call from several threads; ties are ordered by paper id.

    The topic's vector is made of the citing paper's title and abstract and the passage; a paper scores the cosine.
    """

    name = "hatten"
    label = "HAtten"
    Settings = HattenSettings

    @classmethod
    def encode(
        cls, index: Path, options: "DenseOptions", on_progress: Progress, parallelism: Parallelism = HERE
    ) -> str:
        """Makes the vectors of all papers with a model, whose folder the options name; errors as for `encode_index`.

        How many words are read is a matter of the model.

        Raises:
            SettingsError: Another backend than torch is asked for.
        """
        from citerec.index.build import encode_index

        if options.backend != "torch":
            raise SettingsError(f"{cls.name} cannot run on {options.backend}", "Leave -c backend out.")
        encode_index(index, options, on_progress, name=cls.name, open_encoder=_opened, parallelism=parallelism)
        return ""

    def open_encoder(self, manifest: DenseManifest) -> "Hatten":
        """Opens the model that the vectors are from."""
        return _opened(manifest)

    def prepare(self, topics: Sequence[Topic]) -> "NDArray[np.float32]":  # type: ignore[override]
        """The vectors of some topics, (topics, dimension); errors as for `DenseRetriever.prepare`."""
        vectors: NDArray[np.float32] = self.encoder().encode_topics(topics)
        return vectors


def _opened(named: "DenseOptions | DenseManifest") -> "Hatten":
    """The model that options or a manifest name."""
    from citerec.papers.diagnostic.hatten.model import Hatten

    return Hatten.open(named.model)
