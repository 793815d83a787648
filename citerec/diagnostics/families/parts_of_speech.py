"""Groups of Penn tags."""

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
