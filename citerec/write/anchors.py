"""Citations in predictions: anchors such as `[0]`, `[1, 2]`, `<cite> ID <sep> TITLE … </cite>`, or in any style.

CiteBench numbers the cited papers of a text and writes `#OTHEREFR` for those outside its input (Funkquist et al. 2023,
appendix A.1); OARelatedWork spells them out between tags (Docekal et al. 2024, section 4); CiteSum writes `REF`.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from citerec.contexts.callouts import ALL_STYLES, Spans, Style, find_callouts
from citerec.files.text import replaced
from citerec.write.tasks import Source

_NUMBER = r"[0-9]{1,4}"
_NUMBERS = rf"{_NUMBER}(?:\s*[-–]\s*{_NUMBER})?"
_ANCHOR = re.compile(
    rf"\[\s*(?P<numbers>{_NUMBERS}(?:\s*[,;]\s*{_NUMBERS})*)\s*\]"
    r"|<cite>(?P<span>(?:(?!</?cite>).)*)</cite>"
    r"|(?P<open></?cite>|\#OTHEREFR\b|<REF>|\bREF\b)",
    re.DOTALL,
)
_SPAN = re.compile(r"<(cite|ref)>(?:(?!</?\1>).)*</\1>", re.DOTALL)
_WIDEST = 100  # numbers in a range: reviews cite some dozens of papers in a row, but [1-9999] would be far too many
UNKNOWN = "UNK"
"""Stands for the id of an unknown paper in `<cite>` (OARelatedWork)."""
_NAMELESS = {"", UNKNOWN.lower(), "<unk>", "unknown", "none", "?"}
# A raised number is no citation in plain text.
_STYLES = ALL_STYLES - {Style.SUPERSCRIPT, Style.MANGLED}
_BY_NAME = {Style.AUTHOR_YEAR_PARENTHESES, Style.AUTHOR_YEAR_TEXT}
# LaTeX, pandoc, and anything with a number in brackets, except intervals of decimals.
_UNREADABLE = re.compile(
    r"\\cite\w*\{[^{}]*\}|\[@[^\[\]]*\]|[\[【](?![^\[\]【】]*\d\.\d)(?=[^\[\]【】\d]*+\d)[^\[\]【】]*+[\]】]"
)
_SUFFIXES = {"jr", "jr.", "sr", "sr.", "ii", "iii", "iv"}
_PARTICLES = {"de", "la", "van", "von", "der", "den", "del", "di", "da", "dos", "du", "le", "el", "al", "bin", "ten"}


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place at which a text cites, from `start` to before `end`.

    Attributes:
        numbers: Numbers of sources in it, ranges expanded.
        paper_id: Identifier in `<cite>`; or numbers as printed, if a range of them is wider than any citation.
        title: Title in `<cite>`.
    """

    start: int
    end: int
    numbers: tuple[int, ...] = ()
    paper_id: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Cited:
    """The papers that a text cites.

    Attributes:
        sources: Numbers of the sources; the first number if several sources are the same paper.
        outside: Citations of no source: "[7]", "W12345", "1-9999".
        titles: Titles of works that are no source, and whose identifier is not known; in lower case, words only.
    """

    sources: frozenset[int]
    outside: frozenset[str]
    titles: frozenset[str] = frozenset()

    def works(self, *, by_title: bool = False) -> frozenset[int | str]:
        """The cited works: sources, and those outside; also those that only a title names, if that is wanted."""
        titles = {f"title {title}" for title in self.titles} if by_title else ()
        return frozenset({*self.sources, *self.outside, *titles})


def anchors_of(text: str) -> Iterator[Anchor]:
    """Yields the places at which a text cites, in order. A range that runs backwards, as in `[5-3]`, is not one."""
    for match in _ANCHOR.finditer(text):
        if match["numbers"] is not None:
            ranges = list(_ranges(match["numbers"]))
            if not all(ranges):
                continue
            if max(map(len, ranges)) > _WIDEST:
                yield Anchor(*match.span(), paper_id=match["numbers"])
            else:
                yield Anchor(*match.span(), tuple(dict.fromkeys(itertools.chain(*ranges))))
        elif match["span"] is not None:
            paper_id, title, *_ = [*map(str.strip, match["span"].split("<sep>")), ""]
            yield Anchor(*match.span(), paper_id=paper_id, title=title)
        else:
            yield Anchor(*match.span())


