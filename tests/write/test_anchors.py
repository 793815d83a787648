"""Citations in texts: found as they are written, whatever else stands there."""

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.citation_keys import surname, surnames
from citerec.write.anchors import (
    Cited,
    anchors_of,
    cited_in,
    marked,
    mentions,
    traced,
    with_bare_spans,
    without_anchors,
)
from citerec.write.tasks import Prediction, Sentence, Source, TextTask
from tests.growth import assert_linear

SOURCES = (Source("one", "W1", "On Parsing"), Source("two", "W2", "On Tagging"), Source("one again", "W1"))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("[1, 2] and [3-5] and [ 7;9–10 ]", [(1, 2), (3, 4, 5), (7, 9, 10)]),
        ("[5-3], [a], [12345], [], [1.5], (3), x[i]", []),
        ("Wu #OTHEREFR and REF and <REF>, but no REFS", [(), (), ()]),
    ],
)
def test_numbers(text: str, numbers: list[tuple[int, ...]]) -> None:
    assert [anchor.numbers for anchor in anchors_of(text)] == numbers


def test_spelt_out_citations() -> None:
    text = "by Lee <cite> W2 <sep> On Tagging <sep> Lee </cite>, <cite>W9</cite> and <cite>."
    found = list(anchors_of(text))
    assert [(anchor.paper_id, anchor.title) for anchor in found] == [("W2", "On Tagging"), ("W9", ""), ("", "")]
    assert text[found[1].start : found[1].end] == "<cite>W9</cite>"
    assert with_bare_spans("a <cite> W1 <sep> T </cite> b <ref> Fig <sep> 2 </ref> [0]") == "a <cite> b <ref> [0]"


@pytest.mark.parametrize(
    ("text", "sources", "outside"),
    [
        ("[0] [1]", {0, 1}, set()),
        ("[2]", {0}, set()),  # the same paper as [0]
        ("[0-4]", {0, 1}, {"[3]", "[4]"}),
        ("[0] of [1-9999] and [0, 100-3000]", {0}, set()),  # no flood of papers
        ("<cite> unknown <sep> On  PARSING. <sep> Lee </cite>", {0}, set()),
        ("<cite> W9 <sep> Another <sep> Lee </cite>", set(), {"W9"}),
        ("#OTHEREFR <cite> UNK <sep> Another </cite> <cite> REF", set(), set()),
    ],
)
def test_what_is_cited(text: str, sources: set[int], outside: set[str]) -> None:
    titles = frozenset({"another"} if "UNK" in text else ())
    assert cited_in(text, SOURCES) == Cited(frozenset(sources), frozenset(outside), titles)
    # No source is found by a title that it lacks.
    assert cited_in("<cite> <sep> <sep> </cite>", [Source("text")]) == Cited(frozenset(), frozenset())


NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=4)
# Nothing that could begin, end or be a citation.
PROSE = st.text(st.characters(exclude_characters="[]<>#R", exclude_categories=["Cs"]), max_size=10)


@given(st.lists(st.tuples(PROSE, NUMBERS, st.sampled_from([",", ", ", "; "]))), PROSE)
def test_what_was_written_is_read_back(parts: list[tuple[str, list[int], str]], end: str) -> None:
    text = "".join(f"{prose}[{between.join(map(str, numbers))}]" for prose, numbers, between in parts) + end
    found = list(anchors_of(text))
    assert [anchor.numbers for anchor in found] == [tuple(dict.fromkeys(numbers)) for _, numbers, _ in parts]
    assert without_anchors(text) == " ".join([*(prose for prose, _, _ in parts), end])


@given(st.text("<cite>/sp[]0123-, #OTHEREFRW") | st.text())
def test_any_text_can_be_read(text: str) -> None:
    ends = [0]
    for anchor in anchors_of(text):
        assert ends[-1] <= anchor.start < anchor.end <= len(text)
        ends.append(anchor.end)
    assert cited_in(text, SOURCES).sources <= {0, 1}
    assert with_bare_spans(with_bare_spans(text)) == with_bare_spans(text)


