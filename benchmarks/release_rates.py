"""How often each thing happens in a synthetic release: one number a trap (benchmarks/release.py)."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares, from 0 to 1. What is not said to be of something else is a share of the sentences of paragraphs.

    Usable, with a line of truth each:
        sound: One citation in a regular style, of a matched, complete paper.
        year_beside: The same, with a year in parentheses or `(Figure 2)` beside it.
    Not usable:
        unmatched: The entry names no paper.
        incomplete: The cited paper lacks venue, authors or title.
        outside: The cited paper is not in `papers`.
        no_ref_id: The span has no `ref_id` (no attribute, null, or no attributes).
        unknown_ref_id: No entry has that id.
        group: Two to four papers in one marker, a span each.
        group_one_span: The same, one span over them all.
        range: `[3–6]`, as the spans `[3–` and `6]`; where names are cited, a group stands instead.
        two: Two citations apart from each other, perhaps of one paper, perhaps one without `ref_id`.
        mangled: `(Lee et al., 1997a(Lee et al., 1997b)`, `[12, 13[14]`.
        footnote: The sentence begins with a footnote's digit; else it is sound.
        bad_offsets: The span lies outside the text, before its beginning, or ends before it starts.
        cut: The span begins and ends in the middle of words, beside the marker.
        no_stop: Of paragraphs: the last sentence has no final punctuation; else it is sound.

    Of citations of one paper:
        narrow: Of those in the text (`Lee et al. (1997a)`): the span covers only `(1997a)`.
        glued: Of those in square brackets or numbered parentheses: no space before it, or none after it.
        quoted: Of those in square brackets or numbered parentheses: it is glued to a closing quotation mark.

    Of texts:
        not_in_papers: The citing paper is not in `papers`.
        text_ids_as_strings, offsets_as_strings, abstract_doubled, paragraph_outside, paragraph_doubled: As named.
        bib_ref_null, bib_entry_null, paragraph_null, section_header_null: The layer is null; one a text at most.
        sentence_layer: The v2 record has a layer of sentences.
        list_layers: Of layers of v2: a list, not a JSON string.
        entries_from_one: Entries are b1, b2 …, so that number k is `b{k}`, not `b{k-1}`.
        headerless: The first paragraph stands above the first header.
        doubled_text: The record is written once more, in the next shard if there is one.

    Of papers:
        no_venue, journal_only, no_authors, no_title: As named; a paper lacks one thing at most.
        ids_as_strings, null_year, null_count: As named.
        abstract, abstract_doubled_record: It has an abstract; that record is written twice.

    Of bibliographies:
        matched_as_string, doi: Of entries: as named.

    Of the rows of `citations`:
        cited_null: `citedcorpusid` is null.
        row_missing: Of pairs: there is no row.
        with_contexts: Of pairs that a text cites: the row has contexts.

    Of the records of each dataset:
        bad_record: So many bad lines are added, every kind in turn, each at least once.
    """

    sound: float = 0.13
    year_beside: float = 0.02
    unmatched: float = 0.05
    incomplete: float = 0.02
    outside: float = 0.01
    no_ref_id: float = 0.015
    unknown_ref_id: float = 0.005
    group: float = 0.05
    group_one_span: float = 0.006
    range: float = 0.01
    two: float = 0.02
    mangled: float = 0.006
    footnote: float = 0.005
    bad_offsets: float = 0.004
    cut: float = 0.004
    no_stop: float = 0.03

    narrow: float = 0.08
    glued: float = 0.04
    quoted: float = 0.01

    not_in_papers: float = 0.03
    text_ids_as_strings: float = 0.03
    offsets_as_strings: float = 0.05
    abstract_doubled: float = 0.1
    paragraph_outside: float = 0.04
    paragraph_doubled: float = 0.04
    bib_ref_null: float = 0.02
    bib_entry_null: float = 0.02
    paragraph_null: float = 0.02
    section_header_null: float = 0.03
    sentence_layer: float = 0.5
    list_layers: float = 0.3
    entries_from_one: float = 0.25
    headerless: float = 0.15
    doubled_text: float = 0.01

    no_venue: float = 0.06
    journal_only: float = 0.04
    no_authors: float = 0.02
    no_title: float = 0.01
    ids_as_strings: float = 0.03
    null_year: float = 0.03
    null_count: float = 0.02
    abstract: float = 0.85
    abstract_doubled_record: float = 0.01

    matched_as_string: float = 0.1
    doi: float = 0.3

    cited_null: float = 0.13
    row_missing: float = 0.05
    with_contexts: float = 0.4

    bad_record: float = 0.002

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 <= getattr(self, field.name) <= 1:
                raise ValueError(f"{field.name} is no share: {getattr(self, field.name)}")
        for names in (KINDS, NULL_LAYERS, INCOMPLETE):
            if sum(getattr(self, name) for name in names) > 1:
                raise ValueError(f"more than all: {' + '.join(names)}")


USABLE = ("sound", "year_beside")
KINDS = (
    *USABLE, "unmatched", "incomplete", "outside", "no_ref_id", "unknown_ref_id", "group", "group_one_span", "range",
    "two", "mangled", "footnote", "bad_offsets", "cut",
)  # fmt: skip
"""Kinds of sentences with citations, `no_stop` apart: that one is drawn for the last sentence of a paragraph."""
NULL_LAYERS = ("bib_ref_null", "bib_entry_null", "paragraph_null", "section_header_null")
INCOMPLETE = ("no_venue", "no_authors", "no_title", "journal_only")
"""What a paper may lack; the last is no lack, because the name of a journal counts as a venue."""
