"""Why the paper is cited; medium sentences with the marker at their end (Maharjan 3.1.3)."""

from citerec.diagnostics.families.base import Facts, Family
from citerec.diagnostics.families.measures import AT_END, MEDIUM
from citerec.diagnostics.strata import strata


def _class_of(facts: Facts) -> str | None:
    intent = (facts.context.intent or "").casefold()
    return next((name for name, spellings in strata().intent.items() if intent in spellings), None)


INTENT = Family(
    name="intent",
    title="Intent of the citation",
    classes=lambda _: tuple(strata().intent),
    class_of=_class_of,
    conditions=(MEDIUM, AT_END),
    sampled=True,
)
