"""What headlines say of their sections."""

import re

_NUMBER = r"(?:(?:\d+|[IVXivx]+|[A-Z])(?:\.\d+)*[.)]?\s+)?"
_NAMED = (
    r"related\s+(?:works?|literature|research|studies)|(?:previous|prior|earlier)\s+(?:works?|research|studies)"
    r"|literature\s+(?:review|survey|overview)|(?:review|survey)\s+of\s+(?:the\s+)?(?:related\s+)?literature"
)
_BACKGROUND = r"backgrounds?"
_RELATED_WORK = re.compile(
    rf"{_NUMBER}(?:the\s+)?(?P<first>{_NAMED}|{_BACKGROUND})(?:\s*(?:and|&|,|/)\s*(?P<second>{_NAMED}|{_BACKGROUND}))?"
    r"[\s.:]*",
    re.IGNORECASE,
)
_INTRODUCTION = re.compile(rf"{_NUMBER}introduction[\s.:]*", re.IGNORECASE)


def is_related_work(headline: str | None, *, introduced: bool = False) -> bool:
    """Whether a section is one of related work (OARelatedWork, Docekal et al. 2024, section 2.2).

    Args:
        headline: Its headline, with its number or without; None where it has none.
        introduced: Whether another section is the Introduction: then "Background" is one too.
    """
    found = _RELATED_WORK.fullmatch(headline.strip()) if headline else None
    if found is None:
        return False
    kinds = [kind.lower() for kind in (found["first"], found["second"]) if kind]
    return introduced or any(not re.fullmatch(_BACKGROUND, kind) for kind in kinds)


def is_introduction(headline: str | None) -> bool:
    """Whether a section is the Introduction."""
    return bool(headline and _INTRODUCTION.fullmatch(headline.strip()))
