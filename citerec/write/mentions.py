"""Citations in predictions, in any style: by number, by name and year, or unreadable."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from citerec.contexts.callouts import ALL_STYLES, Spans, Style, find_callouts
from citerec.files.text import replaced
from citerec.write.anchors import Anchor, anchors_of, cited_in
from citerec.write.names import surname
from citerec.write.tasks import Source

# A raised number is no citation in plain text.
_STYLES = ALL_STYLES - {Style.SUPERSCRIPT, Style.MANGLED}
_BY_NAME = {Style.AUTHOR_YEAR_PARENTHESES, Style.AUTHOR_YEAR_TEXT}
# LaTeX, pandoc, and anything with a number in brackets, except intervals of decimals.
_UNREADABLE = re.compile(
    r"\\cite\w*\{[^{}]*\}|\[@[^\[\]]*\]|[\[【](?![^\[\]【】]*\d\.\d)(?=[^\[\]【】\d]*+\d)[^\[\]【】]*+[\]】]"
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A place at which a text cites, from `start` to before `end`.

    Attributes:
        sources: Numbers of the sources that it cites.
        unknown: Its citations of no source, as printed.
        shown: The mention for display: unknown citations are marked, as in `[0, ?7]`.
    """

    start: int
    end: int
    sources: tuple[int, ...]
    unknown: tuple[str, ...]
    shown: str


def mentions(text: str, sources: Sequence[Source]) -> list[Mention]:
    """The places at which a text cites, in order.

    A name with a year cites the sources of which it names an author, or no source if there is none.
    """
    found = [_by_anchor(text, anchor, sources) for anchor in anchors_of(text)]
    callouts = [(one.start, one.end, one.style in _BY_NAME) for one in find_callouts(text, believed=_STYLES)]
    unreadable = [(*one.span(), False) for one in _UNREADABLE.finditer(text)]
    for places in (callouts, unreadable):  # none overlaps another of its kind
        taken = Spans((mention.start, mention.end) for mention in found)
        for start, end, by_name in places:
            if not taken(start, end):
                printed = text[start:end]
                named = _authored(printed, sources) if by_name else ()
                shown = printed if named else as_unknown(printed)
                found.append(Mention(start, end, named, () if named else (printed,), shown))
    return sorted(found, key=lambda mention: mention.start)


def rewritten(text: str, found: Iterable[Mention], shown: Callable[[Mention], str]) -> str:
    """A text with each of its mentions, in order, replaced."""
    return replaced(text, ((mention.start, mention.end, shown(mention)) for mention in found))


def as_unknown(printed: str) -> str:
    """How to show a citation of no source."""
    inside = printed[1:-1] if printed[0] in "([【" and printed[-1] in ")]】" else printed
    return f"[?{inside}]"


def _by_anchor(text: str, anchor: Anchor, sources: Sequence[Source]) -> Mention:
    printed = text[anchor.start : anchor.end]
    cited = cited_in(printed, sources)
    unknown = tuple(sorted(cited.outside))
    if not cited.sources and not unknown and anchor.title:
        unknown = (anchor.title,)
    if not unknown:
        shown = printed
    elif anchor.numbers:
        known = [str(number) for number in anchor.numbers if number < len(sources)]
        listed = ", ".join([*known, *("?" + name.strip("[]") for name in unknown)])
        shown = f"[{listed}]"
    else:
        shown = f"[?{', ?'.join(unknown)}]"
    return Mention(anchor.start, anchor.end, tuple(sorted(cited.sources)), unknown, shown)


def _authored(printed: str, sources: Sequence[Source]) -> tuple[int, ...]:
    words = set(_words(printed))
    return tuple(
        number
        for number, source in enumerate(sources)
        if any(words.issuperset(_words(surname(author))) for author in source.authors if _words(author))
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
