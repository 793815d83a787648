"""What the draft cites already: found again, told apart from what is new, and never a leak."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from citerec import Context, Filters, Recipe, Recommender
from citerec.contexts.topic import LeakRules
from citerec.index.build import BuildOptions, build_index
from citerec.retrieve.draft import DraftRetriever
from tests.conftest import write_lines

PAPERS = [
    *({"paper_id": f"p{number}", "title": f"Paper number {number}", "year": 2000 + number} for number in range(8)),
    {"paper_id": "late", "title": "Later work", "year": 2015},
]


@pytest.fixture(scope="module")
def cited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """p6 cites p0 and p1, p7 cites p0 and p2, `late` cites p0 and p3; p0 cites p4."""
    folder = tmp_path_factory.mktemp("draft")
    pairs = [("p6", "p0"), ("p6", "p1"), ("p7", "p0"), ("p7", "p2"), ("late", "p0"), ("late", "p3"), ("p0", "p4")]
    citances = [
        {"text": f"As was shown <REF> {number}.", "citing_id": citing, "cited_ids": [cited]}
        for number, (citing, cited) in enumerate(pairs)
    ]
    sources = write_lines(folder / "papers.jsonl", PAPERS), write_lines(folder / "citances.jsonl", citances)
    build_index([sources[0]], folder / "index", BuildOptions(citances=(sources[1],)))
    return folder / "index"


@pytest.fixture(scope="module")
def draft(cited: Path) -> Iterator[tuple[Recommender, DraftRetriever]]:
    recipe = Recipe(retrievers={"words": 1.0, "draft": 0.5})
    with Recommender.open(cited, recipe) as opened:
        (retriever,) = [one for one in opened.retrievers if isinstance(one, DraftRetriever)]
        yield opened, retriever


def signals(
    draft: tuple[Recommender, DraftRetriever], before: Sequence[str], names: Sequence[str], year: int | None = None
) -> dict[str, list[float]]:
    opened, retriever = draft
    (topic,) = opened.topics([Context(text="As <REF>", cited_before=tuple(before), citing_year=year)])
    rows = retriever._rows.rows(names)
    return {name: found.tolist() for name, found in retriever.signals(topic, rows, LeakRules().restrict(topic)).items()}


def test_how_often_and_how_long_ago(draft: tuple[Recommender, DraftRetriever]) -> None:
    found = signals(draft, ["p1", "p2", "p1", "unknown", "p3"], ["p1", "p2", "p3", "p4"])
    assert found["draft_times"] == [2, 1, 1, 0]
    np.testing.assert_equal(found["draft_ago"], [2, 3, 1, np.nan])


def test_cocitation_and_coupling_know_nothing_newer(draft: tuple[Recommender, DraftRetriever]) -> None:
    names = ["p1", "p2", "p3", "p4", "p6"]
    found = signals(draft, ["p0"], names)
    assert found["draft_cocited"] == [1, 1, 1, 0, 0]
    assert found["draft_coupled"] == [0, 0, 0, 0, 1]
    assert signals(draft, ["p0"], names, year=2008)["draft_cocited"] == [1, 1, 0, 0, 0]
    assert signals(draft, ["p0"], names, year=2006)["draft_cocited"] == [1, 0, 0, 0, 0]


def test_the_citing_paper_itself_is_not_known_to_cite(draft: tuple[Recommender, DraftRetriever]) -> None:
    opened, retriever = draft
    (topic,) = opened.topics([Context(text="As <REF>", citing_id="p6", citing_year=2009, cited_before=("p0",))])
    rows = retriever._rows.rows(["p1", "p2"])
    assert retriever.signals(topic, rows, LeakRules().restrict(topic))["draft_cocited"].tolist() == [0, 1]


def test_what_the_draft_cites_comes_first_if_the_sentence_fits_as_well(
    draft: tuple[Recommender, DraftRetriever],
) -> None:
    opened, _ = draft
    context = Context(text="paper number <REF>", cited_before=("p3",))
    assert opened.search(context, 3)[0].paper.paper_id == "p3"
    assert opened.search(replace(context, cited_before=()), 3)[0].paper.paper_id != "p3"
    assert "p3" not in [hit.paper.paper_id for hit in opened.search(context, 8, Filters(year_to=2002))]
    reasons = opened.search(context, 1, explain=True)[0].reasons
    assert "cited in the draft" in [reason.name for reason in reasons]


def test_a_context_without_a_draft_has_the_same_answer_as_without_the_retriever(
    cited: Path, draft: tuple[Recommender, DraftRetriever]
) -> None:
    with Recommender.open(cited, Recipe(retrievers={"words": 1.0})) as words:
        expected = [hit.paper.paper_id for hit in words.search("paper number <REF>", 5)]
    for before in (None, (), ("unknown",)):
        hits = draft[0].search(Context(text="paper number <REF>", cited_before=before), 5)
        assert [hit.paper.paper_id for hit in hits] == expected
