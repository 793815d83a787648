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
    names_of_groups,
    strata,
)
from citerec.errors import InputError
from citerec.records import Context, Paper
from tests.conftest import ROOT

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


def facts(
    length: int = 20, position: int = 20, *papers: Paper, intent: str | None = None, tags: tuple[str, str] = ("", "")
) -> Facts:
    sentence = Sentence(length, position, tags[0] or None, tags[1] or None)
    return Facts(Context(text="… <REF>", intent=intent), sentence, papers or (PAPER,), BOUNDS)


def label(family: str, given_facts: Facts, *, conditions: bool = True) -> str | None:
    return FAMILIES[family].label(given_facts, conditions=conditions)


def test_bounds_of_length_are_mean_and_deviation_without_outliers() -> None:
    assert BOUNDS.length is not None
    assert (BOUNDS.length.sentences, BOUNDS.length.outliers) == (101, 1)
    assert BOUNDS.length.mean == 19.5
    assert BOUNDS.length.deviation == pytest.approx(5.766, abs=0.001)
    assert BOUNDS.length.low == pytest.approx(13.734, abs=0.001)
    assert BOUNDS.length.high == pytest.approx(25.266, abs=0.001)


@pytest.mark.parametrize(
    ("length", "expected"),
    [(1, None), (2, "short"), (13, "short"), (14, "medium"), (25, "medium"), (26, "long"), (500, None)],
)
def test_length(length: int, expected: str | None) -> None:
    assert label("length", facts(length, length)) == expected


def test_length_holds_the_marker_at_the_end() -> None:
    assert label("length", facts(20, 19)) is None
    assert label("length", facts(20, 19), conditions=False) == "medium"


@pytest.mark.parametrize(
    ("position", "length", "expected"),
    [(1, 15, "first"), (5, 15, "first"), (6, 15, "middle"), (10, 15, "middle"), (11, 15, "last"), (15, 15, "last")],
)
def test_location_is_by_thirds(position: int, length: int, expected: str) -> None:
    assert label("location", facts(length, position)) == expected


def test_location_holds_the_length_medium() -> None:
    assert label("location", facts(40, 1)) is None
    assert label("location", facts(40, 1), conditions=False) == "first"


@pytest.mark.parametrize(
    ("year", "expected"),
    [(1995, None), (1996, "1996–2000"), (2000, "1996–2000"), (2001, "2001–2005"), (2020, "2016–2020"), (2021, None)],
)
def test_year(year: int, expected: str | None) -> None:
    assert label("year", facts(20, 20, replace(PAPER, year=year))) == expected
    assert label("year", facts(20, 20, replace(PAPER, year=None))) is None


def test_a_field_counts_by_the_first_one_named_and_small_ones_are_low_resource() -> None:
    assert BOUNDS.field is not None
    assert BOUNDS.field.fields == ("Biology",)
    assert BOUNDS.field.low_resource == ("Art", "History")  # 3 and 4 of 247 papers
    art = replace(PAPER, fields_of_study=("Art", "Biology"))
    assert label("field", facts()) == "Biology"
    assert label("field", facts(20, 20, art)) is None
    assert label("low_resource", facts(20, 20, art)) == "Art"
    assert label("low_resource", facts(20, 10, art)) is None  # the marker is not at the end
    assert label("low_resource", facts()) is None


def test_papers_of_a_group_must_agree() -> None:
    medicine = replace(PAPER, paper_id="2", fields_of_study=("Medicine",), year=2004)
    assert label("field", facts(20, 20, PAPER, medicine)) is None
    assert label("year", facts(20, 20, PAPER, medicine)) == "2001–2005"
    assert label("year", facts(20, 20, PAPER, replace(medicine, year=2016))) is None


def test_the_benchmarks_own_list_of_fields() -> None:
    bounds = compute_bounds(LENGTHS, {("Art", 2003, 7): 90, ("Biology", 2003, 7): 1}, "published")
    assert bounds.field is not None
    assert (bounds.field.fields, bounds.field.low_resource) == (("Biology",), ("Art",))


