"""From full texts to contexts: each usable citing sentence, with `<REF>` for its citation (Maharjan 3.2.2).

Usable is what the benchmark takes (3.2.2, steps 3 and 4), without what its authors found by hand (ours).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from citerec.contexts.full_text import Document, FullText, find_texts
from citerec.contexts.markers import CitationMarker, Style, find_markers, vocabulary
from citerec.contexts.read import as_record
from citerec.contexts.repeats import full_texts, run_over_texts
from citerec.contexts.split import ENDS, Span, folded, follows_stop, splitter_identity, with_marker
from citerec.corpus.reading import QUARANTINE, quarantine_of, reading_lines, writing_lines, writing_records
from citerec.errors import InputError
from citerec.files.addresses import expanded
from citerec.files.parallel import Parallelism
from citerec.files.resume import Step
from citerec.files.text import replaced
from citerec.files.writing import alone, apart, beside, write_failures
from citerec.records import MARKER, Context

_FOOTNOTE_DIGITS = frozenset("0123456789⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST = 3000  # characters: longer ones are tables or lists of references
_FEWEST_WORDS = 3  # besides the citation
_CITED = "Xxx"  # replaces a citation while the rest is checked
# A word of three letters or more and a full stop, with a capital after it.
_INNER_END = re.compile(r"(?<![^\W_])([^\W\d_]{3,40})[.?!][\"”’)]{0,2}(?:\s+|(?=[A-Z][a-z]))(?=[A-Z])")
_DEBRIS = re.compile(
    r"\(\s?\)|\|[^\s|]{0,20}\||\|\s\|"  # empty brackets, bars: a formula
    r"|\b(?:Table|Figure|Fig\.)\s\d{1,3}\s?:"  # a caption
    r"|\b[a-z]{2,30}\d{1,2}\s[A-Z][a-z]"  # a footnote spliced into a word
    rf"|\b((?!{_CITED})[A-Z]\w{{2,30}}\s\w{{1,30}})\s\1\b"  # a heading that the text repeats
)


class Outcome(StrEnum):
    """The outcome of a citing sentence: the first that applies."""

    USABLE = "usable"
    NO_END = "it does not end in . ? or !"
    FOOTNOTE = "it begins with a digit, as a footnote does"
    FRAGMENT = "it begins with a small letter, or has hardly a word: part of a sentence"
    RUN_ON = "several sentences run together in it"
    DEBRIS = "debris of a formula, a table or a footnote stands in it"
    MANGLED = "a citation in it is mangled"
    SEVERAL_CITATIONS = "it holds several citations"
    GROUP = "its citation is of several papers"
    UNRESOLVED = "its citation leads to no bib entry"
    UNMATCHED = "its bib entry is matched to no paper"


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


@dataclass
class Tally:
    """Counts of full texts, of citing sentences in paragraphs that cite a wanted paper, and of contexts made."""

    texts: int = 0
    sentences: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    contexts: int = 0


def extract_contexts(
    text: FullText, rules: Rules, tally: Tally, is_wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[Context]:
    """The contexts of a full text, in order.

    A sentence is usable if it ends in a full stop, question or exclamation mark, does not begin like a footnote, and
    its citation is in a regular style and leads to a matched paper (Maharjan 3.2.2, steps 2 to 4).

    Args:
        text: The full text.
        rules: Which sentences to take.
        tally: Where to add the counts.
        is_wanted: Whether contexts that cite a paper are wanted; paragraphs that cite no such paper are skipped.
    """
    tally.texts += 1
    document = Document(text, rules.split)
    for place in range(len(document.paragraphs)):
        if not any(map(is_wanted, document.papers_cited(place))):
            continue
        for context in _contexts(document, place, rules, tally):
            if any(map(is_wanted, context.cited_ids)):
                tally.contexts += 1
                yield context


def _contexts(document: Document, place: int, rules: Rules, tally: Tally) -> Iterator[Context]:
    """The contexts of a paragraph in order."""
    whole, markers, sentences = document.whole(place), document.markers(place), document.sentences(place)
    paper_id, paragraph = document.text.paper_id, document.paragraphs[place]
    for at, sentence in enumerate(sentences):
        here = [marker for marker in markers if marker.start < sentence[1] and sentence[0] < marker.end]
        if not here:
            continue
        tally.sentences += 1
        has_marker = MARKER in whole[slice(*sentence)]  # as a paper on citation recommendation may
        fault = Outcome.DEBRIS if has_marker else outcome_of_sentence(whole, sentence, here, single=rules.single)
        tally.outcomes.update([fault.value] if fault else [])
        for marker in here if not fault else ():
            outcome, cited = _resolved(document, place, sentence, marker, rules.single)
            tally.outcomes[outcome.value] += 1
            if outcome is not Outcome.USABLE:
                continue
            start, end = paragraph.start + marker.start, paragraph.start + marker.end
            yield Context(
                text=with_marker(whole, sentence, marker),
                before=folded(whole, sentences[at - 1]) if at else "",
                after=folded(whole, sentences[at + 1]) if at + 1 < len(sentences) else "",
                context_id=f"{paper_id}-{start}",
                citing_id=paper_id,
                citing_year=document.text.year,
                cited_ids=cited,
                section=paragraph.section,
                source="s2orc",
                marker=document.text.text[start:end],
                style=marker.style,
                start=start,
                end=end,
                cited_before=document.cited_before(start),
            )


def _resolved(
    document: Document, place: int, sentence: Span, marker: CitationMarker, single: bool
) -> tuple[Outcome, tuple[str, ...]]:
    """The papers that a citation leads to, or why there are none."""
    if not _is_whole(marker, sentence):
        return Outcome.MANGLED, ()
    text, entry_ids = document.text, document.entry_ids(place, marker)
    if single and (marker.works > 1 or len(entry_ids) > 1):
        return Outcome.GROUP, ()
    if not entry_ids:
        return Outcome.UNRESOLVED, ()
    cited = tuple(dict.fromkeys(paper_id for paper_id in text.papers_of(entry_ids) if paper_id != text.paper_id))
    return (Outcome.USABLE if cited else Outcome.UNMATCHED), cited


# Usable sentences


def outcome_of_sentence(whole: str, sentence: Span, here: Sequence[CitationMarker], *, single: bool) -> Outcome | None:
    """Why a sentence of a paragraph is not usable, regardless of the papers it cites; None if nothing is wrong with it.

    Args:
        whole: The paragraph.
        sentence: The sentence in it.
        here: Its citations, one or more.
        single: Whether it must hold exactly one.
    """
    start, end = sentence
    if end - start > _LONGEST:
        return Outcome.DEBRIS
    raised = here[-1].end == end and follows_stop(whole, here[-1])
    if not whole[start : here[-1].start if raised else end].endswith(ENDS):
        return Outcome.NO_END
    if whole[start] in _FOOTNOTE_DIGITS:
        return Outcome.FOOTNOTE
    cited = sum(len(whole[marker.start : marker.end].split()) for marker in here)
    begins_small = whole[start].islower() and start != here[0].start  # a citation may: "van der Berg (2001)"
    # A splitter's mistake left part of a sentence (ours: the benchmark checks by hand).
    if begins_small or len(whole[start:end].split()) - cited < _FEWEST_WORDS:
        return Outcome.FRAGMENT
    spans = ((one.start, one.end, "" if raised and one is here[-1] else _CITED) for one in here)
    rest = replaced(whole, spans, start, end)
    if any(match[1].lower() not in vocabulary("abbreviations") for match in _INNER_END.finditer(rest)):
        return Outcome.RUN_ON
    if _DEBRIS.search(rest):
        return Outcome.DEBRIS
    if single and not all(_is_whole(marker, sentence) for marker in here):
        return Outcome.MANGLED
    return Outcome.SEVERAL_CITATIONS if single and len(here) > 1 else None


def outcome_of_context(context: Context, *, single: bool = True) -> Outcome:
    """The outcome of the sentence of a given context, by the same rules; `<REF>` is one of its citations."""
    start = context.text.index(MARKER)
    marker = CitationMarker(start, start + len(MARKER), Style.NUMBERED_BRACKETS, 1)
    others = (one for one in find_markers(context.text) if one.end <= marker.start or marker.end <= one.start)
    here = sorted([*others, marker], key=lambda marker: marker.start)
    outcome = outcome_of_sentence(context.text, (0, len(context.text)), here, single=single)
    return outcome or (Outcome.GROUP if single and len(context.cited_ids) > 1 else Outcome.USABLE)


def _is_whole(marker: CitationMarker, sentence: Span) -> bool:
    """Whether a citation is sound and within a sentence."""
    return marker.is_sound and sentence[0] <= marker.start and marker.end <= sentence[1]


# Many texts


@dataclass
class Extracted(Tally):
    """Counts of an extraction, and its quarantine.

    Attributes:
        sentences: Citing sentences, in paragraphs that cite a matched paper.
        outcomes: The outcomes of these sentences; without `single`, of the citations in them.
        bad: Lines that are not a full text.
        faults: Annotations that did not fit their text.
        quarantine: The file that lists bad lines and faults; None if there are none.
    """

    bad: int = 0
    faults: int = 0
    quarantine: Path | None = None


def extract_shards(
    sources: Sequence[Path],
    out: Path,
    rules: Rules,
    *,
    work: Path | None = None,
    max_bad: float = 0.05,
    workers: Parallelism = None,
    on_progress: Callable[[float, float], None] = lambda _done, _whole: None,
) -> Extracted:
    """Writes the contexts of all full texts of some shards. An interrupted run is resumed by the next call.

    The result of each shard is kept in `work`, so a second run repeats nothing. All of these can be at addresses.

    Args:
        sources: Folders of S2ORC shards, or shards; v1 or v2.
        out: The file to write, JSON Lines.
        rules: Which sentences make contexts.
        work: Where the results of shards are kept; by default in `.OUT.work` beside the file.
        max_bad: Share of bad texts above which nothing is written.
        workers: Processes, by default one for each processor; or Ray.
        on_progress: Called with the bytes of shards done, and the bytes of all.

    Raises:
        InputError: A source is missing, or `out` is a folder.
        ServiceError: An address cannot be reached.
        BuildError: Too many texts are bad, or the disk is full.
    """
    expanded([out])  # an address that cannot be reached is an error before any work
    if out.is_dir():
        raise InputError(f"{out} is a folder", "Give a file: --out contexts.jsonl")
    parameters = {**asdict(rules), "split_is": splitter_identity(rules.split)}  # a missing model is an early error
    shards = find_texts(sources)
    apart(out, *shards)
    work = work or beside(out, "work")
    with alone(work / "lock", f"another process is writing {out}"), write_failures(out):
        read = run_over_texts(
            work, shards, _EXTRACT, parameters, max_bad=max_bad, workers=workers, on_progress=on_progress
        )
        with writing_records(out) as (write, set_aside):
            for result in read.results:
                for line in reading_lines(result.path):
                    (set_aside if line.startswith(QUARANTINE) else write)(line.removeprefix(QUARANTINE))
    outcomes, quarantine = Counter(dict(read.outcomes.most_common())), quarantine_of(out)
    return Extracted(**read.counts, outcomes=outcomes, quarantine=quarantine if quarantine.exists() else None)


def _extract(shard: Path, out: Path, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    rules, tally = Rules(parameters["single"], parameters["split"]), Tally()
    counts = Counter[str]()
    with writing_lines(out) as write:
        for text in full_texts(shard, parameters, counts, write):
            for context in extract_contexts(text, rules, tally):
                write(orjson.dumps(as_record(context)))
    return {**counts, **vars(tally)}


_EXTRACT = Step(_extract, version=5)
