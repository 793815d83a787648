"""Searches as if nobody had cited some papers: rankers learn from them what to do with papers without citances."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from citerec.contexts.topic import Topic
from citerec.files.hashing import hash_sample
from citerec.index.candidates import Candidates
from citerec.records import NO_FILTERS, Filters
from citerec.retrieve.base import Retriever
from citerec.retrieve.words import WordsRetriever

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.candidates import Rows
    from citerec.index.opened import OpenIndex

_MIX = 0x9E3779B97F4A7C15  # of splitmix64: rows that differ by one get unlike numbers


class WithheldCitances(Retriever):
    """A retriever of words whose citing sentences are withheld for a share of the papers, other ones for each context.

    Args:
        retriever: The retriever; it gives the signals `bm25` and `citance`.
        share: The share of the papers.
        seed: Seed of the choice.
    """

    name = WordsRetriever.name
    label = WordsRetriever.label
    filters_itself = True

    @classmethod
    def open(cls, index: "OpenIndex", settings: Any) -> Self:
        """Opens the retriever of words of an index, without the citing sentences of half of the papers."""
        return cls(WordsRetriever.open(index, settings))

    def __init__(self, retriever: Retriever, share: float = 0.5, seed: int = 0) -> None:
        self._retriever, self._share, self._seed = retriever, share, seed

    def prepare(self, topics: Sequence[Topic]) -> Sequence[Any]:
        """As the retriever does."""
        return self._retriever.prepare(topics)

    def search(self, topic: Topic, k: int, filters: Filters = NO_FILTERS, prepared: Any = None) -> Candidates:
        """The candidates of the retriever, without what is withheld."""
        import numpy as np

        found = self._retriever.search(topic, k, filters, prepared)
        assert isinstance(found, Candidates)
        if "citance" not in found.signals:
            return found
        without = hidden(topic, found.rows, self._share, self._seed)
        words = found.signals["bm25"]
        known = replace(
            found,
            scores=np.where(without, words, found.scores),
            signals={
                name: np.where(without, np.nan, values) if name.startswith("citance") else values
                for name, values in found.signals.items()
            },
            citances=tuple(replace(one, keys=np.where(without, -1, one.keys)) for one in found.citances),
        )
        return known.taken(np.flatnonzero(~np.isnan(known.scores))).in_order()


def hidden(topic: Topic, rows: "Rows", share: float, seed: int) -> "NDArray[np.bool_]":
    """For which papers the citing sentences are withheld from a context, (rows,)."""
    import numpy as np

    number = np.uint64(hash_sample(seed, topic.context.context_id))
    with np.errstate(over="ignore"):
        mixed = (rows.astype(np.uint64) + number) * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(_MIX)
    return (mixed >> np.uint64(32)).astype(np.float64) < share * 2.0**32
