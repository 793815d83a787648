"""An index that keeps its records in MongoDB: it answers as one that keeps them itself."""

import json
from pathlib import Path

import pytest
from pymongo import MongoClient

from citerec import Index
from citerec.index.describe import verify
from citerec.index.manifest import generation_of
from tests.conftest import DEMO, Citerec, write_lines


def test_it_answers_as_one_with_a_file(mongodb: str, tmp_path: Path, citerec_here: Citerec) -> None:
    contexts = [json.loads(line) for line in (DEMO / "contexts.jsonl").read_text().splitlines()[:40]]
    said = [write_lines(tmp_path / "said.jsonl", [{**context, "citing_id": "7"} for context in contexts])]
    question = ("recommend", contexts[0]["text"], "--format", "json", "--explain", "--year-from", 1900)
    with_file = Index.build(DEMO, tmp_path / "file", citances=said)
    store = f"{mongodb}?readPreference=secondaryPreferred&appName=secret"
    with_database = Index.build(DEMO, tmp_path / "mongo", citances=said, store=store)
    assert not list(generation_of(with_database.path).glob("*.sqlite*"))
    assert with_database.manifest.store == f"{mongodb}?readPreference=secondaryPreferred"
    assert with_database.manifest.model_copy(update={"store": None}) == with_file.manifest
    assert with_file.manifest.counts.citances > 0
    assert with_database.papers(["1", "none"]) == with_file.papers(["1", "none"])
    assert verify(with_database.path) == []
    answers, ranked = [], []
    for one in (with_file.path, with_database.path):
        answers.append(json.loads(citerec_here(*question, "--index", one).stdout))
        diagnostic = ("eval", "--diagnostic", "demo/location", "--system", "bm25")
        assert citerec_here(*diagnostic, "--index", one, "--out", one / "r").returncode == 0
        ranked.append(sorted(path.read_bytes() for path in (one / "r").rglob("*.trec")))
    assert any(hit["citance"] for hit in answers[0]) and answers[0] == answers[1]
    assert ranked[0] and ranked[0] == ranked[1]


def test_it_is_not_changed_and_what_is_wrong_with_its_database_is_said(
    mongodb: str, tmp_path: Path, citerec_here: Citerec, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index.build(DEMO, tmp_path / "mongo", store=mongodb).path
    before = {path: path.stat().st_mtime_ns for path in index.rglob("*")}
    for command in (("add", index, DEMO), ("add", index), ("remove", index, "1")):
        refused = citerec_here("index", *command)
        assert refused.returncode == 2
        assert "keeps its records in mongodb://127.0.0.1:" in refused.stderr
        assert "index build … --store mongodb://HOST/NEW" in refused.stderr
    assert {path: path.stat().st_mtime_ns for path in index.rglob("*")} == before
    with MongoClient(mongodb) as client:
        client.get_default_database()["papers"].delete_one({})
    assert any("the paper store has 251 papers, the manifest 252" in fault for fault in verify(index))
    monkeypatch.setattr("citerec.corpus.mongo_store._PATIENCE_SECONDS", 0.5)
    manifest = generation_of(index) / "manifest.json"
    stated = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**stated, "store": f"mongodb://127.0.0.1:{silent_port}/db"}))
    failed = citerec_here("recommend", "Term weighting <REF>.", "--index", index)
    assert failed.returncode == 2
    assert f"no MongoDB server answers at mongodb://127.0.0.1:{silent_port}/db" in failed.stderr
