"""From full texts to contexts: each usable citing sentence, with `<REF>` for its citation (Maharjan 3.2.2)."""

import functools
import itertools
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from citerec.contexts.callouts import Callout, Style, find_callouts
from citerec.contexts.passages import folded, sentences_given, sentences_of, with_marker
from citerec.contexts.s2orc import BibRef, FullText, Paragraph
from citerec.contexts.split import Span, splitter
from citerec.contexts.usable import OUTCOMES, Outcome, is_whole, outcome_of_sentence
from citerec.records import MARKER, Context

_ENTRY_ID = re.compile(r"(\D*)(\d+)")
_IN_PARENTHESES = re.compile(r".?\(\s?\d{1,3}\s?[,;)–-]?")
_NAMED = re.compile(r"[^\W\d_]{2}|(?:1[6-9]|20)\d\d")
_RAISED = re.compile(r"[^\s\[(]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹][\d⁰¹²³⁴⁵⁶⁷⁸⁹,–-]*")


@dataclass(slots=True)
class Tally:
    """Counts of full texts, of paragraphs that cite a wanted paper, of their citing sentences, and of contexts made."""

    texts: int = 0
    paragraphs: int = 0
    sentences: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    contexts: int = 0

    def as_counts(self) -> dict[str, Any]:
        """The counts as a JSON object."""
        counts = {name: getattr(self, name) for name in ("texts", "paragraphs", "sentences", "contexts")}
        return {**counts, OUTCOMES: dict(self.outcomes)}


@dataclass(frozen=True, slots=True)
class Rules:
    """Which sentences make contexts.

    Attributes:
        single: Whether a sentence must hold exactly one citation, to one paper: the benchmark's rule. Otherwise each
            citation makes a context, with all matched papers that share its marker.
        split: The splitter of sentences, if the source does not give them.
    """

    single: bool = True
    split: str = "pysbd"


def extract_contexts(
    text: FullText,
    rules: Rules | None = None,
    *,
    is_wanted: Callable[[str], bool] = lambda _: True,
    tally: Tally | None = None,
) -> Iterator[Context]:
    """The contexts of a full text, in order.

    A sentence is usable if it ends in a full stop, question or exclamation mark, does not begin like a footnote, and
    its citation is in a regular style and leads to a matched paper (Maharjan 3.2.2, steps 2 to 4).

    Args:
        text: The full text.
        rules: Which sentences to take; the benchmark's by default.
        is_wanted: Whether contexts that cite a paper are wanted; paragraphs that cite no such paper are skipped.
        tally: Where to add the counts.
    """
    rules, tally = rules or Rules(), tally if tally is not None else Tally()
    tally.texts += 1
    document = _Document(text)
    seen: set[int] = set()
    for paragraph in text.paragraphs:
        refs = document.refs_in(paragraph)
        if not any(map(is_wanted, document.papers_of(refs))):
            continue
        tally.paragraphs += 1
        for context in _Passage(document, paragraph, refs, rules).contexts(tally):
            # Paragraphs may overlap, but a citation makes one context.
            if context.start not in seen and any(map(is_wanted, context.cited_ids)):
                seen.add(context.start or 0)
                tally.contexts += 1
                yield context


class _Document:
    """A full text, and the data that all its paragraphs share."""

    def __init__(self, text: FullText) -> None:
        self.text = text
        self._starts = [ref.start for ref in text.bib_refs]
        self.believed = _believed(text)

    def refs_in(self, paragraph: Paragraph) -> Sequence[BibRef]:
        """The bib refs within a paragraph."""
        first = bisect_left(self._starts, paragraph.start)
        last = bisect_left(self._starts, paragraph.end)
        return [ref for ref in self.text.bib_refs[first:last] if ref.end <= paragraph.end]

    def cited_before(self, place: int) -> tuple[str, ...]:
        """The papers that the text cites before a place, once for each bib ref that leads to one; never itself."""
        refs = (ref for ref in self.text.bib_refs[: bisect_left(self._starts, place)] if ref.end <= place)
        cited = (self.text.bib_entries.get(ref.entry_id or "") for ref in refs)
        return tuple(
            entry.paper_id for entry in cited if entry and entry.paper_id and entry.paper_id != self.text.paper_id
        )

    def papers_of(self, refs: Sequence[BibRef]) -> Set[str]:
        """The papers to which bib refs lead, including those of a range between two of them."""
        if any(character in self.text.text[ref.start : ref.end + 2] for ref in refs for character in "–—‐-−"):
            return self._papers
        found = {entry.paper_id for ref in refs if (entry := self.text.bib_entries.get(ref.entry_id or ""))}
        return {paper_id for paper_id in found if paper_id}

    @functools.cached_property
    def _papers(self) -> Set[str]:
        return {entry.paper_id for entry in self.text.bib_entries.values() if entry.paper_id}

    def entry_ids(self, callout: Callout, refs: Sequence[BibRef]) -> tuple[str, ...]:
        """The bib entries of a callout: those of its bib refs, and those within its range."""
        given = [ref.entry_id for ref in refs if ref.entry_id in self.text.bib_entries and ref.entry_id]
        if not given or callout.works <= len(set(given)) or not callout.numbers:
            return tuple(dict.fromkeys(given))
        numbered = map(self._id_of_number, callout.numbers)
        return tuple(dict.fromkeys([*(entry_id for entry_id in numbered if entry_id), *given]))

    @functools.cached_property
    def _id_of_number(self) -> Callable[[int], str | None]:
        """Maps numbers to entries, if all bib refs with one number agree on the shift: ids count from 0 or from 1."""
        shifts: set[tuple[str, int]] = set()
        for ref in self.text.bib_refs:
            digits = re.findall(r"\d+", self.text.text[ref.start : ref.end]) if ref.end - ref.start < 9 else []
            if len(digits) == 1 and (match := _ENTRY_ID.fullmatch(ref.entry_id or "")):
                shifts.add((match[1], int(match[2]) - int(digits[0])))
        if len(shifts) != 1:
            return lambda _: None
        prefix, shift = shifts.pop()
        return lambda number: wanted if (wanted := f"{prefix}{number + shift}") in self.text.bib_entries else None


