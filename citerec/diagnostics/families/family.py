"""What a family of strata is, and what it looks at."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from citerec.diagnostics.bounds import Bounds
from citerec.diagnostics.sentences import Sentence
from citerec.records import Context, Paper


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a class can depend on.

    Attributes:
        context: The context.
        sentence: Its sentence, in numbers.
        papers: The papers cited in it that the corpus has, in order.
        bounds: What the corpus at hand decides.
    """

    context: Context
    sentence: Sentence
    papers: tuple[Paper, ...]
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Condition:
    """What is held constant, so that only the family's own property varies."""

    name: str
    holds: Callable[[Facts], bool]


@dataclass(frozen=True, slots=True)
class Family:
    """A property of contexts, and the classes by which they differ in it.

    Attributes:
        name: As in `--diagnostic NAME`.
        title: As in a heading.
        classes: The classes in their order, given the bounds.
        class_of: The class of a context, or None where it has none.
        conditions: What is held constant.
        needs_tagger: Whether parts of speech must be known.
    """

    name: str
    title: str
    classes: Callable[[Bounds], tuple[str, ...]]
    class_of: Callable[[Facts], str | None]
    conditions: tuple[Condition, ...] = ()
    needs_tagger: bool = False

    def label(self, facts: Facts, *, conditions: bool = True) -> str | None:
        """The class of a context, None where it has none or, if asked for, where a condition does not hold."""
        if conditions and not all(condition.holds(facts) for condition in self.conditions):
            return None
        return self.class_of(facts)


def agreed(classes: Iterable[str | None]) -> str | None:
    """The class that all papers of a group share; None where they differ, or there is none."""
    found = set(classes)
    return found.pop() if len(found) == 1 else None
