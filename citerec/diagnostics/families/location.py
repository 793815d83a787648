"""Place of the citation in the sentence; the sentence is of medium length."""

from citerec.diagnostics.families.base import Family
from citerec.diagnostics.families.measures import MEDIUM, location_class

LOCATION = Family(
    name="location",
    title="Place of the citation",
    classes=lambda _: ("first", "middle", "last"),
    class_of=location_class,
    conditions=(MEDIUM,),
    sampled=True,
)
