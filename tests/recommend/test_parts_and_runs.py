"""Systems of one's own: parts that are given as objects, functions, runs and qrels from elsewhere."""

import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from citerec import Candidate, Candidates, Context, Index, Recommender, Reranker, Retriever, Run, evaluate, reranked
from citerec.errors import IndexUnusableError, InputError, SettingsError, SystemFailedError
from citerec.evaluation.evaluate import contexts_of_qrels
from citerec.records import Paper
from citerec.retrieve.words import WordsRetriever

SENTENCE = "Attention suffices to translate <REF>."
SCORES = {"a": {"900000001": 2.0, "900000002": 3.0, "900000003": 2.0}, "b": {"900000004": 1.0}, "c": {}}
QRELS = {"a": {"900000001": 1, "900000009": 1}, "b": {"900000004": 1}, "c": {"900000005": 1}}


class First(Retriever):
    name = "first"
    label = "the first paper"

    def search(self, topic: Any, k: int, filters: Any = None, prepared: Any = None) -> list[Candidate]:
        return [Candidate("900000001", 1.0)]


class Indifferent(Reranker):
    name = "indifferent"
    reads = "nothing"
    depth = 5

    def rerank(self, topic: Any, candidates: Candidates, papers: Any, citances: Any, **_: Any) -> Candidates:
        return reranked(candidates, [1.0] * len(candidates[: self.depth]), self.name)


def test_a_retriever_that_no_registry_knows_is_fused_explained_and_measured(demo_index: Path) -> None:
    with Recommender.from_parts(demo_index, [WordsRetriever, First()], weights={"first": 5.0}) as recommender:
        hits = recommender.search(SENTENCE, 3, explain=True)
        assert hits[0].paper.paper_id == "900000001"
        assert "the first paper" in {reason.name for reason in hits[0].reasons}
        contexts = [Context(text="Attention <REF>.", context_id="a", cited_ids=("900000001",))]
        results = evaluate({"mine": recommender}, contexts, index=demo_index)
        with pytest.raises(TypeError, match="parts of your own"):
            pickle.dumps(recommender)
    assert results.systems["mine"].overall.values["recall@10"] == 1
    assert results.systems["mine"].settings["retrievers"] == {"words": 1.0, "first": 5.0}
    for retrievers, message in (([], "the retrievers are none"), ([First, First()], "the retrievers are first, first")):
        with pytest.raises(SettingsError, match=message):
            Recommender.from_parts(demo_index, retrievers)


def test_a_reranker_whose_scores_are_all_equal_leaves_the_order_as_it_was(demo_index: Path) -> None:
    with (
        Recommender.open(demo_index, "bm25") as plain,
        Recommender.from_parts(demo_index, rerankers=[Indifferent()]) as again,
    ):
        before, after = ([hit.paper.paper_id for hit in one.search(SENTENCE, 100)] for one in (plain, again))
        # Also where runs are put in order by score, and ties by paper id.
        figures = evaluate({"plain": plain, "again": again}, "demo", index=demo_index, families="location").systems
    assert len(before) > Indifferent.depth and after == before
    assert figures["again"].overall.values == figures["plain"].overall.values


def test_contexts_in_processes_have_the_same_figures(demo_index: Path) -> None:
    systems = {"bm25": "bm25", "other": "bm25-one-field"}
    how: dict[str, Any] = {"index": demo_index, "families": "location", "resamples": 100}
    there, here = (evaluate(systems, "demo", parallelism=processes, **how) for processes in (2, 1))
    for name, system in here.systems.items():
        assert there.systems[name].ranks == system.ranks
        assert there.systems[name].overall == system.overall
    cost = there.systems["bm25"].cost
    assert cost is not None and cost.queries == there.record.set.contexts and 1 <= cost.workers <= 2


