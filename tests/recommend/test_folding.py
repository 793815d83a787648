"""Editions of one paper become one hit."""

import json
from pathlib import Path

from citerec import Context, Recommender
from citerec.index.build import build_index
from tests.conftest import Citerec, s2ag_paper, write_lines

TITLE = "Folding of sparse parsers for long sentences"
SENTENCE = "Sparse parsers are folded <REF>."


def test_a_preprint_and_its_paper_are_one_hit_unless_told_otherwise(citerec_here: Citerec, tmp_path: Path) -> None:
    authors = [{"name": "Ada Byron"}, {"name": "Wei Li"}]
    papers = [
        s2ag_paper(1, TITLE, year=2018, venue="arXiv.org", authors=authors),
        s2ag_paper(2, f"{TITLE}.", year=2019, venue="ACL", authors=authors),
        *(s2ag_paper(10 + n, f"Parsers of kind {n} and sentences number {n}", year=2000 + n) for n in range(12)),
    ]
    write_lines(tmp_path / "s2" / "papers" / "p.jsonl", papers)
    build_index([tmp_path / "s2"], index := tmp_path / "index")
    with Recommender.open(index, "bm25") as recommender:
        apart = recommender.search(SENTENCE, 5)
        together = recommender.search(SENTENCE, 5, fold=True)
        (all_of_them,) = recommender.search_text(SENTENCE, 14, fold=True)
        run = recommender.search_many([Context(text=SENTENCE, context_id="a")], 3)  # many are not folded
    assert [hit.paper.paper_id for hit in apart][:2] == run.top("a")[:2] == ["1", "2"]
    assert all(not hit.also for hit in apart)
    assert [hit.rank for hit in together] == [1, 2, 3, 4, 5]
    assert (together[0].paper.paper_id, [one.paper_id for one in together[0].also]) == ("2", ["1"])
    assert together[0].score == apart[0].score
    assert [hit.paper for hit in together[1:4]] == [hit.paper for hit in apart[2:]]
    assert len(all_of_them) == 13

    def call(*more: object) -> str:
        return citerec_here("recommend", SENTENCE, *more, "--index", index, "--system", "bm25", "-k", 3).stdout

    hits = json.loads(call("--format", "json"))
    assert (len(hits), hits[0]["paper_id"]) == (3, 2)
    assert hits[0]["also"] == [{"paper_id": 1, "title": TITLE, "year": 2018, "venue": "arXiv.org"}]
    assert "also: arXiv preprint 2018, 1" in call("--explain")
    assert [hit["paper_id"] for hit in json.loads(call("--format", "json", "--no-fold"))][:2] == [1, 2]
    call("--format", "trec", "--out", tmp_path / "run.trec")
    assert [line.split()[2] for line in (tmp_path / "run.trec").read_text().splitlines()][:2] == ["1", "2"]


def test_what_is_excluded_and_is_not_there_is_said(citerec_here: Citerec, demo_index: Path) -> None:
    call = ("recommend", SENTENCE, "--index", demo_index, "--system", "bm25", "--format", "json")
    first = json.loads(citerec_here(*call).stdout)[0]["paper_id"]
    run = citerec_here(*call, "--exclude", first, "--exclude", "typo")
    assert first not in {hit["paper_id"] for hit in json.loads(run.stdout)}
    assert [line for line in run.stderr.splitlines() if "--exclude" in line] == [
        f"{demo_index} has no paper 'typo': --exclude leaves nothing out by it."
    ]
