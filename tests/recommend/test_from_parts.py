"""Parts that are given as objects, without a name in a registry."""

from pathlib import Path
from typing import Any, Self

import pytest

from citerec import Candidate, Candidates, Context, Filters, Recommender, Reranker, Retriever, Topic, evaluate, reranked
from citerec.errors import SettingsError
from citerec.retrieve.words import WordsRetriever


class First(Retriever):
    """Finds the same paper for every topic."""

    name = "first"
    label = "the first paper"

    @classmethod
    def open(cls, index: Any, settings: Any) -> Self:
        return cls()

    def search(self, topic: Topic, k: int, filters: Filters | None = None, prepared: Any = None) -> list[Candidate]:
        return [Candidate("900000001", 1.0)]


@pytest.mark.parametrize("part", [First, First()])
def test_a_retriever_that_no_registry_knows_is_fused_explained_and_measured(demo_index: Path, part: Any) -> None:
    with Recommender.from_parts(demo_index, [WordsRetriever, part], weights={"first": 5.0}) as recommender:
        hits = recommender.search("Attention suffices to translate <REF>.", 3, explain=True)
        assert hits[0].paper.paper_id == "900000001"
        assert "the first paper" in {reason.name for reason in hits[0].reasons}
        contexts = [Context(text="Attention <REF>.", context_id="a", cited_ids=("900000001",))]
        results = evaluate({"mine": recommender}, contexts, index=demo_index)
    assert results.systems["mine"].overall.values["recall@10"] == 1
    assert results.systems["mine"].settings["retrievers"] == {"words": 1.0, "first": 5.0}


@pytest.mark.parametrize(
    ("retrievers", "weights", "message"),
    [
        ([], {}, "the retrievers are none"),
        ([First, First()], {}, "the retrievers are first, first"),
        ([First], {"second": 1.0}, "there is a weight for 'second'"),
    ],
)
def test_parts_that_do_not_fit_are_refused(demo_index: Path, retrievers: Any, weights: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Recommender.from_parts(demo_index, retrievers, weights=weights)


class Indifferent(Reranker):
    """Gives every candidate the same score."""

    name = "indifferent"
    reads = "nothing"
    depth = 5

    @classmethod
    def open(cls, index: Any, folder: Any, settings: Any) -> Self:
        return cls()

    def rerank(self, topic: Any, candidates: Candidates, papers: Any, citances: Any, **_: Any) -> Candidates:
        return reranked(candidates, [1.0] * len(candidates[: self.depth]), self.name)


def test_a_reranker_whose_scores_are_all_equal_leaves_the_order_as_it_was(demo_index: Path) -> None:
    with (
        Recommender.open(demo_index, "bm25") as plain,
        Recommender.from_parts(demo_index, rerankers=[Indifferent()]) as again,
    ):
        before = [hit.paper.paper_id for hit in plain.search("Attention suffices to translate <REF>.", 100)]
        after = [hit.paper.paper_id for hit in again.search("Attention suffices to translate <REF>.", 100)]
        # Also where runs are put in order by score, and ties by paper id.
        figures = evaluate({"plain": plain, "again": again}, "demo", index=demo_index, families="location").systems
    assert len(before) > Indifferent.depth
    assert after == before
    assert figures["again"].overall.values == figures["plain"].overall.values
