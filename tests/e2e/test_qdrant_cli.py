"""`citerec index build --engine qdrant`, and what is searched there, from outside."""

from pathlib import Path

import pytest

from tests.conftest import DEMO, Citerec

pytestmark = pytest.mark.slow

SENTENCE = "Two antiparallel strands wind around a common axis <REF>."


def test_an_index_is_built_from_another_and_searched_there(
    citerec: Citerec, hybrid_index: Path, tmp_path: Path
) -> None:
    to = ("--engine", "qdrant", "--url", f"path:{tmp_path}/engine/mine", "--out", "mine")
    built = citerec("index", "build", hybrid_index, *to)
    assert built.returncode == 0, built.stderr
    assert "mine built: 252 papers" in built.stdout
    assert "252 papers have a vector" in built.stdout
    here, there = (citerec("recommend", SENTENCE, "--index", one, "--system", "bm25") for one in (hybrid_index, "mine"))
    assert there.returncode == 0, there.stderr
    assert here.stdout == there.stdout
    removed = citerec("index", "remove", "mine", "900000001")
    assert removed.returncode == 0, removed.stderr
    assert citerec("index", "verify", "mine").returncode == 0
    assert "qdrant" in citerec("index", "info", "mine").stdout


def test_an_address_and_the_engine_go_together(citerec: Citerec, silent_port: int) -> None:
    wrong = citerec("index", "build", DEMO, "--out", "out", "--engine", "qdrant")
    assert wrong.returncode == 2
    assert "--engine qdrant needs --url" in wrong.stderr
    wrong = citerec("index", "build", DEMO, "--out", "out", "--url", "http://localhost/x")
    assert "--url needs --engine qdrant" in wrong.stderr
    late = citerec(
        *("index", "build", DEMO, "--out", "out", "--engine", "qdrant", "--url", f"http://127.0.0.1:{silent_port}/x")
    )
    assert "no server answers" in late.stderr
    assert not Path("out/CURRENT").exists()
