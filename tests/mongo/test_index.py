"""An index that keeps its records in MongoDB: it answers as one that keeps them itself."""

import json
from pathlib import Path

import pytest
from pymongo import MongoClient

from citerec import Index
from citerec.index.describe import verify
from citerec.index.manifest import generation_of
from tests.conftest import DEMO, Citerec, write_lines

SENTENCE = "Term weighting <REF> is a strong baseline."


@pytest.fixture
def citances(tmp_path: Path) -> Path:
    papers = (DEMO / "papers" / "papers-00000.jsonl").read_text().splitlines()[:40]
    rows = [
        {
            "context_id": str(number),
            "text": f"Papers on term weighting say so <REF> {number}.",
            "cited_ids": [json.loads(line)["corpusid"]],
            "citing_id": 7,
        }
        for number, line in enumerate(papers)
    ]
    return write_lines(tmp_path / "contexts.jsonl", rows)


@pytest.fixture
def indexes(mongodb: str, tmp_path: Path, citances: Path) -> tuple[Index, Index]:
    """One with a file, and one with a database."""
    with_file = Index.build(DEMO, tmp_path / "file", citances=[citances])
    store = f"{mongodb}?readPreference=secondaryPreferred&appName=secret"
    return with_file, Index.build(DEMO, tmp_path / "mongo", citances=[citances], store=store)


def test_it_answers_as_one_with_a_file(indexes: tuple[Index, Index], mongodb: str, citerec_here: Citerec) -> None:
    with_file, with_database = indexes
    assert not list(generation_of(with_database.path).glob("*.sqlite*"))
    assert with_database.manifest.store == f"{mongodb}?readPreference=secondaryPreferred"
    assert with_file.manifest.store is None
    assert with_database.manifest.model_copy(update={"store": None}) == with_file.manifest
    assert with_file.manifest.counts.citances == 40
    assert verify(with_database.path) == []
    asked = ("recommend", SENTENCE, "--format", "json", "--explain", "--year-from", "1960")
    answers = [citerec_here(*asked, "--index", one.path) for one in indexes]
    assert [one.returncode for one in answers] == [0, 0]
    first, second = (json.loads(one.stdout) for one in answers)
    assert first
    assert first == second
    assert with_database.papers(["1", "none"]) == with_file.papers(["1", "none"])
    ranked = []
    for one in indexes:
        ran = citerec_here(
            "eval", "--diagnostic", "demo/location", "--index", one.path, "--system", "bm25", "--out", "r"
        )
        assert ran.returncode == 0, ran.stderr
        ranked.append(sorted(path.read_bytes() for path in (one.path.parent / "r").rglob("*.trec")))
    assert ranked[0] == ranked[1]
    assert ranked[0]


def test_verify_compares_it_with_the_database(indexes: tuple[Index, Index], mongodb: str) -> None:
    _, index = indexes
    with MongoClient(mongodb) as client:
        client.get_default_database()["papers"].delete_one({})
    assert any("the paper store has 251 papers, the manifest 252" in fault for fault in verify(index.path))


def test_commands_that_change_an_index_refuse(indexes: tuple[Index, Index], citerec_here: Citerec) -> None:
    _, index = indexes
    before = {path: path.stat().st_mtime_ns for path in index.path.rglob("*")}
    for command in (("add", DEMO), ("add",), ("remove", "1")):
        refused = citerec_here("index", command[0], index.path, *command[1:])
        assert refused.returncode == 2
        assert "keeps its records in mongodb://127.0.0.1:" in refused.stderr
        assert "index build … --store mongodb://HOST/NEW" in refused.stderr
    assert {path: path.stat().st_mtime_ns for path in index.path.rglob("*")} == before


def test_a_database_that_is_gone(
    indexes: tuple[Index, Index], citerec_here: Citerec, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citerec.corpus.mongo_store._PATIENCE_SECONDS", 0.5)
    _, index = indexes
    manifest = generation_of(index.path) / "manifest.json"
    stated = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**stated, "store": f"mongodb://127.0.0.1:{silent_port}/db"}))
    failed = citerec_here("recommend", SENTENCE, "--index", index.path)
    assert failed.returncode == 2
    assert f"no MongoDB server answers at mongodb://127.0.0.1:{silent_port}/db" in failed.stderr