@pytest.mark.parametrize(
    ("intent", "expected"),
    [("background", "background"), ("methodology", "method"), ("method", "method"), ("Result", "result"), ("x", None)],
)
def test_intent(intent: str, expected: str | None) -> None:
    assert label("intent", facts(intent=intent)) == expected
    assert label("intent", facts(20, 3, intent=intent)) is None


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("VBZ", "verb"), ("NNPS", "noun"), ("JJR", "adjective"), ("RB", "adverb"), ("PRP$", "pronoun"),
     ("TO", "preposition"), ("EX", "pronoun"), ("CC", "others"), ("DT", "others")],
)  # fmt: skip
def test_parts_of_speech(tag: str, expected: str) -> None:
    assert label("pos_before", facts(20, 10, tags=(tag, ""))) == expected
    assert label("pos_after", facts(20, 10, tags=("", tag))) == expected
    assert label("pos_after", facts(20, 20, tags=("", tag))) is None  # not in the middle
    assert label("pos_before", facts(20, 10)) is None  # no tagger


def test_citation_counts_are_cut_in_ten_of_equal_size() -> None:
    assert BOUNDS.citation_count is not None
    groups = [label("citation_count", facts(20, 20, replace(PAPER, citation_count=count))) for count in range(1, 25)]
    assert groups[:4] == [None] * 4  # fewer than five citations
    assert groups[4:] == [str(group) for group in range(10) for _ in range(2)]


def test_small_cells_are_cut_with_all_fields_of_those_years() -> None:
    assert BOUNDS.citation_count is not None
    assert "Art" not in BOUNDS.citation_count.cells
    art = Paper("3", year=2003, fields_of_study=("Art",), citation_count=24)
    assert label("citation_count", facts(20, 20, art)) == "9"
    assert label("citation_count", facts(20, 20, replace(art, fields_of_study=()))) == "9"


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


@pytest.mark.parametrize(
    ("before", "expected"), [(None, None), ((), "first"), (("2",), "first"), (("1", "2"), "again"), (("1",), None)]
)
def test_cited_before(before: tuple[str, ...] | None, expected: str | None) -> None:
    cited = ("1", "2") if before and "1" in before else ("1",)
    given_facts = Facts(Context(text="<REF>", cited_ids=cited, cited_before=before), Sentence(1, 1), (), BOUNDS)
    assert label("cited_before", given_facts) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [(None, None), ((), None), ((0,), "0"), ((1,), "1–4"), ((4, 2), "1–4"), ((5,), "5+"), ((0, 1), None)],
)
def test_cold_start(counts: tuple[int, ...] | None, expected: str | None) -> None:
    assert label("cold_start", Facts(Context(text="<REF>"), Sentence(1, 1), (), BOUNDS, counts)) == expected


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_family_keeps_the_contract(name: str) -> None:
    family = FAMILIES[name]
    assert family.name == name and family.title
    assert len(set(family.classes(BOUNDS))) == len(family.classes(BOUNDS)) > 0
    for bounds in (BOUNDS, Bounds()):
        for papers in ((), (PAPER,), (PAPER, Paper("2"))):
            given_facts = Facts(Context(text="<REF>", intent="method"), Sentence(1, 1), papers, bounds)
            for conditions in (True, False):
                found = family.label(given_facts, conditions=conditions)
                assert found == family.label(given_facts, conditions=conditions)
                assert found is None or found in family.classes(bounds)
    for field in ("Biology", "Art", "Astrology"):
        assert set(family.classes_in(field, BOUNDS)) <= set(family.classes(BOUNDS))
        assert family.classes_in(field, Bounds()) == ()
    assert all(condition.name for condition in family.conditions)
    docs = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert f"`{name}`" in docs, f"{name} is not in the docs"
    with pytest.raises(InputError, match=f"there is no family '{name}x'. Did you mean {name}"):
        families_named([f"{name}x"])


def test_without_data_there_are_no_bounds() -> None:
    assert compute_bounds([], {}) == Bounds()
    assert compute_bounds([7, 7, 7], {}).length is None


def test_families_by_name() -> None:
    assert [family.name for family in families_named(["location", "field"])] == ["field", "location"]
    assert families_named([]) == tuple(family for _, family in FAMILIES.items())
    with pytest.raises(InputError, match=r"no family 'locaton'. Did you mean location\?"):
        families_named(["locaton"])


def test_every_bound_of_the_benchmark_is_in_the_versioned_file() -> None:
    rules = strata()
    assert rules["version"] == 1
    assert (rules["length"]["outlier_z"], rules["field"]["least_share"]) == (3, 0.03)
    assert rules["citation_count"]["least"] == 5
    assert names_of_groups("year") == ("1996–2000", "2001–2005", "2006–2010", "2011–2015", "2016–2020")
    assert len(rules["field"]["published"]) == 7
    assert len(rules["field"]["published_low_resource"]) == 11
