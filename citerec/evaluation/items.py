"""The contexts or tasks of an evaluation, each with its scores, in columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import numpy.typing as npt

from citerec.evaluation.statistics import Floats

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Item:
    """One context or task with the scores of each system.

    Attributes:
        context_id: The id; of a task with several data sets its data set is a label.
        text: The sentence of a context.
        labels: The class by family.
        citing: Number of the citing paper; items of one paper have one number.
        in_index: Whether a paper that a context cites is in the index.
        cited: Ids of the papers that a context cites.
        ranks: Ranks of those papers by system; 0 for not found.
        scores: By system and column; NaN where a value is not defined.
    """

    context_id: str
    text: str
    labels: Mapping[str, str]
    citing: int
    in_index: bool
    cited: Sequence[str]
    ranks: Mapping[str, Sequence[int]]
    scores: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Items(Sequence[Item]):
    """The contexts or tasks that counted, in columns; an `Item` is made when it is accessed.

    Making a hundred thousand items takes seconds, and most readers need few or none. Tasks have no texts, cited papers,
    `in_index` or ranks.

    Attributes:
        scores: By system, items × columns.
        columns: Names of the columns.
        ranks: By system, contexts × most papers cited in one; unused slots hold -1.
    """

    ids: Sequence[str] = ()
    labels: Sequence[Mapping[str, str]] = ()
    citing: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    scores: Mapping[str, Floats] = field(default_factory=dict)
    columns: Sequence[str] = ()
    texts: Sequence[str] = ()
    cited: Sequence[Sequence[str]] = ()
    in_index: Sequence[bool] = ()
    ranks: Mapping[str, Ints] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Sequence[Item], systems: Sequence[str], columns: Sequence[str]) -> "Items":
        """Records as columns."""
        most = max((len(item.cited) for item in items), default=0)
        scores = {name: [[item.scores[name][column] for column in columns] for item in items] for name in systems}
        ranks = {name: [[*item.ranks[name], *[-1] * (most - len(item.cited))] for item in items] for name in systems}
        return cls(
            ids=[item.context_id for item in items],
            labels=[item.labels for item in items],
            citing=np.array([item.citing for item in items], np.int32),
            scores={name: np.array(rows, np.float64) for name, rows in scores.items()},
            columns=columns,
            texts=[item.text for item in items],
            cited=[item.cited for item in items],
            in_index=[item.in_index for item in items],
            ranks={name: np.array(rows, np.int32) for name, rows in ranks.items()},
        )

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        cited = list(self.cited[index]) if self.cited else []
        scores = {name: values[index].tolist() for name, values in self.scores.items()}
        return Item(
            context_id=self.ids[index],
            text=self.texts[index] if self.texts else "",
            labels=self.labels[index],
            citing=int(self.citing[index]),
            in_index=not self.in_index or bool(self.in_index[index]),
            cited=cited,
            ranks={name: ranks[index, : len(cited)].tolist() for name, ranks in self.ranks.items()},
            scores={name: dict(zip(self.columns, values, strict=True)) for name, values in scores.items()},
        )
