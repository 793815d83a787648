"""What headings say of their sections."""

import re

_RELATED_WORK = re.compile(
    r"related\s+(?:work|literature|research|studies)|(?:literature|previous|prior)\s+(?:review|work|research|studies)"
    r"|review\s+of\s+(?:the\s+)?literature|state[\s-]of[\s-]the[\s-]art",
    re.IGNORECASE,
)
_BACKGROUND = re.compile(r"[\W\d]*background\W*", re.IGNORECASE)
_INTRODUCTION = re.compile(r"\bintroduction\b", re.IGNORECASE)


def is_related_work(heading: str | None, *, with_introduction: bool = False) -> bool:
    """Whether a heading is that of a section of related work (OARelatedWork, Docekal et al. 2024, section 2.2).

    Args:
        heading: The heading; None where the section has none.
        with_introduction: Whether the text has a section of introduction too: then "Background" is one.
    """
    if not heading:
        return False
    return bool(_RELATED_WORK.search(heading)) or (with_introduction and bool(_BACKGROUND.fullmatch(heading)))


def is_introduction(heading: str | None) -> bool:
    """Whether a heading is that of an introduction."""
    return bool(heading and _INTRODUCTION.search(heading))
