"""Subsections from the numbers of headlines; titles and names that are alike."""

import pytest
from hypothesis import given, strategies as st

from citerec.contexts.sections import Section, with_number
from citerec.corpus.matching import containment, normalised, same_author, similarity
from citerec.papers.common.sections import hierarchy


def nested(*headlines: str) -> list[object]:
    """Headlines as they nest: a text, or a text and the list of those in it."""

    def shown(section: Section) -> object:
        name = f"{section.number} {section.headline}".strip()
        return (name, [shown(inner) for inner in section.sections]) if section.sections else name

    sections = [with_number(headline) for headline in headlines]
    for place, section in enumerate(sections):
        section.paragraphs.append(place)
    return [shown(section) for section in hierarchy(sections)]


ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV"]


@pytest.mark.parametrize(
    ("headlines", "expected"),
    [
        (["1 Words", "2. Data", "2.1 Corpora", "2.1.1 News", "2.2 Labels", "3 End"],
         ["1 Words", ("2 Data", [("2.1 Corpora", ["2.1.1 News"]), "2.2 Labels"]), "3 End"]),
        (["1.Words", "2.Work", "2.1.Rivers", "3.End"], ["1 Words", ("2 Work", ["2.1 Rivers"]), "3 End"]),
        (["I. Words", "II. Method", "II.1 Model", "II.2 Loss", "III. Results", "A. Proofs", "A.1 Lemma"],
         ["I Words", ("II Method", ["II.1 Model", "II.2 Loss"]), "III Results", ("A Proofs", ["A.1 Lemma"])]),
        (["I. Words", "II. Method", "A. Model", "B. Loss", "III. Results", "A. Data", "IV. End"],
         ["I Words", ("II Method", ["A Model", "B Loss"]), ("III Results", ["A Data"]), "IV End"]),
        (["C. Cats", "D. Dogs", "E. Eels"], ["C Cats", "D Dogs", "E Eels"]),  # no roman numbers here
        ([f"{number} Words" for number in ROMAN], [f"{number} Words" for number in ROMAN]),
        # Headlines without a number go into the section before them, and those between its numbers too.
        (["Abstract", "1 Words", "2 Method", "2.1 Model", "Training", "3 Results", "Acknowledgments"],
         ["Abstract", "1 Words", ("2 Method", [("2.1 Model", ["Training"])]), "3 Results", "Acknowledgments"]),
        (["1 WORDS", "2 METHOD", "MAPS", "2.1 Model", "Results", "2.2 Loss", "3 END"],
         ["1 WORDS", ("2 METHOD", ["MAPS", ("2.1 Model", ["Results"]), "2.2 Loss"]), "3 END"]),
        # A section ends where the next begins.
        (["1 Words", "2 Method", "3 Related Work", "Conclusion", "Author Contributions"], None),
        (["1 Words", "2 Related Work", "Rivers in Maps", "4 Results"], None),  # 3 is missing
        (["1 Words", "2 Method", "3 Related Work", "9 Conclusion", "12 Rivers"], None),  # they do not follow
    ],
)  # fmt: skip
def test_sections_nest_by_their_numbers(headlines: list[str], expected: list[object] | None) -> None:
    assert nested(*headlines) == (expected or headlines)


@pytest.mark.parametrize(
    ("headline", "beside", "number", "read"),
    [
        ("RELATED  WORK", "2.", "2", "RELATED WORK"),
        ("2.1 Models", "2.1", "2.1", "Models"),
        ("2D Models", "2", "2", "2D Models"),
        ("A Survey of Surveys", "", "", "A Survey of Surveys"),
        ("A. Proofs", "", "A", "Proofs"),
        ("3D Vision", "", "", "3D Vision"),
    ],
)
def test_the_number_of_a_headline(headline: str, beside: str, number: str, read: str) -> None:
    section = with_number(headline, beside)
    assert (section.number, section.headline) == (number, read)


NUMBERS = st.one_of(
    st.just(""),
    st.lists(st.integers(1, 4), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts))),
    st.sampled_from(["I", "II", "III", "A", "B", "A.1", "0", "1.2.x", "..", "99.99.99"]),
)
HEADLINES = st.lists(st.tuples(NUMBERS, st.sampled_from(["Method", "and so on", "References", ""])), max_size=25)


def walked(sections: list[Section]) -> list[Section]:
    return [each for section in sections for each in (section, *walked(section.sections))]


@given(HEADLINES)
def test_nothing_is_lost_and_the_order_stays(headlines: list[tuple[str, str]]) -> None:
    flat = [Section(headline, number, [place]) for place, (number, headline) in enumerate(headlines)]
    tree = hierarchy(flat)
    assert [(each.number, each.headline, each.paragraphs) for each in walked(tree)] == [
        (each.number, each.headline, each.paragraphs) for each in flat
    ]
    assert [place for section in tree for place in section.all_paragraphs()] == list(range(len(flat)))
    assert all(not section.sections for section in flat)  # what was given is as it was


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
