"""Names of authors in the form of citations."""

from collections.abc import Sequence

_SUFFIXES = {"jr", "jr.", "sr", "sr.", "ii", "iii", "iv"}
_PARTICLES = {"de", "la", "van", "von", "der", "den", "del", "di", "da", "dos", "du", "le", "el", "al", "bin", "ten"}


def surnames(authors: Sequence[str]) -> str:
    """Surnames in the form of a citation: "Salton and Buckley", "Salton et al."; empty without an author."""
    names = [surname(author) for author in authors if author.split()]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)


def surname(author: str) -> str:
    """The surname in a name: "de la Cruz" of "Ana de la Cruz", "Wang" of "Wang, Li", "Cummins" of "R. Cummins Jr."."""
    before, comma, after = author.partition(",")
    if comma and before.split() and after.strip().lower() not in _SUFFIXES:
        return " ".join(before.split())
    words = before.split() if comma and before.split() else author.split()
    while len(words) > 1 and words[-1].lower() in _SUFFIXES:
        words = words[:-1]
    first = len(words) - 1
    while first > 0 and words[first - 1] in _PARTICLES:
        first -= 1
    return " ".join(words[first:])
