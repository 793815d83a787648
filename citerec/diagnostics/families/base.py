"""Families of strata: their definition, their input, and their registry."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from citerec.diagnostics.bounds import Bounds
from citerec.diagnostics.sentences import Sentence
from citerec.files.registry import Registry
from citerec.records import Context, Paper


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a class can depend on.

    Attributes:
        context: The context.
        sentence: Its words; `NOT_READ` if no family counts them.
        papers: The cited papers that the corpus has, in order.
        bounds: The bounds of the classes.
        citing_sentences: For each of the papers, how many sentences of the index cite it that the leak rules let the
            context know; None if the index has none at all.
    """

    context: Context
    sentence: Sentence
    papers: tuple[Paper, ...]
    bounds: Bounds
    citing_sentences: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that is held constant, so that only the family's own property varies."""

    name: str
    holds: Callable[[Facts], bool]


@dataclass(frozen=True, slots=True)
class Family:
    """A property of contexts, and the classes by which they differ in it.

    A family stands in the table `FAMILIES`, or is an entry point of the group `citerec.families`.

    Attributes:
        name: The name for `--diagnostic NAME`.
        title: The title for headings.
        classes: The classes in their order, given the bounds.
        class_of: The class of a context, or None if it has none.
        conditions: The conditions that are held constant.
        counts_words: Whether the class or a condition depends on the words of the sentence. If no family asks for them,
            the sentence is not read, and spaCy is not imported.
        needs_tagger: Whether parts of speech must be known.
        sampled: Whether `diagnostics build` chooses contexts for each of its classes, so that it has a quota. By any
            other family it labels the contexts that it chose in large fields.
        on_the_spot: Whether the class depends on the index that is searched, or on the draft: `citerec eval` finds it,
            for sets too, and sets do not keep it.
    """

    name: str
    title: str
    classes: Callable[[Bounds], tuple[str, ...]]
    class_of: Callable[[Facts], str | None]
    conditions: tuple[Condition, ...] = ()
    counts_words: bool = True
    needs_tagger: bool = False
    sampled: bool = False
    on_the_spot: bool = False

    @property
    def condition_names(self) -> tuple[str, ...]:
        """The conditions in words."""
        return tuple(condition.name for condition in self.conditions)

    def classes_in(self, field: str, bounds: Bounds) -> tuple[str, ...]:
        """The classes for which contexts are chosen in a field of study: all of them if the field is large."""
        return self.classes(bounds) if bounds.field and field in bounds.field.fields else ()

    def label(self, facts: Facts, *, conditions: bool = True) -> str | None:
        """The class of a context, None if it has none or, with `conditions`, if a condition does not hold."""
        if conditions and not all(condition.holds(facts) for condition in self.conditions):
            return None
        return self.class_of(facts)


def agreed(classes: Iterable[str | None]) -> str | None:
    """The class that all papers of a group share; None if they differ, or if there is none."""
    found = set(classes)
    return found.pop() if len(found) == 1 else None


_BUILT_IN = (
    *("field", "year", "citation_count", "length", "location", "intent"),
    *("pos_before", "pos_after", "low_resource", "cited_before", "cold_start"),
)
FAMILIES: Registry[Family] = Registry(
    "family",
    {name: f"citerec.diagnostics.families.built_in:{name.upper()}" for name in _BUILT_IN},
    plural="families",
)


def families_named(names: Sequence[str] = ()) -> tuple[Family, ...]:
    """Families by name, in their order; all of them if none is named.

    Raises:
        InputError: A name is unknown.
    """
    wanted = {FAMILIES[name].name for name in names}
    return tuple(family for name, family in FAMILIES.items() if not names or name in wanted)


def title_of(name: str) -> str:
    """The title of a family; its name if its package is no longer installed."""
    return FAMILIES[name].title if name in FAMILIES else name


def sampled_families() -> tuple[str, ...]:
    """The names of the families for which `diagnostics build` chooses contexts, in their order."""
    return tuple(family.name for family in families_named() if family.sampled)
