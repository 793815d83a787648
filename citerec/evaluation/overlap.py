"""Contexts that a measured system learnt from or was tuned on: results on them say little about new contexts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.contexts.learnt import Learnt, digests_of
from citerec.evaluation.record import TrainingOverlap
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

    def facts(self, *, left_out: bool) -> TrainingOverlap:
        """The overlap for the run record, and whether these contexts were left out."""
        systems = {
            name: {
                "learnt_from": int(seen.sum()),
                "tuned_on": int(self.tuned_on[name].sum()),
                "unsaid": [*self.unsaid[name]],
            }
            for name, seen in self.learnt_from.items()
        }
        return TrainingOverlap(contexts=int(self.any.sum()), left_out=left_out, systems=systems)

    def notes(self, *, left_out: bool) -> list[str]:
        """The overlap in words."""
        found = []
        if number := int(self.any.sum()):
            counts = {
                name: {"learnt from": seen.sum(), "was tuned on": self.tuned_on[name].sum()}
                for name, seen in self.learnt_from.items()
            }
            said = {name: " and ".join(f"{verb} {n:,}" for verb, n in one.items() if n) for name, one in counts.items()}
            who = "; ".join(f"{name} {what}" for name, what in said.items() if what)
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