@pytest.mark.parametrize(
    ("begins", "unit"),
    [("", "[1] "), ("", "(Lee, 1997) "), ("", "[@a] "), ("", "\\cite{a} "), ("【", "1 "), ("<cite>", "a ")],
)
def test_any_text_is_read_in_linear_time(begins: str, unit: str) -> None:
    assert_linear(lambda text: mentions(text, ()), lambda times: begins + unit * times, 40_000 // len(unit))


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("Karen Sparck Jones", "Jones"), ("Ana de la Cruz", "de la Cruz"), ("Wang, Li", "Wang"), ("Plato", "Plato"),
        ("R. Cummins Jr.", "Cummins"), ("Smith, Jr.", "Smith"), ("van Dijk", "van Dijk"), ("Vincent Van Gogh", "Gogh"),
    ],
)  # fmt: skip
def test_surnames(author: str, expected: str) -> None:
    assert surname(author) == expected
    assert surnames([author, "", "B Dee"]) == f"{expected} and Dee"
    assert surnames([author, "B Dee", "C Eff"]) == f"{expected} et al."


KERNELS = Source(
    "We propose graph kernels that compare molecules quickly.", "11", "Graph kernels", authors=("Ada Lovelace",)
)
ATTENTION = Source("Neural machine translation with attention reaches new scores.", "12", "Attention")
TASK = TextTask("t", (KERNELS, ATTENTION))


def sentence(text: str) -> Sentence:
    (only,) = traced(TASK, text, "model").sentences
    return only


@pytest.mark.parametrize(
    ("text", "drawn_from", "unsupported"),
    [
        ("Graph kernels compare molecules [0].", (0,), ()),
        ("Graph kernels [0] and machine translation with attention [1] are known.", (0, 1), ()),
        ("Protein folding was solved by deep learning [0].", (0,), (0,)),  # of which [0] says nothing
        ("Graph kernels compare molecules (Lovelace, 1843).", (0,), ()),  # its author
        # One that cites nothing is traced by its words.
        ("Kernels compare molecules quickly.", (0,), ()),
    ],
)
def test_what_a_sentence_was_drawn_from(text: str, drawn_from: tuple[int, ...], unsupported: tuple[int, ...]) -> None:
    found = sentence(text)
    assert (found.attributions, found.unsupported, found.unknown) == (drawn_from, unsupported, ())


@pytest.mark.parametrize(
    ("cites", "marks"),
    [
        ("[9]", "[?9]"),
        ("(Smith et al., 2017)", "[?Smith et al., 2017]"),
        ("\\cite{smith}", "[?\\cite{smith}]"),
        ("[12345]", "[?12345]"),
        ("[9-3]", "[?9-3]"),
        ("【3†x】", "[?3†x]"),
        ("<cite> W99 <sep> Some title </cite>", "[?W99]"),
        ("<cite> UNK <sep> Made up </cite>", "[?Made up]"),
    ],
)
def test_a_citation_of_what_was_not_given_is_flagged(cites: str, marks: str) -> None:
    text = f"Graph kernels compare molecules {cites}."
    assert sentence(text).attributions == ()
    assert len(sentence(text).unknown) == 1
    assert marked(traced(TASK, text, "model")) == f"Graph kernels compare molecules {marks}."


def test_flags_leave_the_rest_of_a_text() -> None:
    assert list(mentions("Weights, [a] and 【b】 lie in [0.5, 1.5].", ())) == []
    mixed = sentence("Graph kernels compare molecules [0, 7].")
    assert (mixed.attributions, mixed.unknown) == ((0,), ("[7]",))
    assert marked(traced(TASK, "Kernels [0, 7].\n\nAttention [9].", "model")) == "Kernels [0, ?7].\n\nAttention [?9]."
    # What was taken over with a number of ours is another paper.
    taken = Prediction(TASK, "Trees fall [1].", "lead", (Sentence("Trees fall [1].", (0,), ("[1]",)),))
    assert marked(taken) == "Trees fall [?1]."
