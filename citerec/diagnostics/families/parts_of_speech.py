"""Part of speech of the word before or after the citation; medium sentences, marker in the middle (Maharjan 3.1.5)."""

import functools

from citerec.diagnostics.families.base import Facts, Family
from citerec.diagnostics.families.measures import MEDIUM, MIDDLE
from citerec.diagnostics.strata import strata

OTHERS = "others"


def part_of_speech(tag: str | None) -> str | None:
    """The group of a Penn tag (Maharjan 3.1.5); None for no tag."""
    if not tag:
        return None
    return next((name for name, tags in strata().part_of_speech.items() if tag in tags), OTHERS)


def parts_of_speech() -> tuple[str, ...]:
    """All groups, in order."""
    return (*strata().part_of_speech, OTHERS)


def _class_of(side: str, facts: Facts) -> str | None:
    return part_of_speech(getattr(facts.sentence, f"tag_{side}"))


POS_BEFORE, POS_AFTER = (
    Family(
        name=f"pos_{side}",
        title=f"Part of speech {side} the citation",
        classes=lambda _: parts_of_speech(),
        class_of=functools.partial(_class_of, side),
        conditions=(MEDIUM, MIDDLE),
        needs_tagger=True,
        sampled=True,
    )
    for side in ("before", "after")
)
