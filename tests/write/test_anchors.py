"""Citations in texts: found as they are written, whatever else stands there."""

import pytest
from hypothesis import given, strategies as st

from citerec.write.anchors import Cited, anchors_of, cited_in, mentions, with_bare_spans, without_anchors
from citerec.write.tasks import Source
from tests.growth import assert_linear

SOURCES = (Source("one", "W1", "On Parsing"), Source("two", "W2", "On Tagging"), Source("one again", "W1"))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("as in [0].", [(0,)]),
        ("[1, 2] and [3-5] and [ 7;9–10 ]", [(1, 2), (3, 4, 5), (7, 9, 10)]),
        ("[2][1]", [(2,), (1,)]),
        ("[1,1-2]", [(1, 2)]),
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


@pytest.mark.parametrize(
    ("text", "sources", "outside"),
    [
        ("[0] [1]", {0, 1}, set()),
        ("[2]", {0}, set()),  # the same paper as [0]
        ("[1, 7]", {1}, {"[7]"}),
        ("[0-4]", {0, 1}, {"[3]", "[4]"}),
        ("[0] of [1-9999] and [0, 100-3000]", {0}, set()),  # no flood of papers
        ("<cite> W2 <sep> wrong title </cite>", {1}, set()),
        ("<cite> unknown <sep> On  PARSING. <sep> Lee </cite>", {0}, set()),
        ("<cite> W9 <sep> Another <sep> Lee </cite>", set(), {"W9"}),
        ("#OTHEREFR <cite> UNK <sep> Another </cite> <cite> REF", set(), set()),
    ],
)
def test_what_is_cited(text: str, sources: set[int], outside: set[str]) -> None:
    titles = frozenset({"another"} if "UNK" in text else ())
    assert cited_in(text, SOURCES) == Cited(frozenset(sources), frozenset(outside), titles)


def test_no_source_is_found_by_a_title_that_it_lacks() -> None:
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


@given(st.integers(20, 9800), st.integers(-20, 199), st.sampled_from(["-", " - ", "–"]))
def test_ranges(first: int, more: int, dash: str) -> None:
    last = first + more
    text = f"{first}{dash}{last}"
    found = [anchor.numbers for anchor in anchors_of(f"[{text}]")]
    assert found == ([tuple(range(first, last + 1))] if 0 <= more < 100 else [])


@given(st.text("<cite>/sp[]0123-, #OTHEREFRW") | st.text())
def test_any_text_can_be_read(text: str) -> None:
    ends = [0]
    for anchor in anchors_of(text):
        assert ends[-1] <= anchor.start < anchor.end <= len(text)
        ends.append(anchor.end)
    cited = cited_in(text, SOURCES)
    assert cited.sources <= {0, 1}
    assert with_bare_spans(with_bare_spans(text)) == with_bare_spans(text)


def test_bare_spans() -> None:
    text = "a <cite> W1 <sep> T </cite> b <ref> Fig <sep> 2 </ref> [0]"
    assert with_bare_spans(text) == "a <cite> b <ref> [0]"


@pytest.mark.parametrize(
    ("begins", "unit"),
    [("", "[1] "), ("", "(Lee, 1997) "), ("", "[@a] "), ("", "\\cite{a} "), ("【", "1 "), ("<cite>", "a ")],
)
def test_any_text_is_read_in_linear_time(begins: str, unit: str) -> None:
    assert_linear(lambda text: mentions(text, ()), lambda times: begins + unit * times, 40_000 // len(unit))


def test_what_has_a_number_in_brackets_is_shown_as_unknown() -> None:
    shown = [(one.shown, one.unknown) for one in mentions("as 【3†x】, [page 4], [a], 【b】 and [0.5, 1.5] say", ())]
    assert shown == [("[?3†x]", ("【3†x】",)), ("[?page 4]", ("[page 4]",))]
