"""Editions of one paper become one hit."""

import json
from pathlib import Path

import pytest

from citerec import Context, Recommender
from citerec.index.build import BuildOptions, build_index
from tests.conftest import Citerec, s2ag_paper, write_lines

TITLE = "Folding of sparse parsers for long sentences"
SENTENCE = "Sparse parsers are folded <REF>."


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fold")
    authors = [{"name": "Ada Byron"}, {"name": "Wei Li"}]
    papers = [
        s2ag_paper(1, f"{TITLE}", year=2018, venue="arXiv.org", authors=authors),
        s2ag_paper(2, f"{TITLE}.", year=2019, venue="ACL", authors=authors),
        *(s2ag_paper(10 + n, f"Parsers of kind {n} and sentences number {n}", year=2000 + n) for n in range(12)),
    ]
    write_lines(folder / "s2" / "papers" / "p.jsonl", papers)
    build_index([folder / "s2"], folder / "index", BuildOptions())
    return folder / "index"


def test_a_preprint_and_its_paper_are_one_hit_and_k_hits_remain(index: Path) -> None:
    with Recommender.open(index, "bm25") as recommender:
        apart = recommender.search(SENTENCE, 5)
        together = recommender.search(SENTENCE, 5, fold=True)
        (all_of_them,) = recommender.search_text(SENTENCE, 14, fold=True)
    assert [hit.paper.paper_id for hit in apart][:2] == ["1", "2"]
    assert all(not hit.also for hit in apart)
    assert [hit.rank for hit in together] == [1, 2, 3, 4, 5]
    first = together[0]
    assert (first.paper.paper_id, [paper.paper_id for paper in first.also]) == ("2", ["1"])
    assert first.score == apart[0].score
    assert [hit.paper.paper_id for hit in together[1:4]] == [hit.paper.paper_id for hit in apart[2:]]
    assert len(all_of_them) == 13


def test_searches_of_many_contexts_are_not_folded(index: Path) -> None:
    with Recommender.open(index, "bm25") as recommender:
        run = recommender.search_many([Context(text=SENTENCE, context_id="a")], 3)
    assert {"1", "2"} <= set(run["a"])


def test_recommend_folds_unless_told_not_to(index: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    def call(*more: object) -> str:
        done = citerec_here("recommend", *more, "--index", index, "--system", "bm25", "-k", 3)
        assert done.returncode == 0, done.stderr
        return done.stdout

    hits = json.loads(call(SENTENCE, "--format", "json"))
    assert len(hits) == 3
    assert hits[0]["paper_id"] == 2
    assert hits[0]["also"] == [{"paper_id": 1, "title": TITLE, "year": 2018, "venue": "arXiv.org"}]
    assert "also: arXiv preprint 2018, 1" in call(SENTENCE)
    assert "also: arXiv preprint 2018, 1" in call(SENTENCE, "--explain")
    assert [hit["paper_id"] for hit in json.loads(call(SENTENCE, "--format", "json", "--no-fold"))][:2] == [1, 2]
    call(SENTENCE, "--format", "trec", "--out", tmp_path / "run.trec")
    assert [line.split()[2] for line in (tmp_path / "run.trec").read_text().splitlines()][:2] == ["1", "2"]
