"""`citerec index build --engine qdrant`, and what is searched there, from outside."""

from pathlib import Path

import pytest

from tests.conftest import DEMO, Citerec
from tests.e2e.test_cli import one_line

pytestmark = pytest.mark.slow


def test_build_and_search_there(citerec_here: Citerec, hybrid_index: Path, tmp_path: Path, silent_port: int) -> None:
    to = ("--engine", "qdrant", "--url", f"path:{tmp_path}/engine/mine", "--out", "mine")
    built = citerec_here("index", "build", hybrid_index, *to)
    assert "mine built: 252 papers" in built.stdout and "252 papers have a vector" in built.stdout, built.stderr
    ask = ("recommend", "Two antiparallel strands wind around a common axis <REF>.", "--system", "bm25", "--index")
    assert citerec_here(*ask, hybrid_index).stdout == citerec_here(*ask, "mine").stdout != ""
    citerec_here("index", "remove", "mine", "900000001", code=0)
    citerec_here("index", "verify", "mine", code=0)
    build = ("index", "build", DEMO, "--out", "out")
    one_line(citerec_here(*build, "--engine", "qdrant"), 2, "--engine qdrant needs --url")
    one_line(citerec_here(*build, "--url", "http://localhost/x"), 2, "--url needs --engine qdrant")
    late = citerec_here(*build, "--engine", "qdrant", "--url", f"http://127.0.0.1:{silent_port}/x")
    assert "no server answers" in late.stderr and not (tmp_path / "out" / "CURRENT").exists()
