"""`citerec index push`, and what is searched there, from outside."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import DEMO, Citerec

pytestmark = pytest.mark.slow

SENTENCE = "Two antiparallel strands wind around a common axis <REF>."


def test_an_index_is_pushed_and_searched_there(citerec: Citerec, hybrid_index: Path, tmp_path: Path) -> None:
    shutil.copytree(hybrid_index, index := tmp_path / "mine")
    pushed = citerec("index", "push", index, "--to", "edge:engine/mine")
    assert pushed.returncode == 0, pushed.stderr
    assert "has 252 papers, 252 vectors: pushed whole." in pushed.stdout
    assert "--system qdrant-hybrid" in pushed.stdout
    again = citerec("index", "push", index)
    assert "is up to date: 252 papers, 252 vectors." in again.stdout
    here, there = (
        citerec("recommend", SENTENCE, "--index", index, "--system", name) for name in ("bm25", "qdrant-bm25")
    )
    assert there.returncode == 0, there.stderr
    assert here.stdout == there.stdout
    removed = citerec("index", "remove", "900000001", "--index", index)
    assert f"Bring it up to date: citerec index push {index}" in removed.stderr
    late = citerec("recommend", SENTENCE, "--index", index, "--system", "qdrant-bm25")
    assert late.returncode == 2
    assert "holds other papers than" in late.stderr
    assert late.stderr.count("\n") <= 3


def test_a_system_of_qdrant_is_evaluated_beside_its_local_one(
    citerec: Citerec, hybrid_index: Path, tmp_path: Path
) -> None:
    shutil.copytree(hybrid_index, index := tmp_path / "mine")
    assert citerec("index", "push", index, "--to", "edge:engine/mine").returncode == 0
    lines = (DEMO / "contexts.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "some.jsonl").write_text("".join(lines[::20]), encoding="utf-8")
    told = citerec(
        *("eval", "--contexts", "some.jsonl", "--index", index, "--out", "results"),
        *("--system", "bm25", "--system", "qdrant-bm25"),
    )
    assert told.returncode == 0, told.stderr
    overall = [line.split() for line in told.stdout.splitlines() if "bm25" in line][:2]
    assert overall[0][-9:] == overall[1][-9:]


def test_a_build_is_pushed(citerec: Citerec, tmp_path: Path, silent_port: int) -> None:
    wrong = citerec("index", "build", DEMO, "--out", "out", "--engine", "qdrant")
    assert (wrong.returncode, "needs --url" in wrong.stderr) == (2, True)
    wrong = citerec("index", "build", DEMO, "--out", "out", "--url", "edge:engine/demo")
    assert (wrong.returncode, "needs --engine qdrant" in wrong.stderr) == (2, True)
    url = f"http://127.0.0.1:{silent_port}/demo"
    wrong = citerec("index", "build", DEMO, "--out", "out", "--engine", "qdrant", "--url", url)
    assert (wrong.returncode, "no server answers at" in wrong.stderr) == (2, True)
    assert not (tmp_path / "out").exists()  # it is said before the build
    secret = citerec("index", "push", "out", "--to", "http://me:secret@host/demo")
    assert secret.returncode == 2
    assert "secret" not in secret.stderr


def test_help_starts_no_client(citerec: Citerec) -> None:
    shown = citerec("index", "push", "--help")
    assert "Example: citerec index push" in shown.stdout
    assert "CITEREC_QDRANT_API_KEY" in shown.stdout
