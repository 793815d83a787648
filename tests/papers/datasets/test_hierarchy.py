"""Subsections from the numbers of headlines."""

import pytest
from hypothesis import given, strategies as st

from citerec.contexts.sections import Section, cleaned, hierarchy, latin_share, with_number


def nested(*headlines: str) -> list[object]:
    """Headlines as they nest: a text, or a text and the list of those in it."""

    def shown(section: Section) -> object:
        name = f"{section.number} {section.headline}".strip()
        return (name, [shown(inner) for inner in section.sections]) if section.sections else name

    sections = [with_number(headline) for headline in headlines]
    for place, section in enumerate(sections):
        section.paragraphs.append(place)
    return [shown(section) for section in hierarchy(sections)]


def test_subsections_go_into_their_sections() -> None:
    headlines = ("1 Introduction", "2. Data", "2.1 Corpora", "2.1.1 News", "2.2 Labels", "3 Results")
    assert nested(*headlines) == [
        "1 Introduction",
        ("2 Data", [("2.1 Corpora", ["2.1.1 News"]), "2.2 Labels"]),
        "3 Results",
    ]


def test_roman_numbers_letters_and_appendices() -> None:
    headlines = ("I. Introduction", "II. Method", "II.1 Model", "II.2 Loss", "III. Results", "A. Proofs", "A.1 Lemma")
    assert nested(*headlines) == [
        "I Introduction",
        ("II Method", ["II.1 Model", "II.2 Loss"]),
        "III Results",
        ("A Proofs", ["A.1 Lemma"]),
    ]
    headlines = ("I. Introduction", "II. Method", "A. Model", "B. Loss", "III. Results", "A. Data", "IV. Conclusion")
    assert nested(*headlines) == [
        "I Introduction",
        ("II Method", ["A Model", "B Loss"]),
        ("III Results", ["A Data"]),
        "IV Conclusion",
    ]
    assert nested("C. Cats", "D. Dogs", "E. Eels") == ["C Cats", "D Dogs", "E Eels"]  # no roman numbers here


def test_headlines_without_a_number_go_into_the_section_before_them() -> None:
    headlines = ("Abstract", "1 Introduction", "2 Method", "2.1 Model", "Training", "3 Results", "Acknowledgments")
    assert nested(*headlines) == [
        "Abstract",
        "1 Introduction",
        ("2 Method", [("2.1 Model", ["Training"])]),
        "3 Results",
        "Acknowledgments",
    ]


@pytest.mark.parametrize(
    "headlines",
    [
        ("1 Introduction", "2 Method", "3 Related Work", "Conclusion", "Author Contributions"),
        ("1 Introduction", "2 Method", "3 Related Work", "Our Own Words", "More of Them"),  # nothing tells more
        ("1 Introduction", "2 Related Work", "Method", "4 Results"),
        ("1 Introduction", "2 Related Work", "Rivers in Maps", "4 Results"),  # 3 is missing
        ("1 Introduction", "2 Method", "3 Related Work", "9 Conclusion", "12 Rivers"),  # they do not follow
    ],
)
def test_a_section_ends_where_the_next_begins(headlines: tuple[str, ...]) -> None:
    assert nested(*headlines) == list(headlines)


def test_what_stands_between_numbers_of_a_section_is_in_it() -> None:
    headlines = ("1 INTRODUCTION", "2 METHOD", "MAPS", "2.1 Model", "Results", "2.2 Loss", "3 END")
    method = ("2 METHOD", ["MAPS", ("2.1 Model", ["Results"]), "2.2 Loss"])
    assert nested(*headlines) == ["1 INTRODUCTION", method, "3 END"]


def test_numbers_without_a_space_and_roman_numbers_above_ten() -> None:
    assert nested("1.Introduction", "2.Related Work", "2.1.Rivers", "3.End") == [
        "1 Introduction",
        ("2 Related Work", ["2.1 Rivers"]),
        "3 End",
    ]
    roman = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV"]
    headlines = [f"{number} Words" for number in roman]
    assert nested(*headlines) == headlines


def test_the_number_beside_a_headline_counts() -> None:
    section = with_number("RELATED  WORK", "2.")
    assert (section.number, section.headline) == ("2", "RELATED WORK")
    section = with_number("2.1 Models", "2.1")
    assert (section.number, section.headline) == ("2.1", "Models")
    section = with_number("2D Models", "2")
    assert (section.number, section.headline) == ("2", "2D Models")
    assert with_number("A Survey of Surveys").number == ""
    assert with_number("A. Proofs").number == "A"
    assert with_number("3D Vision").number == ""


def test_debris_is_taken_out() -> None:
    sections = [
        Section("", "", [0]),
        Section("* 44 23 y 6", "", [1]),
        Section("Method", "2", [], [Section("Model", "2.1", [2]), Section("Nothing", "2.2", [3])]),
        Section("Empty", "3", [], [Section("Too", "3.1", [3])]),
    ]
    kept = cleaned(sections, words=[9, 9, 9, 0])
    assert kept == [Section("Method", "2", [], [Section("Model", "2.1", [2])])]


def test_share_of_latin_letters() -> None:
    assert latin_share("Méthode") == 1
    assert latin_share("Методы") == 0
    assert latin_share("H4 23 y 6") == pytest.approx(2 / 6)
    assert latin_share(" ") == 0


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
    assert [place for each in cleaned(tree, [1] * len(flat)) for place in each.all_paragraphs()] == sorted(
        place for each in cleaned(tree, [1] * len(flat)) for place in each.all_paragraphs()
    )


@st.composite
def outlines(draw: st.DrawFn, depth: int = 3) -> list[tuple[int, ...]]:
    """The numbers of a well-numbered paper, in order."""

    def below(number: tuple[int, ...], left: int) -> list[tuple[int, ...]]:
        inner = draw(st.integers(0, 3)) if left else 0
        return [number, *(each for at in range(1, inner + 1) for each in below((*number, at), left - 1))]

    return [each for at in range(1, draw(st.integers(3, 5)) + 1) for each in below((at,), depth - 1)]


@given(outlines())
def test_a_well_numbered_paper_nests_as_its_numbers_say(outline: list[tuple[int, ...]]) -> None:
    tree = hierarchy([Section("Headline", ".".join(map(str, number))) for number in outline])

    def check(sections: list[Section], above: str) -> None:
        for section in sections:
            assert section.number.rpartition(".")[0] == above
            check(section.sections, section.number)

    check(tree, "")
