"""Citations in predictions: no text makes finding them take long."""

import pytest

from citerec.write.anchors import mentions
from tests.growth import assert_linear


@pytest.mark.parametrize(
    ("begins", "unit"),
    [("", "[1] "), ("", "(Lee, 1997) "), ("", "[@a] "), ("", "\\cite{a} "), ("【", "1 "), ("<cite>", "a ")],
)
def test_any_text_is_read_in_linear_time(begins: str, unit: str) -> None:
    assert_linear(lambda text: mentions(text, ()), lambda times: begins + unit * times, 40_000 // len(unit))


def test_what_has_a_number_in_brackets_is_shown_as_unknown() -> None:
    shown = [(one.shown, one.unknown) for one in mentions("as 【3†x】, [page 4], [a], 【b】 and [0.5, 1.5] say", ())]
    assert shown == [("[?3†x]", ("【3†x】",)), ("[?page 4]", ("[page 4]",))]
