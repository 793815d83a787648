"""Names of people: their parts and their order."""

import re
from typing import NamedTuple

_SUFFIX = re.compile(r"(?:jr|sr)\.?|II|III|IV", re.IGNORECASE)


class Name(NamedTuple):
    """The parts of a person's name."""

    given: str
    family: str
    suffix: str


def given_first(name: str) -> str:
    """A name "Family, Given, Suffix" with the given name first."""
    family, *others = (part.strip() for part in name.split(","))
    return " ".join(filter(None, [*others[:1], family, *others[1:]]))


def parts_of(name: str) -> Name:
    """The parts of a name with the given name first. A particle in lower case, such as "de la", begins the family name.

    Joined by spaces, the parts are the name again.
    """
    words = name.split()
    suffix = words.pop() if len(words) > 2 and _SUFFIX.fullmatch(words[-1]) else ""
    particle = next((place for place, word in enumerate(words[:-1]) if word[:1].islower()), len(words) - 1)
    begins = max(particle, 0)
    return Name(" ".join(words[:begins]), " ".join(words[begins:]), suffix)
