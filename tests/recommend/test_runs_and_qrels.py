"""Runs and qrels from elsewhere: ranx, pandas, dictionaries, files; all score alike."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import citerec
from citerec import Context, Run, evaluate
from citerec.errors import InputError, SystemFailedError
from citerec.evaluation.evaluate import contexts_of_qrels
from tests.conftest import DEMO

SCORES = {"a": {"900000001": 2.0, "900000002": 3.0, "900000003": 2.0}, "b": {"900000004": 1.0}, "c": {}}
QRELS = {"a": {"900000001": 1, "900000009": 1}, "b": {"900000004": 1}, "c": {"900000005": 1}}


@pytest.mark.usefixtures("plain_ranx")
def test_a_run_goes_to_every_form_and_back(tmp_path: Path) -> None:
    run = Run.from_dict(SCORES, "mine")
    assert run.top("a") == ["900000002", "900000001", "900000003"]
    assert Run.from_dict(run.to_dict()).to_dict() == run.to_dict()
    frame = run.to_frame()
    assert frame["rank"].tolist() == [1, 2, 3, 1]
    with_hits = {context_id: papers for context_id, papers in run.to_dict().items() if papers}
    assert Run.from_frame(frame).to_dict() == with_hits
    assert Run.from_ranx(run.to_ranx()).to_dict() == with_hits
    run.write_trec(tmp_path / "mine.trec")
    again = Run.from_trec(tmp_path / "mine.trec")
    assert again.name == "mine"
    assert {context_id: list(papers) for context_id, papers in again.items()} == {
        context_id: list(papers) for context_id, papers in with_hits.items()
    }
    assert repr(run) == "<Run mine: 3 contexts, 4 hits>"
    with pytest.raises(InputError, match="no column 'score'"):
        Run.from_frame(pd.DataFrame({"context_id": ["a"], "paper_id": ["1"]}))
    (tmp_path / "bad.trec").write_text("a Q0 1 1 high tag\n")
    with pytest.raises(InputError, match="line 1"):
        Run.from_trec(tmp_path / "bad.trec")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([("c", [("p", "x")])], "the run has the score 'x' for 'c'"),
        ([("c", [("p", None)])], "the run has the score None for 'c'"),
        ([("c", [("p", float("nan"))])], "the run has the score nan for 'c'"),
        ([("c", [("p", 2.0), ("p", 1.0)])], "the run has 'p' twice for 'c'"),
        ([("c", []), ("c", [])], "the run answers 'c' twice"),
    ],
)
def test_what_is_no_run_is_refused(answers: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Run(answers)


@pytest.mark.usefixtures("plain_ranx")
def test_runs_and_qrels_of_every_kind_score_alike(demo_index: Path) -> None:
    from ranx import Qrels

    run = Run.from_dict(SCORES, "mine")
    frame = pd.DataFrame(
        [(context_id, paper_id, grade) for context_id, papers in QRELS.items() for paper_id, grade in papers.items()],
        columns=["context_id", "paper_id", "relevance"],
    )
    contexts = contexts_of_qrels(QRELS) or ()
    systems = {
        "run": run,
        "ranx": Run.from_ranx(run.to_ranx()),
        "frame": Run.from_frame(run.to_frame()),
        "function": Run.from_function(lambda context, _: run[context.context_id].items(), contexts),
    }
    for qrels in (QRELS, Qrels(QRELS), frame):
        results = evaluate(systems, qrels, index=demo_index, metrics="recall@2,mrr@10", k=10)
        for name in systems:
            overall = results.systems[name].overall
            assert (overall.n, overall.values["recall@2"]) == (3, pytest.approx((0.5 + 1 + 0) / 3)), name
            assert overall.values["mrr@10"] == pytest.approx((0.5 + 1 + 0) / 3)
        assert "length" not in results.families  # there is no sentence to measure
    with pytest.raises(InputError, match="has no relevant paper"):
        evaluate(run, {"a": {"900000001": 0}}, index=demo_index)


@pytest.mark.parametrize("systems", [None, {"x": "bm25"}, [Run.from_dict(SCORES), "bm25"]])
def test_qrels_have_no_text_to_search_with(demo_index: Path, systems: Any) -> None:
    with pytest.raises(InputError, match=r"qrels have no text, so .* cannot search") as raised:
        evaluate(systems, QRELS, index=demo_index)
    assert "Give contexts, or give runs" in raised.value.remedy


def test_what_is_public_is_named_and_contexts_have_a_length() -> None:
    assert set(dir(citerec)) == set(citerec.__all__)
    assert all(getattr(citerec, name) is not None for name in citerec.__all__)
    contexts = citerec.load_contexts(DEMO / "contexts.jsonl")
    assert len(contexts) == sum(1 for _ in contexts) == len(citerec.load_set("demo"))


def test_a_function_that_fails_is_named(demo_index: Path) -> None:
    def mine(context: Context, k: int) -> list[tuple[str, float]]:
        raise KeyError(context.context_id)

    contexts = [Context(text="Attention <REF>.", context_id="x", cited_ids=("900000001",))]
    with pytest.raises(SystemFailedError, match="the system mine failed on the context x: KeyError"):
        evaluate(mine, contexts, index=demo_index)


def test_the_index_of_papers_in_memory(tmp_path: Path) -> None:
    papers = [
        citerec.Paper("1", "Okapi at TREC", abstract="Probabilistic ranking.", year=1994),
        citerec.Paper("2", "Attention is all you need", year=2017),
    ]
    index = citerec.Index.build(iter(papers), tmp_path / "index")
    assert (len(index), index.default_system) == (2, "bm25")
    assert index.papers([1])["1"].title == "Okapi at TREC"
    index.add([citerec.Paper("3", "BERT", abstract="Attention in both directions.", year=2019)])
    with citerec.Index.open(tmp_path / "index").recommender() as recommender:
        answer = recommender.search("attention <REF>")
        assert [hit.paper.paper_id for hit in answer] == ["2", "3"]
        assert answer.context.text == "attention <REF>"
        assert [hit.paper.paper_id for hit in answer[:1]] == ["2"]
        run = recommender.search_many([Context(text="ranking <REF>", context_id="r")])
        assert run.top("r") == ["1"]
    with pytest.raises(InputError, match="there are no papers"):
        citerec.Index.build([], tmp_path / "none")
    with pytest.raises(InputError, match="no option 'modle'"):
        index.encode(modle="x")
