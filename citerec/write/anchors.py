"""Citations in predictions: `[0]`, `[1, 2]`, `[3-5]`, `<cite> ID <sep> TITLE … </cite>`.

CiteBench numbers the cited papers of a text and writes `#OTHEREFR` for those outside its input (Funkquist et al. 2023,
appendix A.1); OARelatedWork spells them out between tags (Docekal et al. 2024, section 4); CiteSum writes `REF`.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
    for found in _ANCHOR.finditer(text):
        if found["numbers"] is not None:
            ranges = list(_ranges(found["numbers"]))
            if not all(ranges):
                continue
            if max(map(len, ranges)) > _WIDEST:
                yield Anchor(found.start(), found.end(), paper_id=found["numbers"])
            else:
                yield Anchor(found.start(), found.end(), tuple(dict.fromkeys(itertools.chain(*ranges))))
        elif found["span"] is not None:
            paper_id, title, *_ = [*map(str.strip, found["span"].split("<sep>")), ""]
            yield Anchor(found.start(), found.end(), paper_id=paper_id, title=title)
        else:
            yield Anchor(found.start(), found.end())


def cited_in(text: str, sources: Sequence[Source]) -> Cited:
    """The papers that a text cites. Citations of nameless papers, such as `#OTHEREFR`, do not count."""
    first: dict[str, int] = {}
    of_number = [
        first.setdefault(f"id {source.paper_id}", number) if source.paper_id else number
        for number, source in enumerate(sources)
    ]
    for number, source in enumerate(sources):
        if title := _bare(source.title):
            first.setdefault(f"title {title}", of_number[number])
    cited: set[int] = set()
    outside: set[str] = set()
    titles: set[str] = set()
    for anchor in anchors_of(text):
        for number in anchor.numbers:
            if number < len(sources):
                cited.add(of_number[number])
            else:
                outside.add(f"[{number}]")
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
    return " ".join(re.findall(r"\w+", title.lower()))
