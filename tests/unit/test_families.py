"""Each family is a pure function of a context, its sentence, the papers it cites and the bounds."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from citerec.diagnostics.families import (
    FAMILIES,
    Bounds,
    Facts,
    Sentence,
    compute_bounds,
    families_named,
    read_sentences,
    strata,
)
from citerec.errors import InputError
from citerec.records import Context, Paper

# 100 sentences of 10 to 29 words, and one of 500: mean 19.5, standard deviation 5.77 without the outlier.
LENGTHS = [*(length for length in range(10, 30) for _ in range(5)), 500]
CENSUS = {
    **{("Biology", 2003, count): 10 for count in range(1, 25)},
    ("Art", 2003, 7): 3,
    ("History", 2004, 9): 4,
    (None, 2003, 8): 50,
}
BOUNDS = compute_bounds(LENGTHS, CENSUS)
PAPER = Paper("1", year=2003, fields_of_study=("Biology", "Medicine"), citation_count=7)
ART = replace(PAPER, fields_of_study=("Art", "Biology"))


def facts(length: int = 20, position: int = 20, *papers: Paper, intent: str | None = None, tag: str = "") -> Facts:
    sentence = Sentence(length, position, tag or None, tag or None)
    return Facts(Context(text="… <REF>", intent=intent), sentence, papers or (PAPER,), BOUNDS)


def test_bounds() -> None:
    length, field, counts = BOUNDS.length, BOUNDS.field, BOUNDS.citation_count
    assert length is not None and field is not None and counts is not None
    assert (length.sentences, length.outliers, length.mean) == (101, 1, 19.5)
    assert (length.low, length.high) == pytest.approx((13.734, 25.266), abs=0.001)
    assert (field.fields, field.low_resource) == (("Biology",), ("Art", "History"))  # 3 and 4 of 247 papers
    assert "Art" not in counts.cells
    published = compute_bounds(LENGTHS, {("Art", 2003, 7): 90, ("Biology", 2003, 7): 1}, "published").field
    assert published is not None and (published.fields, published.low_resource) == (("Biology",), ("Art",))
    assert compute_bounds([], {}) == Bounds() and compute_bounds([7, 7, 7], {}).length is None
    fields = strata()["field"]
    assert (len(fields["published"]), len(fields["published_low_resource"])) == (7, 11)


def label(family: str, given_facts: Facts, *, conditions: bool = True) -> str | None:
    return FAMILIES[family].label(given_facts, conditions=conditions)


def test_classes_of_sentences() -> None:
    lengths = {1: None, 2: "short", 13: "short", 14: "medium", 25: "medium", 26: "long", 500: None}
    assert {length: label("length", facts(length, length)) for length in lengths} == lengths
    assert label("length", facts(20, 19)) is label("location", facts(40, 1)) is None  # conditions that are not met
    assert label("length", facts(20, 19), conditions=False) == "medium"
    places = {1: "first", 5: "first", 6: "middle", 10: "middle", 11: "last", 15: "last"}
    assert {place: label("location", facts(15, place)) for place in places} == places
    intents = {"background": "background", "methodology": "method", "Result": "result", "x": None}
    assert {intent: label("intent", facts(intent=intent)) for intent in intents} == intents
    tags = {"VBZ": "verb", "NNPS": "noun", "JJR": "adjective", "RB": "adverb", "PRP$": "pronoun", "EX": "pronoun"}
    tags |= {"TO": "preposition", "DT": "others", "": None}
    for family in ("pos_before", "pos_after"):
        assert {tag: label(family, facts(20, 10, tag=tag)) for tag in tags} == tags


def test_classes_of_papers() -> None:
    assert label("low_resource", facts(20, 10, ART)) is None  # the marker is not at the end
    assert label("low_resource", facts(20, 10, ART), conditions=False) == "Art"
    years = {None: None, 1995: None, 1996: "1996–2000", 2000: "1996–2000", 2020: "2016–2020", 2021: None}
    assert {year: label("year", facts(20, 20, replace(PAPER, year=year))) for year in years} == years
    # By the first field named; small fields are low-resource ones, compared with all papers of those years.
    families = ("field", "low_resource", "citation_count")
    frequent = replace(ART, citation_count=24)
    assert [label(family, facts()) for family in families] == ["Biology", None, "1"]
    assert [label(family, facts(20, 20, frequent)) for family in families] == [None, "Art", "9"]
    # The papers of a group must agree.
    later = replace(ART, paper_id="2", year=2004)
    assert label("field", facts(20, 20, PAPER, later)) is None
    assert label("year", facts(20, 20, PAPER, later)) == "2001–2005"
    assert label("year", facts(20, 20, PAPER, replace(later, year=2016))) is None


@given(st.lists(st.integers(5, 60), min_size=10, max_size=300))
def test_ties_stay_together_and_groups_rise_with_the_count(counts: list[int]) -> None:
    bounds = compute_bounds([], Counter(("Biology", 2003, count) for count in counts)).citation_count
    assert bounds is not None
    papers = [replace(PAPER, citation_count=count) for count in sorted(counts)]
    groups = [int(bounds.group_of_paper(paper) or -1) for paper in papers]
    assert groups == sorted(groups)
    assert set(groups) <= set(range(10))
    for group in set(groups):
        members = [count for count, found in zip(sorted(counts), groups, strict=True) if found == group]
        # A tenth, and what ties with its ends.
        assert len(members) <= len(counts) / 10 + counts.count(members[0]) + counts.count(members[-1])


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_family_keeps_the_contract(name: str) -> None:
    family = FAMILIES[name]
    assert family.name == name and family.title and all(condition.name for condition in family.conditions)
    assert len(set(family.classes(BOUNDS))) == len(family.classes(BOUNDS)) > 0
    for bounds in (BOUNDS, Bounds()):
        for papers in ((), (PAPER,), (PAPER, Paper("2"))):
            given_facts = Facts(Context(text="<REF>", intent="method"), Sentence(1, 1), papers, bounds)
            found = {family.label(given_facts, conditions=conditions) for conditions in (True, False)}
            assert found <= {None, *family.classes(bounds)}
    for field in ("Biology", "Art", "Astrology"):
        assert set(family.classes_in(field, BOUNDS)) <= set(family.classes(BOUNDS))
    with pytest.raises(InputError, match=rf"no family '{name}x'. Did you mean {name}"):
        families_named([f"{name}x"])


def read(text: str, model: str | None = None) -> Sentence:
    (sentence,) = read_sentences([Context(text=text)], model)
    return sentence


@pytest.mark.parametrize(
    ("text", "length", "position"),
    [
        ("As shown by <REF>, this works.", 6, 4),
        ("This works (<REF>).", 3, 3),
        ("<REF> did it.", 3, 1),
        ("Tagged by TnT<REF>.", 4, 4),  # glued to a word
        ("A state-of-the-art method <REF> !", 7, 7),  # spaCy parts compounds
        ("It doesn't – … <REF>", 4, 4),
        ("It works <REF>.¹", 3, 3),
    ],
)
def test_words_are_tokens_with_a_letter_or_digit(text: str, length: int, position: int) -> None:
    assert read(text) == Sentence(length, position)
