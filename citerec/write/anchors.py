"""Citations in texts: how they are marked, found and checked.

CiteBench numbers the cited papers of a text, `[0]` or `[1, 2]`, and writes `#OTHEREFR` for those outside its input
(Funkquist et al. 2023, appendix A.1). OARelatedWork spells them out between tags, `<cite> ID <sep> TITLE … </cite>`
(Docekal et al. 2024, section 4). CiteSum writes `REF`. A text that a model wrote may cite in any style.

The checks prove nothing, but find obvious errors: citations of no source, and sentences that share hardly a word with
the sources that they cite.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from citerec.contexts.markers import ALL_STYLES, Spans, Style, find_markers
from citerec.corpus.citation_keys import surname
from citerec.corpus.matching import plain_title
from citerec.files.text import printable, replaced
from citerec.write.tasks import Prediction, Sentence, Source, TextTask, content_terms, sentences_of

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

SUPPORTED = 0.2
"""Share of a sentence's content words that must be in a source that it cites."""
DRAWN = 0.5
"""Least share of these words that a source must have to be an attribution of a sentence without citations."""


class Anchor(NamedTuple):
    """A place at which a text cites, from `start` to before `end`.

    Attributes:
        numbers: Numbers of sources in it, ranges expanded.
        paper_id: Identifier in `<cite>`.
        title: Title in `<cite>`.
    """

    start: int
    end: int
    numbers: tuple[int, ...] = ()
    paper_id: str = ""
    title: str = ""


class Cited(NamedTuple):
    """The papers that a text cites.

    Attributes:
        sources: Numbers of the sources; the first number if several sources are the same paper.
        outside: Citations of no source: "[7]", "W12345".
        titles: Titles of works that are no source, and whose identifier is not known; in lower case, words only.
    """

    sources: frozenset[int]
    outside: frozenset[str]
    titles: frozenset[str] = frozenset()

    def works(self, *, by_title: bool = False) -> frozenset[int | str]:
        """The cited works: sources, and those outside; also those that only a title names, if that is wanted."""
        return self.sources | self.outside | {f"title {title}" for title in self.titles if by_title}


