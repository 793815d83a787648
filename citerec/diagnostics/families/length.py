"""Length of the sentence in words; the marker is at its end."""

from citerec.diagnostics.families.base import Family
from citerec.diagnostics.families.measures import AT_END, length_class

LENGTH = Family(
    name="length",
    title="Length of the sentence",
    classes=lambda _: ("short", "medium", "long"),
    class_of=length_class,
    conditions=(AT_END,),
    sampled=True,
)
