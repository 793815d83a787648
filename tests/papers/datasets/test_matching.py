"""Bib entries matched to papers by title, year and author."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec.contexts.s2orc import BibEntry, FullText
from citerec.corpus.matching import containment, normalised, same_author, similarity
from citerec.index.build import build_index
from citerec.papers.oarelatedwork.data import alike, linked, readings
from citerec.records import Paper
from citerec.retrieve.opened import OpenIndex, title_search
from tests.conftest import write_lines

RIVERS = Paper("1", "Rivers, Lakes and Maps: A Survey", year=2004, authors=("Ada B. Roe", "Wei Lee"))
LAKES = Paper("2", "Lakes Counted by Night", year=2001, authors=("Zoë Müller",))
TITLES = st.text("abc é-.", max_size=12)


def test_words_are_ascii_and_small() -> None:
    assert normalised("Co-Citation: Über-Maps, (2nd)") == {"co", "citation", "uber", "maps", "2nd"}
    assert normalised("…") == frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [("Straße", "Strasse"), ("Timmermann", "TIMMERMAN"), ("Søren Łuk", "Soren Luk"), ("Encyclopædia", "Encyclopaedia")],
)
def test_other_spellings_are_the_same_words(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_words_of_other_scripts_are_words() -> None:
    assert similarity("Карта рек", "карта рек") == 1
    assert similarity("Карта рек", "地図") == 0


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
        ("Ada B. Roe", "Roe", True),
        ("Roe A", "Ada Roe", True),
        ("Zoë Müller", "Z. Muller", True),
        ("Ada Roe", "Ben Roe", False),
        ("A. Lee", "A. Roe", False),  # an initial is no name
        ("", "Roe", False),
    ],
)
def test_names(first: str, second: str, expected: bool) -> None:
    assert same_author(first, second) is same_author(second, first) is expected


@pytest.mark.parametrize(
    "entry",
    [
        "A. B. Roe and W. Lee. Rivers, lakes and maps: a survey. In Proc. of MAPS, pages 1-9, 2003.",
        "Roe, A., Lee, W., Rivers, lakes and maps: a survey, MAPS 04, pp. 1-9, 2004.",
        "Roe, A. and Lee, W. (2006). Rivers, Lakes and Maps. Maps 3(1).",
        'A. Roe, W. Lee, "Rivers, lakes, and maps: A survey," Journal of Maps, 2004.',
        "Lee, W. et al.: Rivers, lakes and maps: a survey.",  # no year: none speaks against it
    ],
)
def test_entries_of_many_styles_are_read(entry: str) -> None:
    assert alike(entry, RIVERS) > 0
    assert alike(entry, LAKES) == 0


@pytest.mark.parametrize(
    "entry",
    [
        "A. Roe. Rivers, lakes and maps: a survey. 1999.",  # five years before
        "B. Kim. Rivers, lakes and maps: a survey. 2004.",  # of another author
        "A. Roe. Rivers of the north. 2004.",
        "Rivers, lakes and maps: a survey. A. Roe, 2004.",  # an author stands before the title
        "",
    ],
)
def test_what_differs_does_not_match(entry: str) -> None:
    assert alike(entry, RIVERS) == 0


@given(st.text('ab A.,:;"& ', max_size=40))
def test_a_reading_is_a_piece_of_its_entry(entry: str) -> None:
    for reading in readings(entry):
        assert reading.title in entry
        assert all(name in entry for name in reading.authors)


def test_entries_without_a_match_are_linked_through_the_index(tmp_path: Path) -> None:
    records = [
        {"paper_id": int(paper.paper_id), "title": paper.title, "year": paper.year, "authors": list(paper.authors)}
        for paper in (RIVERS, LAKES)
    ]
    build_index([write_lines(tmp_path / "papers.jsonl", records)], tmp_path / "index")
    entries = {
        "b1": BibEntry(None, "A. Roe and W. Lee. Rivers, lakes and maps: a survey. 2004."),
        "b2": BibEntry("77", "Z. Müller. Lakes counted by night. 2001."),  # has one
        "b3": BibEntry(None, "Z. Müller. Lakes counted by night. 2001."),  # not asked for
        "b4": BibEntry(None, "B. Kim. Rivers. 2004."),
        "b5": BibEntry(None, "..."),
    }
    text = FullText("9", "Text.", (), None, (), entries, ())
    with contextlib.closing(OpenIndex.open(tmp_path / "index")) as index:
        search = title_search(index)
        found = linked(text, ["b1", "b2", "b4", "b5", "b9"], search, index.store).bib_entries
        itself = linked(FullText("1", "Text.", (), None, (), entries, ()), ["b1"], search, index.store).bib_entries
    assert {entry_id: entry.paper_id for entry_id, entry in found.items()} == {
        "b1": "1", "b2": "77", "b3": None, "b4": None, "b5": None,
    }  # fmt: skip
    assert itself["b1"].paper_id is None  # no paper cites itself
