"""The same lists score the same, however a system is given: the leak rules are one."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from citerec import Context, Index, LeakRules, Recommender, evaluate
from citerec.diagnostics.sets import DEFAULT_SET, find_set, read_set
from citerec.records import Paper
from citerec.retrieve.run import Run, SearchOptions
from tests.conftest import Citerec, write_lines

K = 20


def test_a_system_as_name_function_run_file_and_run_in_memory_scores_the_same(demo_index: Path, tmp_path: Path) -> None:
    # Contexts whose citing paper is in the index, and whose year only the index knows; some by key, some with none.
    contexts = []
    for number, one in enumerate(read_set(find_set(DEFAULT_SET)).contexts[:60]):
        citing = str(900000001 + number * 4)
        named = ({"citing_id": citing}, {"citing_key": f"CorpusId:{citing}"}, {})[number % 3]
        contexts.append(Context(text=one.text, context_id=one.context_id, cited_ids=one.cited_ids, **named))
    with Recommender.open(demo_index, "bm25") as recommender:
        # Lists without any leak rule: the evaluation must apply them.
        free = SearchOptions(LeakRules(exclude_citing=False, as_of_year=False))
        run = recommender.search_many(contexts, 252, options=free)

    def function(context: Context, k: int) -> Sequence[tuple[str, float]]:
        return list(run[context.context_id].items())

    run.write_trec(tmp_path / "bm25.trec")
    systems = {"name": "bm25", "function": function, "file": Run.from_trec(tmp_path / "bm25.trec"), "memory": run}
    results = evaluate(systems, contexts, index=demo_index, k=K)
    named = results.systems["name"]
    assert named.overall.n == 60 and named.overall.values["recall@10"] > 0.1
    for name, system in results.systems.items():
        assert (system.overall.values, system.ranks) == (named.overall.values, named.ranks), name
    # The rules took something away, or this test would show nothing.
    assert min(results.systems["function"].removed[reason] for reason in ("newer", "citing_paper")) > 0
    unruly = evaluate(systems, contexts, index=demo_index, k=K, exclude_citing=False, as_of_year=False)
    assert unruly.systems["name"].overall.values != named.overall.values
    assert (unruly.record.rules["as_of_year"], unruly.record.rules["exclude_citing"]) == (False, False)


ATTENTION = "900000041"
TITLE = "Attention Is All You Need"


def test_the_citing_paper_is_left_out_by_its_doi_and_by_its_title(tmp_path: Path) -> None:
    """Two papers of one title, one of which has a DOI; and an older one that is cited."""
    papers = [
        Paper("new", TITLE, year=2017, external_ids={"DOI": "10.5555/3295222.3295349"}),
        Paper("old", TITLE, year=2003),
        Paper("cited", "Attention in both directions", year=2001),
    ]
    named: dict[str, Any]
    with Recommender.open(Index.build(papers, tmp_path / "index").path, "bm25") as recommender:
        for named, left_out in (
            ({}, set()),
            ({"citing_key": "acm:10.5555/3295222.3295349"}, {"new"}),
            ({"citing_key": "https://doi.org/10.5555/3295222.3295349"}, {"new"}),
            ({"citing_id": "elsewhere", "citing_title": "attention is all you need!", "citing_year": 2018}, {"new"}),
            ({"citing_title": TITLE, "citing_year": 2004}, {"old", "new"}),  # new is newer
            ({"citing_title": TITLE, "citing_year": 2010}, {"new"}),  # neither is of nearly that year; new is newer
            ({"citing_title": "Attention is all"}, set()),
        ):
            answer = recommender.search(Context(text="Attention is all we need <REF>.", **named))
            assert {hit.paper.paper_id for hit in answer} == {"new", "old", "cited"} - left_out, named


def test_whoever_answers_leaves_it_out_and_eval_says_how_often_it_is_known(
    citerec_here: Citerec, demo_index: Path, tmp_path: Path
) -> None:
    text = "Attention suffices to translate <REF>."
    records = [{"context_id": f"c{n}", "text": text, "cited_ids": ["900000035"]} for n in range(3)]
    write_lines(tmp_path / "contexts.jsonl", [{**records[0], "citing_title": TITLE.upper()}, *records[1:]])
    (tmp_path / "mine.trec").write_text(f"c0 Q0 {ATTENTION} 1 2.0 x\nc1 Q0 {ATTENTION} 1 2.0 x\n")
    command = ["eval", "--contexts", "contexts.jsonl", "--index", demo_index, "--metrics", "mrr@10"]
    shown = " ".join(citerec_here(*command, "--run", "mine.trec").stdout.split())
    assert "citing paper known for 1 of 3 contexts" in shown
    assert "mine broke the rules: 1 lines with the citing paper and 0 with newer papers" in shown
    asked = ["recommend", text, "--index", demo_index, "--system", "bm25", "--format", "json"]
    for more, is_found in (((), True), (("--title", TITLE), False)):
        hits = json.loads(citerec_here(*asked, *more).stdout)
        assert (ATTENTION in {str(hit["paper_id"]) for hit in hits}) is is_found


def test_a_function_is_not_told_the_answer(demo_index: Path) -> None:
    seen = []

    def function(context: Context, k: int) -> list[tuple[str, float]]:
        seen.append(context)
        return []

    context = Context(text="It <REF>.", context_id="c", cited_ids=("900000001",), citing_year=2020, cited_before=("1",))
    evaluate(function, [replace(context, labels={"year": "recent"}, marker="(Vaswani, 2017)")], index=demo_index)
    assert seen == [replace(context, cited_ids=())]
    assert (seen[0].labels, seen[0].marker) == ({}, None)