def _believed(text: FullText) -> frozenset[Style]:
    """The styles that this paper may use: those of its bib refs. `(3)` may be an equation, `(Paris, 1998)` a fair."""
    surfaces = [text.text[max(0, ref.start - 1) : ref.end].strip() for ref in text.bib_refs]
    years = not surfaces or any(map(_NAMED.search, surfaces))
    used = {
        Style.AUTHOR_YEAR_PARENTHESES: years,
        Style.AUTHOR_YEAR_TEXT: years,
        Style.NUMBERED_PARENTHESES: any(map(_IN_PARENTHESES.match, surfaces)),
        Style.SUPERSCRIPT: any(map(_RAISED.fullmatch, surfaces)),
    }
    return frozenset(style for style in Style if used.get(style, True))


class _Passage:
    """A paragraph with its citations and sentences."""

    def __init__(self, document: _Document, paragraph: Paragraph, refs: Sequence[BibRef], rules: Rules) -> None:
        self._document, self._paragraph, self._refs, self._rules = document, paragraph, refs, rules
        self._starts = [ref.start for ref in refs]
        self._reached = list(itertools.accumulate((ref.end for ref in refs), max))  # in order, as ends may not be
        self._whole = document.text.text[paragraph.start : paragraph.end]
        hints = [(ref.start - paragraph.start, ref.end - paragraph.start) for ref in refs]
        self._callouts = find_callouts(self._whole, hints, document.believed)
        given = sentences_given(self._whole, self._callouts, document.text.sentences or (), paragraph)
        self._sentences = given or sentences_of(self._whole, self._callouts, splitter(rules.split))

    def contexts(self, tally: Tally) -> Iterator[Context]:
        """Its contexts in order."""
        starts = [callout.start for callout in self._callouts]
        ends = [callout.end for callout in self._callouts]  # callouts do not overlap: their ends are in order too
        for at, sentence in enumerate(self._sentences):
            here = self._callouts[bisect_right(ends, sentence[0]) : bisect_left(starts, sentence[1])]
            tally.sentences += bool(here)
            for outcome, callout, cited in self._judged(sentence, here) if here else ():
                tally.outcomes[outcome.value] += 1
                if outcome is Outcome.USABLE and callout:
                    yield self._context(at, callout, cited)

    def _judged(
        self, sentence: Span, here: Sequence[Callout]
    ) -> Iterator[tuple[Outcome, Callout | None, tuple[str, ...]]]:
        """The outcome of a sentence, or of each citation in it if several are allowed."""
        outcome: Outcome | None = Outcome.DEBRIS
        if MARKER not in self._whole[slice(*sentence)]:  # a paper on citation recommendation may contain it
            outcome = outcome_of_sentence(self._whole, sentence, here, single=self._rules.single)
        if outcome is not None:
            yield outcome, None, ()
            return
        for callout in here:
            if is_whole(callout, sentence):
                outcome, cited = self._resolved(callout)
                yield outcome, callout, cited
            else:
                yield Outcome.MANGLED, callout, ()

    def _resolved(self, callout: Callout) -> tuple[Outcome, tuple[str, ...]]:
        """The papers that a citation leads to, or why there are none."""
        text = self._document.text
        start, end = self._paragraph.start + callout.start, self._paragraph.start + callout.end
        near = self._refs[bisect_right(self._reached, start) : bisect_left(self._starts, end)]
        entry_ids = self._document.entry_ids(callout, [ref for ref in near if start < ref.end])
        if self._rules.single and (callout.works > 1 or len(entry_ids) > 1):
            return Outcome.GROUP, ()
        if not entry_ids:
            return Outcome.UNRESOLVED, ()
        papers = (text.bib_entries[entry_id].paper_id for entry_id in entry_ids)
        cited = tuple(dict.fromkeys(paper_id for paper_id in papers if paper_id and paper_id != text.paper_id))
        return (Outcome.USABLE if cited else Outcome.UNMATCHED), cited

    def _context(self, at: int, callout: Callout, cited: tuple[str, ...]) -> Context:
        paper_id, start = self._document.text.paper_id, self._paragraph.start + callout.start
        around = [
            folded(self._whole, self._sentences[beside]) if 0 <= beside < len(self._sentences) else ""
            for beside in (at - 1, at + 1)
        ]
        return Context(
            text=with_marker(self._whole, self._sentences[at], callout),
            before=around[0],
            after=around[1],
            context_id=f"{paper_id}-{start}",
            citing_id=paper_id,
            cited_ids=cited,
            section=self._paragraph.section,
            source="s2orc",
            marker=self._whole[callout.start : callout.end],
            style=callout.style,
            start=start,
            end=self._paragraph.start + callout.end,
            cited_before=self._document.cited_before(start),
        )
