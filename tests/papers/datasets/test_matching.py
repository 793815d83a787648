"""Titles and names that are alike."""

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.matching import containment, normalised, same_author, similarity

TITLES = st.text("abc é-.", max_size=12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Co-Citation: Über-Maps, (2nd)", "maps co citation uber 2nd"),
        ("Straße", "Strasse"),
        ("Timmermann", "TIMMERMAN"),
        ("Søren Łuk", "Soren Luk"),
        ("Карта рек", "карта рек"),
    ],
)
def test_other_spellings_are_the_same_words(one: str, other: str) -> None:
    assert normalised(one) == normalised(other) != frozenset()
    assert normalised("…") == frozenset()


def test_similarity_is_the_harmonic_mean_of_jaccard_and_containment() -> None:
    # 3 words in common of 3 and 4: Jaccard 3/4, containment 1.
    assert similarity("rivers and maps", "Rivers and Old Maps") == pytest.approx(2 * 0.75 / 1.75)
    assert containment(normalised("a b c"), normalised("c d")) == 0.5
    assert similarity("rivers", "lakes") == similarity("", "") == 0


@given(TITLES, TITLES)
def test_similarity_is_symmetric_and_whole_for_the_same_words(first: str, second: str) -> None:
    assert similarity(first, second) == similarity(second, first)
    assert 0 <= similarity(first, second) <= 1
    same = bool(normalised(first)) and normalised(first) == normalised(second)
    assert (similarity(first, second) == 1) == same


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Ada B. Roe", "A. B. Roe", True),
        ("Roe A", "Ada Roe", True),
        ("Zoë Müller", "Z. Muller", True),
        ("Ada Roe", "Ben Roe", False),
        ("A. Lee", "A. Roe", False),  # an initial is no name
        ("", "Roe", False),
    ],
)
def test_names(first: str, second: str, expected: bool) -> None:
    assert same_author(first, second) is same_author(second, first) is expected
