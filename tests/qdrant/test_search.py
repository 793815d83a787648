"""Systems on Qdrant find what those on Lucene and FAISS find, with the same scores, under the same filters."""

import json
from pathlib import Path

import numpy as np
import pytest

from citerec import Context, Filters, Recipe, Recommender
from citerec.errors import FilterError, IndexUnusableError, QueryError, SettingsError
from citerec.records import NO_FILTERS
from citerec.retrieve.run import Run
from tests.conftest import DEMO

pytestmark = pytest.mark.slow

# Lucene adds up in 64 bits, Qdrant in 32, and fusion scales what is left between two scores.
NEAR = {"rel": 1e-4, "abs": 1e-6}
PAIRS = [
    ("bm25", "qdrant-bm25"),
    ("lucene", "qdrant_with_citances"),
    ("citances", "qdrant-citances"),
    ("dense", "qdrant-dense"),
    ("hybrid", "qdrant-hybrid"),
]
FILTERS = [
    NO_FILTERS,
    Filters(year_from=1990, year_to=2012),
    Filters(fields=("computer science", "Biology"), min_citations=2000),
    Filters(venues=("Nature", "Communications of the ACM", "information processing")),
    Filters(exclude=("900000041", "900000042"), as_of_year=2001),
    Filters(citing_ids=("later-3",)),
]


def contexts(count: int) -> list[Context]:
    lines = (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines()[::9][:count]
    found = [json.loads(line)["text"] for line in lines]
    years = [None, 1985, 2003, 2024]
    return [
        Context(text=text, context_id=f"c{number}", citing_year=years[number % 4], cited_before=("900000007",))
        for number, text in enumerate(found)
    ]


def recipe(name: str) -> Recipe:
    if name == "qdrant_with_citances":
        return Recipe.load("qdrant-bm25", ["qdrant_bm25.weights.citances=1.8"])
    return Recipe.load(name, ["lucene.engine=lucene"] if name in ("lucene", "hybrid") else [])


def overlap(one: Run, other: Run, k: int = 10) -> float:
    shares = [len({*one.top(key, k)} & {*other.top(key, k)}) / len(one.top(key, k)) for key in one if one[key]]
    return float(np.mean(shares))


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_the_same_papers_are_found_with_the_same_scores(pushed: Path, here: str, there: str) -> None:
    asked = contexts(8)
    with Recommender.open(pushed, recipe(here)) as ours, Recommender.open(pushed, recipe(there)) as theirs:
        for number, filters in enumerate(FILTERS):
            part = asked if number == 0 else asked[number : number + 2]
            expected, found = ours.search_many(part, 20, filters), theirs.search_many(part, 20, filters)
            assert sum(map(len, expected.values())) > 0
            for key, scores in expected.items():
                assert len(found[key]) == len(scores)
                np.testing.assert_allclose(list(found[key].values()), list(scores.values()), rtol=1e-4, atol=1e-6)
                for paper_id in found[key].keys() & scores.keys():
                    assert found[key][paper_id] == pytest.approx(scores[paper_id], **NEAR)
            assert overlap(expected, found) >= 0.99


def test_the_citing_sentence_that_counts_is_the_same(pushed: Path) -> None:
    context = Context(text="Two antiparallel strands wind around a common axis <REF>.", citing_year=2020)
    with Recommender.open(pushed, "citances") as ours, Recommender.open(pushed, "qdrant-citances") as theirs:
        expected, found = ours.search(context, 5), theirs.search(context, 5)
    assert expected.hits
    assert [hit.citance and hit.citance.text for hit in found] == [hit.citance and hit.citance.text for hit in expected]


def test_signals_reasons_and_matches_are_there_as_with_the_local_engines(pushed: Path) -> None:
    (context,) = contexts(1)
    with Recommender.open(pushed, "hybrid") as ours, Recommender.open(pushed, "qdrant-hybrid") as theirs:
        (one,), (other,) = (
            [found for _, found in opened.candidates(opened.topics([context]), 20)] for opened in (ours, theirs)
        )
        assert one.signals.keys() == other.signals.keys()
        for name, values in one.signals.items():
            np.testing.assert_allclose(other.signals[name], values, rtol=1e-4, atol=1e-6)
        expected, found = ours.search(context, 5, explain=True), theirs.search(context, 5, explain=True)
    assert [{each.name for each in hit.reasons} for hit in found] == [
        {each.name for each in hit.reasons} for hit in expected
    ]
    # Lucene says which words match, with its default weights.
    assert [{match.word for match in hit.matches} for hit in found] == [
        {match.word for match in hit.matches} for hit in expected
    ]


def test_what_cannot_be_searched_is_said(pushed: Path) -> None:
    with Recommender.open(pushed, "qdrant-bm25") as opened:
        with pytest.raises(QueryError, match="no word"):
            opened.search("the of <REF>")
        with pytest.raises(FilterError, match="has no word"):
            opened.search("strands <REF>", filters=Filters(venues=("of the",)))
        with pytest.raises(QueryError, match="more than 1,000"):
            opened.search("word " * 1001)
    with pytest.raises(SettingsError, match="every weight 0"):
        zero = ["qdrant_bm25.weights.text=0", "qdrant_bm25.weights.title=0"]
        Recommender.open(pushed, Recipe.load("qdrant-bm25", zero))


def test_an_index_that_was_not_pushed_says_how(said_index: Path) -> None:
    for name in ("qdrant-bm25", "qdrant-citances", "qdrant-dense"):
        with pytest.raises(IndexUnusableError, match="has no collections in Qdrant") as raised:
            Recommender.open(said_index, name)
        assert "citerec index push" in raised.value.remedy
