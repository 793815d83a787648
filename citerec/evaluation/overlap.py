"""Contexts that a measured system learnt from or was tuned on: results on them say little about new contexts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.contexts.learnt import Learnt, digests_of
from citerec.evaluation.record import TrainingOverlap
from citerec.records import Context


@dataclass(frozen=True, slots=True)
class Overlap:
    """Contexts whose sentence or citing paper was among those that systems learnt from or were tuned on.

    Attributes:
        any: Which contexts at least one system learnt from or was tuned on, (contexts,).
        systems: By system, how many contexts it `learnt_from`, how many others it was `tuned_on`, and the parts of it
            that do not say (`unsaid`).
    """

    any: npt.NDArray[np.bool_]
    systems: dict[str, dict[str, Any]]

    def facts(self, *, left_out: bool) -> TrainingOverlap:
        """The overlap for the run record, and whether these contexts were left out."""
        return TrainingOverlap(contexts=int(self.any.sum()), left_out=left_out, systems=self.systems)

    def notes(self, *, left_out: bool) -> list[str]:
        """The overlap in words."""
        notes = []
        if number := int(self.any.sum()):
            who = "; ".join(
                f"{name} learnt from {one['learnt_from']:,} and was tuned on {one['tuned_on']:,}"
                for name, one in self.systems.items()
                if one["learnt_from"] or one["tuned_on"]
            )
            what = "They are measured all the same: figures on them say little about new contexts."
            if left_out:
                what = "They are left out for all systems (--include-training-contexts keeps them)."
            of_all = f"{number:,} of {len(self.any):,} contexts, by sentence or by citing paper, served in training"
            notes.append(f"{of_all}: {who}. {what}")
        for name, one in self.systems.items():
            if one["unsaid"]:
                seen = "do not say what they learnt from, so they may have seen these contexts. Train them again."
                notes.append(f"{name}: parts ({', '.join(one['unsaid'])}) {seen}")
        return notes


def find_overlap(contexts: Sequence[Context], learnt: Mapping[str, Learnt]) -> Overlap:
    """Finds the contexts that the systems, given by name, learnt from or were tuned on."""
    digests = [digests_of(context) for context in contexts]

    def among(some: frozenset[str]) -> npt.NDArray[np.bool_]:
        return np.array([not some.isdisjoint(of_context) for of_context in digests], bool)

    seen, systems = np.zeros(len(contexts), bool), {}
    for name, one in learnt.items():
        learnt_from, tuned_on = among(one.learnt_from), among(one.tuned_on)
        seen |= learnt_from | tuned_on
        numbers = {"learnt_from": int(learnt_from.sum()), "tuned_on": int((tuned_on & ~learnt_from).sum())}
        systems[name] = {**numbers, "unsaid": [*one.unsaid]}
    return Overlap(seen, systems)
