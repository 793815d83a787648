"""Headlines and sections: their numbers, and what they are about."""

import re
from dataclasses import dataclass, field

_PART = r"(?:\d{1,2}|[IVX]{1,7}|[A-Z])"
_DEEPER = r"(?:\.\d{1,2})*+(?:\.[A-Z](?![\w.]))?"
# A number ends in white space; after a full stop a word may follow at once: "2.Related Work".
_NUMBER = re.compile(
    rf"\s*(?:(?P<spaced>{_PART}{_DEEPER})[.):]?(?=\s|$)|(?P<lower>[ivx]{{1,7}})[.):](?=\s|$)"
    rf"|(?P<glued>(?:\d{{1,2}}|[IVX]{{2,7}}){_DEEPER})[.):](?=[A-Za-z]{{3}})"
    rf"|(?P<letter>[A-Z]{_DEEPER})[.):](?=[A-Z][A-Za-z]{{2}}))\s*"  # not E.coli
)
_NAMED = (
    r"related\s+(?:works?|literature|research|studies)|(?:previous|prior|earlier)\s+(?:works?|research|studies)"
    r"|theoretical\s+backgrounds?|literature\s+(?:review|survey|overview)|(?:review|survey)\s+of\s+(?:the\s+)?(?:related\s+)?literature"
)
_BACKGROUND = r"backgrounds?"
_RELATED_WORK = re.compile(
    rf"(?:(?:the|an?)\s+)?(?P<first>{_NAMED}|{_BACKGROUND})(?:\s*(?:and|&|,|/)\s*(?P<second>{_NAMED}|{_BACKGROUND}))?[\s.:]*",
    re.IGNORECASE,
)
_ABSTRACT = re.compile(r"\W*abstract\W*", re.IGNORECASE)
_INTRODUCTION = re.compile(r"introduction[\s.:]*", re.IGNORECASE)


def split_number(headline: str) -> tuple[str, str]:
    """The number of a headline as it is printed, without the stop after it, and the rest; an empty number if none.

    A lone A or I without a stop is a word: "A Survey".
    """
    match = _NUMBER.match(headline)
    if match is None or not (rest := headline[match.end() :]) or match.group().strip() in ("A", "I"):
        return "", headline
    return match[match.lastgroup or 0], rest


def is_related_work(headline: str | None, *, introduced: bool = False) -> bool:
    """Whether a section is about related work (OARelatedWork, Docekal et al. 2024, section 2.2).

    Args:
        headline: Its headline, with its number or without; None if it has none.
        introduced: Whether another section is the Introduction: then "Background" is one too.
    """
    match = _RELATED_WORK.fullmatch(_named(headline))
    is_more = match and not all(re.fullmatch(_BACKGROUND, kind.lower()) for kind in match.groups() if kind)
    return bool(match and (introduced or is_more))


def is_abstract(headline: str | None) -> bool:
    """Whether a section is the abstract."""
    return bool(_ABSTRACT.fullmatch(headline or ""))


def is_introduction(headline: str | None) -> bool:
    """Whether a section is the Introduction."""
    return bool(_INTRODUCTION.fullmatch(_named(headline)))


def _named(headline: str | None) -> str:
    return split_number((headline or "").strip())[1]


@dataclass(slots=True)
class Section:
    """A section: its headline without its number, its number as printed ("2.1", or empty), its paragraphs, in order.

    Paragraphs are positions in the text, without those of subsections.
    """

    headline: str
    number: str = ""
    paragraphs: list[int] = field(default_factory=list)
    sections: list["Section"] = field(default_factory=list)

    def all_paragraphs(self) -> list[int]:
        """Its paragraphs and those of all its subsections, in order."""
        return [*self.paragraphs, *(place for section in self.sections for place in section.all_paragraphs())]


def with_number(headline: str, number: str | None = None) -> Section:
    """A section from a headline, with its number split off, or with the number that the source gives separately."""
    headline = " ".join(headline.split())
    number = " ".join((number or "").split()).rstrip(".):")
    if number and re.match(rf"{re.escape(number)}(?![^\W_])", headline):
        headline = headline[len(number) :].lstrip(".): ")
    elif not number:
        number, headline = split_number(headline)
    return Section(headline, number)
