"""From full texts to contexts: each usable citing sentence, with `<REF>` for its citation (Maharjan 3.2.2)."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from citerec.contexts.callouts import Callout
from citerec.contexts.documents import Document
from citerec.contexts.passages import folded, with_marker
from citerec.contexts.s2orc import FullText
from citerec.contexts.split import Span
from citerec.contexts.usable import OUTCOMES, Outcome, is_whole, outcome_of_sentence
from citerec.records import MARKER, Context


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
    document = Document(text, rules.split)
    for place in range(len(document.paragraphs)):
        if not any(map(is_wanted, document.papers_cited(place))):
            continue
        tally.paragraphs += 1
        for context in _contexts(document, place, rules, tally):
            if any(map(is_wanted, context.cited_ids)):
                tally.contexts += 1
                yield context


def _contexts(document: Document, place: int, rules: Rules, tally: Tally) -> Iterator[Context]:
    """The contexts of a paragraph in order."""
    whole, callouts, sentences = document.whole(place), document.callouts(place), document.sentences(place)
    starts = [callout.start for callout in callouts]
    ends = [callout.end for callout in callouts]  # callouts do not overlap: their ends are in order too
    for at, sentence in enumerate(sentences):
        here = callouts[bisect_right(ends, sentence[0]) : bisect_left(starts, sentence[1])]
        tally.sentences += bool(here)
        for outcome, callout, cited in _judged(document, place, sentence, here, rules.single) if here else ():
            tally.outcomes[outcome.value] += 1
            if outcome is Outcome.USABLE and callout:
                around = (sentences[beside : beside + 1] if beside >= 0 else [] for beside in (at - 1, at + 1))
                before, after = (folded(whole, spans[0]) if spans else "" for spans in around)
                text = with_marker(whole, sentence, callout)
                yield _context(document, place, callout, cited, text, before, after)


def _judged(
    document: Document, place: int, sentence: Span, here: Sequence[Callout], single: bool
) -> Iterator[tuple[Outcome, Callout | None, tuple[str, ...]]]:
    """The outcome of a sentence, or of each citation in it if several are allowed."""
    whole = document.whole(place)
    outcome: Outcome | None = Outcome.DEBRIS
    if MARKER not in whole[slice(*sentence)]:  # a paper on citation recommendation may contain it
        outcome = outcome_of_sentence(whole, sentence, here, single=single)
    if outcome is not None:
        yield outcome, None, ()
        return
    for callout in here:
        if is_whole(callout, sentence):
            outcome, cited = _resolved(document, place, callout, single)
            yield outcome, callout, cited
        else:
            yield Outcome.MANGLED, callout, ()


def _resolved(document: Document, place: int, callout: Callout, single: bool) -> tuple[Outcome, tuple[str, ...]]:
    """The papers that a citation leads to, or why there are none."""
    text, entry_ids = document.text, document.entry_ids(place, callout)
    if single and (callout.works > 1 or len(entry_ids) > 1):
        return Outcome.GROUP, ()
    if not entry_ids:
        return Outcome.UNRESOLVED, ()
    papers = (text.bib_entries[entry_id].paper_id for entry_id in entry_ids)
    cited = tuple(dict.fromkeys(paper_id for paper_id in papers if paper_id and paper_id != text.paper_id))
    return (Outcome.USABLE if cited else Outcome.UNMATCHED), cited


def _context(
    document: Document, place: int, callout: Callout, cited: tuple[str, ...], text: str, before: str, after: str
) -> Context:
    paper_id, paragraph = document.text.paper_id, document.paragraphs[place]
    start, end = paragraph.start + callout.start, paragraph.start + callout.end
    return Context(
        text=text,
        before=before,
        after=after,
        context_id=f"{paper_id}-{start}",
        citing_id=paper_id,
        cited_ids=cited,
        section=paragraph.section,
        source="s2orc",
        marker=document.text.text[start:end],
        style=callout.style,
        start=start,
        end=end,
        cited_before=document.cited_before(start),
    )
