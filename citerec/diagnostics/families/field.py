"""Field of study of the cited paper, if it is a large field."""

from citerec.diagnostics.bounds import Bounds
from citerec.diagnostics.families.base import Facts, Family, agreed


def first_field(facts: Facts) -> str | None:
    """The field named first: the one under which a paper is counted. None if the cited papers differ."""
    return agreed(paper.fields_of_study[0] if paper.fields_of_study else None for paper in facts.papers)


def _classes(bounds: Bounds) -> tuple[str, ...]:
    return bounds.field.fields if bounds.field else ()


def _class_of(facts: Facts) -> str | None:
    field = first_field(facts)
    return field if field in _classes(facts.bounds) else None


FIELD = Family(
    name="field",
    title="Field of study",
    classes=_classes,
    class_of=_class_of,
    counts_words=False,
)
