"""What became of every context: a view of arrays, made into records as they are looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy.typing as npt

from citerec.evaluation.results import Outcome
from citerec.records import Context


@dataclass(frozen=True, slots=True)
class Outcomes(Sequence[Outcome]):
    """The contexts that counted, with where each system ranked the papers that they cite.

    A hundred thousand records of several systems take seconds to make: most readers want a few, or none.

    Attributes:
        contexts: All contexts asked.
        counted: Numbers of those that counted.
        clusters: Number of the citing paper of each context.
        outside: Whether none of a context's cited papers is in the index.
        gold: By system the ranks of the cited papers, contexts × slots.
        scores: By system contexts × metrics.
        metrics: Names of the metrics.
        families: Names of the families whose labels matter.
    """

    contexts: Sequence[Context]
    counted: npt.NDArray[Any]
    clusters: npt.NDArray[Any]
    outside: npt.NDArray[Any]
    gold: Mapping[str, npt.NDArray[Any]]
    scores: Mapping[str, npt.NDArray[Any]]
    metrics: Sequence[str]
    families: frozenset[str]

    def __len__(self) -> int:
        return len(self.counted)

    @overload
    def __getitem__(self, index: int) -> Outcome: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Outcome]: ...
    def __getitem__(self, index: int | slice) -> Outcome | Sequence[Outcome]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        row = int(self.counted[index])
        context = self.contexts[row]
        cited = len(context.cited_ids)
        return Outcome(
            context_id=context.context_id,
            text=context.text,
            labels={name: label for name, label in context.labels.items() if name in self.families},
            citing=int(self.clusters[row]),
            in_index=not self.outside[row],
            cited=list(context.cited_ids),
            ranks={name: ranks[row, :cited].tolist() for name, ranks in self.gold.items()},
            scores={
                name: dict(zip(self.metrics, values[row].tolist(), strict=True)) for name, values in self.scores.items()
            },
        )
