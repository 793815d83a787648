"""Each family is a pure function of a context, its sentence, the papers it cites and the bounds."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from citerec.diagnostics.families import FAMILIES, Bounds, Facts, Sentence, compute_bounds, families_named, strata
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
    rules = strata()
    assert (rules["length"]["outlier_z"], rules["field"]["least_share"], rules["citation_count"]["least"]) == (
        3,
        0.03,
        5,
    )
    assert (len(rules["field"]["published"]), len(rules["field"]["published_low_resource"])) == (7, 11)


@pytest.mark.parametrize(
    ("family", "given_facts", "expected"),
    [
        *(
            ("length", facts(length, length), label)
            for length, label in ((1, None), (2, "short"), (13, "short"), (14, "medium"), (25, "medium"), (26, "long"))
        ),
        ("length", facts(500, 500), None),  # an outlier
        ("length", facts(20, 19), None),  # the marker is not at the end
        *(
            ("location", facts(15, position), label)
            for position, label in ((1, "first"), (5, "first"), (6, "middle"), (10, "middle"), (11, "last"))
        ),
        ("location", facts(40, 1), None),  # no medium sentence
        *(
            ("year", facts(20, 20, replace(PAPER, year=year)), label)
            for year, label in ((1995, None), (1996, "1996–2000"), (2000, "1996–2000"), (2020, "2016–2020"))
        ),
        ("year", facts(20, 20, replace(PAPER, year=None)), None),
        ("field", facts(), "Biology"),  # the first one named
        ("field", facts(20, 20, ART), None),
        ("low_resource", facts(20, 20, ART), "Art"),
        ("low_resource", facts(20, 10, ART), None),
        ("low_resource", facts(), None),
        # The papers of a group must agree.
        ("field", facts(20, 20, PAPER, ART), None),
        ("year", facts(20, 20, PAPER, replace(ART, year=2004)), "2001–2005"),
        ("year", facts(20, 20, PAPER, replace(ART, year=2016)), None),
        ("intent", facts(intent="methodology"), "method"),
        ("intent", facts(intent="Result"), "result"),
        ("intent", facts(intent="x"), None),
        ("intent", facts(20, 3, intent="background"), None),
        *(
            (family, facts(20, 10, tag=tag), label)
            for family in ("pos_before", "pos_after")
            for tag, label in (
                ("VBZ", "verb"),
                ("NNPS", "noun"),
                ("JJR", "adjective"),
                ("RB", "adverb"),
                ("PRP$", "pronoun"),
                ("EX", "pronoun"),
                ("TO", "preposition"),
                ("DT", "others"),
                ("", None),
            )
        ),
        ("pos_after", facts(20, 20, tag="VBZ"), None),  # not in the middle
        # Few papers of a field are compared with those of all fields.
        ("citation_count", facts(20, 20, replace(ART, citation_count=24)), "9"),
        ("citation_count", facts(20, 20, replace(ART, citation_count=24, fields_of_study=())), "9"),
    ],
)
def test_classes(family: str, given_facts: Facts, expected: str | None) -> None:
    assert FAMILIES[family].label(given_facts, conditions=True) == expected


def test_conditions_may_be_left_out() -> None:
    assert FAMILIES["length"].label(facts(20, 19), conditions=False) == "medium"
    assert FAMILIES["location"].label(facts(40, 1), conditions=False) == "first"


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
    ("family", "known", "expected"),
    [
        *(
            ("cited_before", before, label)
            for before, label in ((None, None), ((), "first"), (("2",), "first"), (("1", "2"), "again"), (("1",), None))
        ),
        *(
            ("cold_start", counts, label)
            for counts, label in ((None, None), ((), None), ((0,), "0"), ((4, 2), "1–4"), ((5,), "5+"), ((0, 1), None))
        ),
    ],
)
def test_families_that_are_found_on_the_spot(family: str, known: Any, expected: str | None) -> None:
    cited = ("1", "2") if known and "1" in known else ("1",)
    context = Context(text="<REF>", cited_ids=cited, cited_before=known if family == "cited_before" else None)
    given_facts = Facts(context, Sentence(1, 1), (), BOUNDS, known if family == "cold_start" else None)
    assert FAMILIES[family].label(given_facts, conditions=True) == expected


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


def test_families_by_name() -> None:
    assert [family.name for family in families_named(["location", "field"])] == ["field", "location"]
    assert families_named([]) == tuple(family for _, family in FAMILIES.items())
    with pytest.raises(InputError, match=r"no family 'locaton'. Did you mean location\?"):
        families_named(["locaton"])