def cited_in(text: str, sources: Sequence[Source]) -> Cited:
    """The papers that a text cites. Citations of nameless papers, such as `#OTHEREFR`, do not count."""
    first: dict[str, int] = {}  # of the sources that are one paper, by its id and title
    of_number = [
        first.setdefault(f"id {source.paper_id}", number) if source.paper_id else number
        for number, source in enumerate(sources)
    ]
    for number, source in zip(of_number, sources, strict=True):
        if title := _bare(source.title):
            first.setdefault(f"title {title}", number)
    cited: set[int] = set()
    outside: set[str] = set()
    titles: set[str] = set()
    for anchor in anchors_of(text):
        cited.update(of_number[number] for number in anchor.numbers if number < len(sources))
        outside.update(f"[{number}]" for number in anchor.numbers if number >= len(sources))
        named = first.get(f"id {anchor.paper_id}", first.get(f"title {_bare(anchor.title)}"))
        if named is not None:
            cited.add(named)
        elif anchor.paper_id.lower() not in _NAMELESS:
            outside.add(anchor.paper_id)
        elif title := _bare(anchor.title):
            titles.add(title)
    return Cited(frozenset(cited), frozenset(outside), frozenset(titles))


def without_anchors(text: str) -> str:
    """A text without its citations, to count its words."""
    return replaced(text, ((anchor.start, anchor.end, " ") for anchor in anchors_of(text)))


def with_bare_spans(text: str) -> str:
    """A text with `<cite>` and `<ref>` for `<cite> … </cite>` and `<ref> … </ref>`.

    OARelatedWork removes the text of citations for all metrics but that of citations (section 4). Numbers in brackets
    stay, as in CiteBench.
    """
    return _SPAN.sub(r"<\1>", text)


def _ranges(numbers: str) -> Iterator[range]:
    """Numbers between commas as ranges, mostly of one number; empty if one runs backwards."""
    for part in re.split("[,;]", numbers):
        first, *last = map(int, re.split("[-–]", part))
        yield range(first, (last[0] if last else first) + 1)


def _bare(title: str) -> str:
    return " ".join(_words(title))


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
    places = [_by_anchor(text, anchor, sources) for anchor in anchors_of(text)]
    callouts = [(one.start, one.end, one.style in _BY_NAME) for one in find_callouts(text, believed=_STYLES)]
    unreadable = [(*match.span(), False) for match in _UNREADABLE.finditer(text)]
    for spans in (callouts, unreadable):  # none overlaps another of its kind
        is_taken = Spans((mention.start, mention.end) for mention in places)
        for start, end, by_name in spans:
            if not is_taken(start, end):
                printed = text[start:end]
                if numbers := _by_authors(printed, sources) if by_name else ():
                    places.append(Mention(start, end, numbers, (), printed))
                else:
                    places.append(Mention(start, end, (), (printed,), as_unknown(printed)))
    return sorted(places, key=lambda mention: mention.start)


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
    of_sources = [str(number) for number in anchor.numbers if number < len(sources)]
    marked = [f"?{name.strip('[]') if anchor.numbers else name}" for name in unknown]
    shown = f"[{', '.join([*of_sources, *marked])}]" if unknown else printed
    return Mention(anchor.start, anchor.end, tuple(sorted(cited.sources)), unknown, shown)


def _by_authors(printed: str, sources: Sequence[Source]) -> tuple[int, ...]:
    """The sources of which a citation names an author."""
    words = set(_words(printed))
    return tuple(
        number
        for number, source in enumerate(sources)
        if any(words.issuperset(_words(surname(author))) for author in source.authors if _words(author))
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


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