@pytest.mark.usefixtures("plain_ranx")
def test_runs_and_qrels_of_every_form_score_alike(demo_index: Path, tmp_path: Path) -> None:
    from ranx import Qrels

    run = Run.from_dict(SCORES, "mine")
    assert run.top("a") == ["900000002", "900000001", "900000003"]
    run.write_trec(tmp_path / "mine.trec")
    contexts = contexts_of_qrels(QRELS) or ()
    systems = {
        "run": run,
        "ranx": Run.from_ranx(run.to_ranx()),
        "frame": Run.from_frame(run.to_frame()),
        "file": Run.from_trec(tmp_path / "mine.trec"),
        "function": Run.from_function(lambda context, _: run[context.context_id].items(), contexts),
    }
    assert systems["ranx"].to_dict() == systems["frame"].to_dict() == {one: SCORES[one] for one in "ab"}
    assert (systems["file"].name, systems["file"].top("a")) == ("mine", run.top("a"))
    grades = [(context_id, *graded) for context_id, papers in QRELS.items() for graded in papers.items()]
    frame = pd.DataFrame(grades, columns=["context_id", "paper_id", "relevance"])
    for qrels in (QRELS, Qrels(QRELS), frame):
        results = evaluate(systems, qrels, index=demo_index, metrics="recall@2,mrr@10", k=10)
        for name in systems:
            overall = results.systems[name].overall
            assert (overall.n, overall.values["recall@2"]) == (3, pytest.approx((0.5 + 1 + 0) / 3)), name
            assert overall.values["mrr@10"] == pytest.approx((0.5 + 1 + 0) / 3)
        assert "length" not in results.families  # there is no sentence to measure


def test_what_is_no_run_no_qrels_and_no_answer(demo_index: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.trec").write_text("a Q0 1 1 high tag\n")

    def fails(context: Context, k: int) -> list[tuple[str, float]]:
        raise KeyError(context.context_id)

    asked = [Context(text="Attention <REF>.", context_id="x", cited_ids=("900000001",))]
    for call, said in (
        (lambda: Run([("c", [("p", float("nan"))])]), "the run has the score nan for 'c'"),
        (lambda: Run([("c", [("p", 2.0), ("p", 1.0)])]), "the run has 'p' twice for 'c'"),
        (lambda: Run.from_frame(pd.DataFrame({"context_id": ["a"], "paper_id": ["1"]})), "no column 'score'"),
        (lambda: Run.from_trec(tmp_path / "bad.trec"), "line 1"),
        (lambda: evaluate(Run.from_dict(SCORES), {"a": {"900000001": 0}}, index=demo_index), "has no relevant paper"),
        (lambda: evaluate([Run.from_dict(SCORES), "bm25"], QRELS, index=demo_index), "qrels have no text"),
        (lambda: evaluate(fails, asked, index=demo_index), "the system fails failed on the context x: KeyError"),
    ):
        with pytest.raises((InputError, SystemFailedError), match=said):
            call()


def test_the_index_of_papers_in_memory_and_a_system_that_is_sent_to_an_index_of_others(tmp_path: Path) -> None:
    papers = [Paper("1", "Okapi at TREC", year=1994), Paper("2", "Attention is all you need", year=2017)]
    index = Index.build(iter(papers), tmp_path / "index")
    assert (len(index), index.default_system, index.papers([1])["1"]) == (2, "hybrid+ltr", papers[0])
    assert (list(index), index["1"], 1 in index, "none" in index) == (papers, papers[0], True, False)
    with pytest.raises(KeyError):
        index["none"]
    with index.recommender() as recommender:
        sent = pickle.dumps(recommender)
    index.add([Paper("3", "BERT", abstract="Attention in both directions.", year=2019)])
    with Index.open(tmp_path / "index").recommender() as recommender:
        assert [hit.paper.paper_id for hit in recommender.search("attention <REF>", 2)] == ["2", "3"]
    with pytest.raises(IndexUnusableError, match="other papers"):
        pickle.loads(sent)
    with pytest.raises(InputError, match="there are no papers"):
        Index.build([], tmp_path / "none")
    with pytest.raises(InputError, match="no option 'modle'"):
        index.encode(modle="x")