class Mention(NamedTuple):
    """A place at which a text cites in any style, from `start` to before `end`.

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


def anchors_of(text: str) -> Iterator[Anchor]:
    """Yields the places at which a text cites, in order. A range that runs backwards, or is very wide, is not one."""
    for match in _ANCHOR.finditer(text):
        if match["numbers"] is None:
            paper_id, title, *_ = [*map(str.strip, (match["span"] or "").split("<sep>")), ""]
            yield Anchor(*match.span(), paper_id=paper_id, title=title)
            continue
        ends = (list(map(int, re.split("[-–]", part))) for part in re.split("[,;]", match["numbers"]))
        ranges = [range(one[0], one[-1] + 1) for one in ends]
        if all(0 < len(numbers) <= _WIDEST for numbers in ranges):
            yield Anchor(*match.span(), tuple(dict.fromkeys(itertools.chain(*ranges))))


def cited_in(text: str, sources: Sequence[Source]) -> Cited:
    """The papers that a text cites. Citations of nameless papers, such as `#OTHEREFR`, do not count."""
    first: dict[str, int] = {}  # of the sources that are one paper, by its id and title
    of_number = []
    for number, source in enumerate(sources):
        of_number.append(first.setdefault(f"id {source.paper_id}", number) if source.paper_id else number)
        if title := plain_title(source.title):
            first.setdefault(f"title {title}", of_number[number])
    cited, outside, titles = set[int](), set[str](), set[str]()
    for anchor in anchors_of(text):
        cited.update(of_number[number] for number in anchor.numbers if number < len(sources))
        outside.update(f"[{number}]" for number in anchor.numbers if number >= len(sources))
        named = first.get(f"id {anchor.paper_id}", first.get(f"title {plain_title(anchor.title)}"))
        if named is not None:
            cited.add(named)
        elif anchor.paper_id.lower() not in _NAMELESS:
            outside.add(anchor.paper_id)
        elif title := plain_title(anchor.title):
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


def mentions(text: str, sources: Sequence[Source]) -> list[Mention]:
    """The places at which a text cites, in order.

    A name with a year cites the sources of which it names an author, or no source if there is none.
    """
    places = [_by_anchor(text[anchor.start : anchor.end], anchor, sources) for anchor in anchors_of(text)]
    markers = [(one.start, one.end, one.style in _BY_NAME) for one in find_markers(text, believed=_STYLES)]
    unreadable = [(*match.span(), False) for match in _UNREADABLE.finditer(text)]
    for spans in (markers, unreadable):  # none overlaps another of its kind
        is_taken = Spans((mention.start, mention.end) for mention in places)
        for start, end, by_name in spans:
            if not is_taken(start, end):
                printed = text[start:end]
                numbers = _by_authors(printed, sources) if by_name else ()
                unknown, shown = ((), printed) if numbers else ((printed,), _as_unknown(printed))
                places.append(Mention(start, end, numbers, unknown, shown))
    return sorted(places, key=lambda mention: mention.start)


def _as_unknown(printed: str) -> str:
    """How to show a citation of no source."""
    inside = printed[1:-1] if printed[0] in "([【" and printed[-1] in ")]】" else printed
    return f"[?{inside}]"


def _by_anchor(printed: str, anchor: Anchor, sources: Sequence[Source]) -> Mention:
    cited = cited_in(printed, sources)
    unknown = tuple(sorted(cited.outside)) or ((anchor.title,) if anchor.title and not cited.sources else ())
    of_sources = [str(number) for number in anchor.numbers if number < len(sources)]
    marked = [f"?{name.strip('[]') if anchor.numbers else name}" for name in unknown]
    shown = f"[{', '.join([*of_sources, *marked])}]" if unknown else printed
    return Mention(anchor.start, anchor.end, tuple(sorted(cited.sources)), unknown, shown)


def _by_authors(printed: str, sources: Sequence[Source]) -> tuple[int, ...]:
    """The sources of which a citation names an author."""
    words = set(plain_title(printed).split())
    surnames = [[plain_title(surname(author)).split() for author in source.authors] for source in sources]
    return tuple(number for number, names in enumerate(surnames) if any(one and words >= set(one) for one in names))


def traced(task: TextTask, text: str, writer: str) -> Prediction:
    """The text of a model as a prediction, with the attributions of each sentence.

    The attributions of a sentence with citations are the sources that it cites; `unsupported` are those that have less
    than `SUPPORTED` of its content words. Without citations, they are the sources that have most of these words, if at
    least `DRAWN`.
    """
    text = printable(text)  # a server may send anything
    terms = [set(content_terms(source.said)) for source in task.sources]
    sentences = []
    for sentence in sentences_of(text):
        cites = mentions(sentence, task.sources)
        own = set(content_terms(replaced(sentence, ((mention.start, mention.end, " ") for mention in cites))))
        shares = [len(own & of_source) / max(len(own), 1) for of_source in terms]
        most = max(shares, default=0.0)
        attributions = tuple(number for number, share in enumerate(shares) if share == most >= DRAWN)
        if cites:
            attributions = tuple(sorted({number for mention in cites for number in mention.sources}))
        unknown = tuple(dict.fromkeys(name for mention in cites for name in mention.unknown))
        unsupported = tuple(number for number in attributions if shares[number] < SUPPORTED)
        sentences.append(Sentence(sentence, attributions, unknown, unsupported))
    return Prediction(task, text, writer, tuple(sentences))


def placed(prediction: Prediction) -> Iterator[tuple[str, Sentence | None]]:
    """The sentences of a text, each after the text between it and the one before; then the rest, with None."""
    done = 0
    for sentence in prediction.sentences:
        start = prediction.text.find(sentence.text, done)
        if start >= 0:
            yield prediction.text[done:start], sentence
            done = start + len(sentence.text)
    yield prediction.text[done:], None


def marked(prediction: Prediction) -> str:
    """A text for display: citations of no source are marked, as in `[0, ?7]`."""
    sources = prediction.task.sources
    return "".join(
        gap + (marked_sentence(sentence, sources) if sentence else "") for gap, sentence in placed(prediction)
    )


def marked_sentence(sentence: Sentence, sources: Sequence[Source]) -> str:
    """A sentence for display."""
    spans = []
    for mention in mentions(sentence.text, sources):
        printed = sentence.text[mention.start : mention.end]
        # A citation copied by an extractive writer may have the number of a source without meaning it.
        shown = _as_unknown(printed) if printed in sentence.unknown else mention.shown
        spans.append((mention.start, mention.end, shown))
    return replaced(sentence.text, spans)
