"""The citation parser on single cases, and on whatever hypothesis can think of."""

import pytest
from hypothesis import given, strategies as st

from citerec.contexts.markers import Style, find_markers
from tests.growth import assert_linear


def found(text: str, *hints: str) -> list[tuple[str, str, int]]:
    """Style, surface and works of each citation marker; hints are given as the words that they cover."""
    spans = [(text.index(hint), text.index(hint) + len(hint)) for hint in hints]
    return [(str(one.style), text[one.start : one.end], one.works) for one in find_markers(text, spans)]


@pytest.mark.parametrize(
    ("text", "style", "surface", "works"),
    [
        ("as shown [3, 5–7].", "numbered-brackets", "[3, 5–7]", 4),
        ("as shown (12, 13).", "numbered-parentheses", "(12, 13)", 2),
        ("as shown¹²,¹³ before", "superscript", "¹²,¹³", 2),
        ("as shown.12–14 Then", "superscript", "12–14", 3),
        ("so (Lee and Kim, 1997a, b; Roy 2001)", "author-year-parentheses", "(Lee and Kim, 1997a, b; Roy 2001)", 3),
        ("as shown (see Lee & Kim, in press, p. 4)", "author-year-parentheses", "(see Lee & Kim, in press, p. 4)", 1),
        ("as Lee & Kim (1998, 2000) show", "author-year-text", "Lee & Kim (1998, 2000)", 2),
        ("as Lee, Kim, and van der Roy (in press) show", "author-year-text", "Lee, Kim, and van der Roy (in press)", 1),
        ("as Lee et al., 1997 show", "author-year-text", "Lee et al., 1997", 1),
        ("as in [CLR90, BMI+06]", "label", "[CLR90, BMI+06]", 2),
        ("as (Lee et al., 1997a(Lee et al., 1997b) show", "mangled", "(Lee et al., 1997a(Lee et al., 1997b)", 0),
        ("as in [12, 13[14]", "mangled", "[12, 13[14]", 0),
    ],
)
def test_styles(text: str, style: str, surface: str, works: int) -> None:
    assert found(text) == [(style, surface, works)]


NO_CITATIONS = """in the interval [0, 1] and x[3]|by equation (3) and Fig.12|(1) this, and (2) that|
the match ended (3–1)|an area of 12 m² and R² of 10⁶ cm⁻¹|in spring (June 2003), see Section (4)|
the reigns of kings (1612–1671)|f(3) = 4 and (N = 30)|[60]fullerene and [13C]glucose"""


def test_what_is_no_citation() -> None:
    assert [text for text in NO_CITATIONS.replace("\n", "").split("|") if found(text)] == []


def test_hints_tell_numbers_from_equations_and_words_from_citations() -> None:
    assert found("for all of (3) we have", "(3)") == [("numbered-parentheses", "(3)", 1)]
    assert found("learning12, 13 is", "12,", "13") == [("superscript", "12, 13", 2)]
    assert found("as shown [21, 30].", "[21,", "30]") == [("numbered-brackets", "[21, 30]", 2)]
    assert found("the modal logic of", "modal") == [("mangled", "modal", 0)]
    assert set(find_markers("as shown [98–103].")[0].numbers) == set(range(98, 104))
    believed = find_markers("as shown [2] by (3) of.", believed={Style.NUMBERED_BRACKETS})  # a paper of one style
    assert [marker.style for marker in believed] == ["numbered-brackets"]


WORDS = "Lee| et al.|, |; |1997|12|–| and |¹²|^{|<REF>|<sup>|</sup>|in press|p. |van |[1|(2|CLR90|\ue000".split("|")
PIECES = [*"()[]a&.}? +é\n", *WORDS]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=300), st.data())
def test_markers_are_in_order_and_within_the_text(text: str, data: st.DataObject) -> None:
    spans = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda span: span[0] < span[1])
    hints = data.draw(st.lists(spans, max_size=4)) if text else []
    markers = find_markers(text, hints)
    places = [place for marker in markers for place in (marker.start, marker.end)]
    assert places == sorted(places)
    assert all(0 <= marker.start < marker.end <= len(text) for marker in markers)
    assert all((marker.works == 0) == (not marker.is_sound) for marker in markers)
    for start, end in hints:  # what is known to be a citation is never lost
        assert any(marker.start < end and start < marker.end for marker in markers)


UNITS = (
    "[1]|[1] |[1–200]–|(12), |[1], [2–4] |¹², |word^{1}|<sup>1</sup>|,1|–1,2|[CLR90] |Lee and |Lee et al. (1997) |"
    "(Lee, 1997; |[[1]] |([|]|\t|1 |[?, |in |(Lee, 1997 |[x (y |(1) a "
)


@pytest.mark.parametrize("unit", UNITS.split("|"))
def test_repeats_of_any_kind_are_read_in_linear_time(unit: str) -> None:
    assert_linear(find_markers, lambda times: "as shown." + unit * times + ")" * times, 40_000 // len(unit))
