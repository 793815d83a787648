"""Field of study of the cited paper, if the field has less than 3 % of the corpus (Maharjan 3.1.4)."""

from citerec.diagnostics.bounds import Bounds
from citerec.diagnostics.families.base import Facts, Family
from citerec.diagnostics.families.field import first_field
from citerec.diagnostics.families.measures import AT_END, MEDIUM


def _classes(bounds: Bounds) -> tuple[str, ...]:
    return bounds.field.low_resource if bounds.field else ()


def _class_of(facts: Facts) -> str | None:
    field = first_field(facts)
    return field if field in _classes(facts.bounds) else None


class _LowResource(Family):
    __slots__ = ()

    def classes_in(self, field: str, bounds: Bounds) -> tuple[str, ...]:
        """Its own class in a small field, none in others."""
        return (field,) if field in self.classes(bounds) else ()


LOW_RESOURCE = _LowResource(
    name="low_resource",
    title="Low-resource fields",
    classes=_classes,
    class_of=_class_of,
    conditions=(MEDIUM, AT_END),
    sampled=True,
)
