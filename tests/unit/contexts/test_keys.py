"""Citation keys in drafts."""

import pytest

from citerec.contexts.keys import Mention, cited_until, mentions


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (r"as \cite{lee20} and \citep[see][p. 3]{roe, doe:19} show", ["lee20", "roe", "doe:19"]),
        ("as [@lee20; @roe, p. 3] and @doe:19. show", ["lee20", "roe", "doe:19"]),
        ("as [12] and [Lee20, Roe] show", ["12", "Lee20", "Roe"]),
        ("mail ada@example.org", []),
    ],
)
def test_keys_are_found_in_order(text: str, keys: list[str]) -> None:
    assert [mention.key for mention in mentions(text)] == keys


def _known(mention: Mention) -> str | None:
    return {"a": "1", "b": "2"}.get(mention.key)


def test_what_stands_before_a_place_counts_with_repeats() -> None:
    text = r"\cite{a} and \cite{b,a} <REF>, and @b <REF>."
    assert cited_until(text, _known) == [("1", "2", "1"), ("1", "2", "1", "2")]


def test_listed_papers_stand_once_unless_the_text_cites_them_before() -> None:
    assert cited_until(r"<REF> \cite{a} <REF>", _known, ["1", "9"]) == [("1", "9"), ("9", "1")]


def test_a_text_without_a_marker_cites_all_its_keys() -> None:
    assert cited_until(r"\cite{a} \cite{unknown}", _known) == [("1",)]
