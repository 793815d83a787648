"""Contexts that a measured system learnt from or was tuned on: results on them say little about new contexts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.contexts.learnt import Learnt, digests_of
from citerec.records import Context


@dataclass(frozen=True, slots=True)
class Overlap:
    """Contexts whose sentence or citing paper was among those that systems learnt from or were tuned on.

    Attributes:
        learnt_from: By system, which contexts it learnt from, (contexts,).
        tuned_on: By system, which others it was tuned on, (contexts,).
        unsaid: By system, the parts that do not say what they learnt from.
    """

    learnt_from: Mapping[str, npt.NDArray[np.bool_]]
    tuned_on: Mapping[str, npt.NDArray[np.bool_]]
    unsaid: Mapping[str, tuple[str, ...]]

    @property
    def any(self) -> npt.NDArray[np.bool_]:
        """Which contexts at least one system learnt from or was tuned on, (contexts,)."""
        seen: npt.NDArray[np.bool_] = np.any([*self.learnt_from.values(), *self.tuned_on.values()], axis=0)
        return seen

    def facts(self, *, left_out: bool) -> dict[str, Any]:
        """The overlap as JSON for results, and whether these contexts were left out."""
        return {
            "contexts": int(self.any.sum()),
            "left_out": left_out,
            "systems": {
                name: {
                    "learnt_from": int(self.learnt_from[name].sum()),
                    "tuned_on": int(self.tuned_on[name].sum()),
                    "unsaid": list(self.unsaid[name]),
                }
                for name in self.learnt_from
            },
        }

    def notes(self, *, left_out: bool) -> list[str]:
        """The overlap in words."""
        found = []
        if number := int(self.any.sum()):
            who = "; ".join(filter(None, map(self._said, self.learnt_from)))
            of_all = f"{number:,} of {len(self.any):,} contexts, by sentence or by citing paper, served in training"
            what = "They are measured all the same: figures on them say little about new contexts."
            if left_out:
                what = "They are left out for all systems (--include-training-contexts keeps them)."
            found.append(f"{of_all}: {who}. {what}")
        found += [
            f"{name}: {part} does not say what it learnt from, so it may have seen these contexts. Train it again."
            for name, parts in self.unsaid.items()
            for part in parts
        ]
        return found

    def _said(self, name: str) -> str:
        counts = {"learnt from": self.learnt_from[name].sum(), "was tuned on": self.tuned_on[name].sum()}
        parts = [f"{verb} {count:,}" for verb, count in counts.items() if count]
        return f"{name} {' and '.join(parts)}" if parts else ""


def find_overlap(contexts: Sequence[Context], learnt: Mapping[str, Learnt]) -> Overlap:
    """Finds the contexts that the systems, given by name, learnt from or were tuned on."""
    known = [digests_of(context) for context in contexts]

    def among(digests: frozenset[str]) -> npt.NDArray[np.bool_]:
        return np.array([not digests.isdisjoint(of_context) for of_context in known], bool)

    learnt_from = {name: among(one.learnt_from) for name, one in learnt.items()}
    return Overlap(
        learnt_from,
        {name: among(one.tuned_on) & ~learnt_from[name] for name, one in learnt.items()},
        {name: one.unsaid for name, one in learnt.items()},
    )
