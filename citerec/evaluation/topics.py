"""The topics that every system answers, with the numbers of their citing papers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from citerec.contexts.topic import Topic, topics_of
from citerec.corpus.store import PaperStore
from citerec.errors import InputError
from citerec.records import Context

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of an evaluation, in order.

    Attributes:
        topics: The topics.
        numbers: Number of each topic by the id of its context; -1 for contexts of the same file that are not evaluated,
            so that a run over the whole file can be read.
        clusters: Number of the citing paper of each topic.
    """

    topics: tuple[Topic, ...]
    numbers: Mapping[str, int]
    clusters: Ints = field(init=False)

    def __post_init__(self) -> None:
        numbers: dict[tuple[str, str], int] = {}
        clusters = []
        for topic in self.topics:
            one = replace(topic.context, citing_id=topic.citing_id)
            kind = next((kind for kind in ("citing_id", "citing_key") if getattr(one, kind)), "context_id")
            clusters.append(numbers.setdefault((kind, getattr(one, kind)), len(numbers)))
        object.__setattr__(self, "clusters", np.array(clusters, np.int32))

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Their contexts."""
        return tuple(topic.context for topic in self.topics)

    def __len__(self) -> int:
        return len(self.topics)


def select_topics(contexts: Sequence[Context], store: PaperStore, left_out: Collection[str] = frozenset()) -> Topics:
    """The topics of contexts, except those left out by id.

    Raises:
        InputError: No context is left.
    """
    chosen = [context for context in contexts if context.context_id not in left_out]
    if not chosen:
        raise InputError("there is no context", "Give at least one, or the name of a diagnostic set.")
    numbers = dict.fromkeys((context.context_id for context in contexts), -1)
    numbers.update((context.context_id, number) for number, context in enumerate(chosen))
    return Topics(tuple(topics_of(chosen, store)), numbers)
