"""From full texts to contexts: which sentences are usable, and what they become."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from citerec.contexts.extract import Outcome, Rules, Tally, extract_contexts, outcome_of_context
from citerec.contexts.full_text import BibRef, FullText, Paragraph
from citerec.contexts.read import as_record, parse_context, read_contexts
from citerec.contexts.split import splitter
from citerec.errors import InputError
from citerec.records import Context

Refs = Sequence[tuple[str, str | None]]
CELLS = "This was first shown in cells [1]."


def full_text(text: str, refs: Refs, *, sentences: Sequence[str] = ()) -> FullText:
    """One paragraph; refs are (words, entry id), entries b1 … lead to the papers a, b, …."""
    places, at = [], 0
    for words, entry_id in refs:
        at = text.index(words, at)
        places.append(BibRef(at, at + len(words), entry_id))
        at += len(words)
    return FullText(
        paper_id="citing",
        text=text,
        paragraphs=(Paragraph(0, len(text), "Methods"),),
        sentences=tuple((text.index(each), text.index(each) + len(each)) for each in sentences),
        bib_refs=tuple(places),
        bib_entries={f"b{number}": paper for number, paper in enumerate([None, *"abcdefgh"])},
        faults=(),
    )


def contexts_of(text: FullText, **rules: bool) -> list[Context]:
    return list(extract_contexts(text, Rules(**rules), Tally()))


def outcomes_of(text: FullText) -> dict[str, int]:
    tally = Tally()
    list(extract_contexts(text, Rules(), tally))
    return dict(tally.outcomes)


def test_a_context_keeps_what_surrounds_it() -> None:
    text = "It was so before. Lee et al. [2] have shown that it is so. It will be so after."
    (context,) = contexts_of(full_text(text, [("[2]", "b2")]))
    place = {"context_id": "citing-29", "start": 29, "end": 32, "marker": "[2]", "style": "numbered-brackets"}
    around = {"before": "It was so before.", "after": "It will be so after.", "section": "Methods"}
    papers = {"citing_id": "citing", "cited_ids": ("b",), "cited_before": ()}
    words = "Lee et al. <REF> have shown that it is so."
    # The marker takes the place of the citation.
    for marker in ("(Lee, 1997)", "[1]", "¹²"):
        (other,) = contexts_of(full_text(f"This was first shown in cells{marker} before.", [(marker, "b1")]))
        assert other.text == "This was first shown in cells <REF> before."
    assert context.citing_year is None
    assert [one.citing_year for one in contexts_of(replace(full_text(CELLS, [("[1]", "b1")]), year=2005))] == [2005]
    assert context == Context(text=words, source="s2orc", **place, **around, **papers)
    assert parse_context(as_record(context)) == context


@pytest.mark.parametrize(
    ("text", "refs", "outcome"),
    [
        ("This was first shown in cells [1]", [("[1]", "b1")], Outcome.NO_END),
        ("⁷This was first shown in cells [1].", [("[1]", "b1")], Outcome.FOOTNOTE),
        ("and this was first shown in cells [1].", [("[1]", "b1")], Outcome.FRAGMENT),
        ("This was shown in cells [1].The rest is known to all.", [("[1]", "b1")], Outcome.RUN_ON),
        ("Table 4: scores of all systems, as given in cells [1].", [("[1]", "b1")], Outcome.DEBRIS),
        ("This was shown by (Lee, 1997a(Lee, 1997b) in cells.", [("(Lee, 1997a(Lee, 1997b)", "b1")], Outcome.MANGLED),
        ("This was shown in cells [1] and in mice [2].", [("[1]", "b1"), ("[2]", "b2")], Outcome.SEVERAL_CITATIONS),
        ("This was first shown in cells [1]–[3].", [("[1]", "b1"), ("[3]", "b3")], Outcome.GROUP),
        # Without a matched paper in it a paragraph is not looked at: another sentence brings one.
        (CELLS + " It was seen in mice [8].", [("[1]", "b77"), ("[8]", "b8")], Outcome.UNRESOLVED),
        (CELLS + " It was seen in mice [8].", [("[1]", "b0"), ("[8]", "b8")], Outcome.UNMATCHED),
    ],
)
def test_sentences_that_are_not_usable(text: str, refs: Refs, outcome: Outcome) -> None:
    found = outcomes_of(full_text(text, refs))
    assert found.pop(outcome) == 1
    assert found == ({Outcome.USABLE: 1} if "mice [8]" in text else {})
    if len(refs) == 1 and outcome is not Outcome.MANGLED:  # given contexts go by the same rules
        assert outcome_of_context(Context(text=text.replace(refs[0][0], "<REF>"), cited_ids=("a",))) is outcome


def test_groups_make_one_context_with_all_their_papers() -> None:
    refs = [("[1,", "b1"), ("4]", "b4"), ("[2]–", "b2"), ("[5]", "b5")]
    text = full_text("This was shown [1, 4] in cells, and in mice [2]–[5] too.", refs)
    first, second = contexts_of(text, single=False)
    assert (first.text, first.cited_ids) == ("This was shown <REF> in cells, and in mice [2]–[5] too.", ("a", "d"))
    # The range leaves [3] and [4] between its ends: numbers lead to entries as all single bib refs say.
    assert (second.marker, set(second.cited_ids)) == ("[2]–[5]", {"b", "c", "d", "e"})


def test_cited_before_has_every_mention_before_the_place_in_order_but_the_citing_paper() -> None:
    places = [("[1]", "b1"), ("[2]", "b2"), ("[1]", "b1"), ("[3]", "b3")]
    text = full_text(" ".join(f"Lee et al. {marker} have shown that it is so." for marker, _ in places), places)
    contexts = contexts_of(text)
    assert [context.cited_before for context in contexts] == [(), ("a",), ("a", "b"), ("a", "b", "a")]
    own = replace(text, bib_entries={**text.bib_entries, "b1": "citing"})
    assert contexts_of(own)[-1].cited_before == ("b",)


def test_sentences_are_those_of_pysbd_or_spacy(shared: Path) -> None:
    """Ours compiles the expressions of pysbd once, and changes nothing else."""
    import pysbd

    for name in ("pysbd", "spacy", str(shared.parent / "models" / "en_ewt_tagger")):
        text = "  It was so. Was it?  It was! "
        assert [text[start:end] for start, end in splitter(name)(text)] == ["It was so.", "Was it?", "It was!"]
    with pytest.raises(InputError, match="no_such_model"):
        splitter("no_such_model")
    segmenter, split = pysbd.Segmenter(language="en", clean=False), splitter()
    for one in list(read_contexts(shared / "acm" / "contexts-dev.jsonl"))[:100]:
        text = " ".join(filter(None, (one.before, one.text, one.after)))
        assert [text[start:end] for start, end in split(text)] == [one.strip() for one in segmenter.segment(text)]
