"""Place of the citation in the sentence; the sentence is of medium length."""

from citerec.diagnostics.families.base import FAMILIES, Family
from citerec.diagnostics.families.measures import MEDIUM, location_class

FAMILIES.register(
    Family(
        name="location",
        title="Place of the citation",
        classes=lambda _: ("first", "middle", "last"),
        class_of=location_class,
        conditions=(MEDIUM,),
        order=50,
        sampled=True,
    )
)
