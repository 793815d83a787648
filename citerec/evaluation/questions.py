"""What is asked of every system: contexts with the papers that they cite, in columns."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from citerec.errors import InputError
from citerec.records import Context

FAR_FUTURE = 9999
"""Citing year of a paper whose year is unknown: nothing is newer."""

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Questions:
    """The contexts that are asked, in order.

    Attributes:
        contexts: The contexts.
        numbers: Number of each context by its id. Contexts of the same file that are not asked stand at -1, so that a
            run over the whole file can be read.
        clusters: Number of the citing paper of each context, for what is drawn paper by paper.
        citing_years: Year of the citing paper, or FAR_FUTURE.
    """

    contexts: tuple[Context, ...]
    numbers: Mapping[str, int]
    clusters: Ints = field(init=False)
    citing_years: Ints = field(init=False)

    def __post_init__(self) -> None:
        citing = [
            ("id", context.citing_id)
            if context.citing_id
            else ("key", context.citing_key)
            if context.citing_key
            else ("context", context.context_id)
            for context in self.contexts
        ]
        numbers = {paper: number for number, paper in enumerate(dict.fromkeys(citing))}
        years = [context.citing_year or FAR_FUTURE for context in self.contexts]
        object.__setattr__(self, "clusters", np.array([numbers[paper] for paper in citing], np.int32))
        object.__setattr__(self, "citing_years", np.array(years, np.int32))

    def __len__(self) -> int:
        return len(self.contexts)


def ask(
    contexts: Sequence[Context], families: Sequence[str] = (), left_out: Collection[str] = frozenset()
) -> Questions:
    """The questions of some contexts: of those with a class in one of some families, or of all.

    Args:
        contexts: The contexts.
        families: The families; none for all contexts.
        left_out: Ids of contexts that are not asked.

    Raises:
        InputError: No context is left.
    """
    asked = tuple(
        context
        for context in contexts
        if context.context_id not in left_out and (not families or not context.labels.keys().isdisjoint(families))
    )
    if not asked:
        raise InputError(
            f"no context has a class of {', '.join(families)}" if families else "there is no context",
            "Choose another family, or other contexts: citerec diagnostics show NAME says what a set has.",
        )
    numbers = dict.fromkeys((context.context_id for context in contexts), -1)
    numbers.update((context.context_id, number) for number, context in enumerate(asked))
    return Questions(asked, numbers)
