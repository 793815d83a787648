"""Length of the sentence and place of the marker: two families, and the conditions of the others."""

from citerec.diagnostics.families.base import Condition, Facts
from citerec.diagnostics.strata import strata


def length_class(facts: Facts) -> str | None:
    """Short, medium or long, by mean ± standard deviation; None for outliers and for a marker alone. Maharjan 3.1.1."""
    bounds, length = facts.bounds.length, facts.sentence.length
    if bounds is None or length == 1 or not bounds.shortest <= length <= bounds.longest:
        return None
    return "short" if length < bounds.low else "long" if length > bounds.high else "medium"


def location_class(facts: Facts) -> str:
    """First, middle or last third: place of the marker among the words ÷ their number. Maharjan 3.1.2."""
    rules, place = strata().location, facts.sentence.position / facts.sentence.length
    return "first" if place <= rules.first_until else "middle" if place <= rules.middle_until else "last"


# What families hold constant: Maharjan 3.2.2, step 5.
MEDIUM = Condition("the sentence is of medium length", lambda facts: length_class(facts) == "medium")
MIDDLE = Condition("the marker stands in the middle third", lambda facts: location_class(facts) == "middle")
AT_END = Condition(
    "the marker is the last word", lambda facts: facts.sentence.marker_ends_it and location_class(facts) == "last"
)
