"""`citerec corpus` from outside, against a server on loopback: killed and taken up again, and given wrong arguments."""

import os
import random
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CITEREC, Citerec
from tests.corpus_server import KEY, S2agServer, cut_state, first_state, next_state, state_of
from tests.e2e.test_cli import one_line
from tests.unit.test_build import digests

pytestmark = pytest.mark.slow

STATE = first_state(3000)
KILLS = 4


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S2agServer]:
    monkeypatch.setenv("S2_API_KEY", KEY)
    with S2agServer(shards=6) as server:
        server.publish("2024-01-02", STATE)
        yield server


def killed(folder: Path, command: list[object], seconds: float) -> bool:
    """Runs a command and kills it with all its processes after some seconds; whether it was still at work."""
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    arguments = [CITEREC, *map(str, command)]
    with subprocess.Popen(arguments, cwd=folder, start_new_session=True, **output) as process:
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return True
    return False


def test_what_is_killed_ends_with_the_same_bytes(server: S2agServer, citerec_here: Citerec, tmp_path: Path) -> None:
    get = ["corpus", "get", "s2ag", "--url", server.url, "--year-from", 2000, "--workers", 1, "--out"]
    update = ["corpus", "update", "--url", server.url, "--workers", 1]
    citerec_here(*get, "whole", code=0)
    server.failing, server.pause, rng = 0.05, 0.03, random.Random(7)
    assert sum(killed(tmp_path, [*get, "cs"], rng.uniform(1.5, 4)) for _ in range(KILLS))
    citerec_here(*get, "cs", code=0)
    assert digests(tmp_path / "cs") == digests(tmp_path / "whole")
    state = STATE
    for number in range(3):
        server.publish(f"2024-02-0{number + 1}", state := next_state(state, number))
    for _ in range(KILLS):
        killed(tmp_path, [*update, "cs"], rng.uniform(1.5, 4))
    citerec_here(*update, "cs", code=0)
    assert state_of(tmp_path / "cs") == cut_state(state, lambda paper: paper["year"] >= 2000)
    server.failing, server.pause = 0.0, 0.0
    citerec_here(*update, "whole", code=0)
    assert digests(tmp_path / "cs") == digests(tmp_path / "whole")


def test_from_a_release_to_an_index(server: S2agServer, citerec_here: Citerec, tmp_path: Path) -> None:
    shown = citerec_here("corpus", "show").stdout
    assert "s2ag: Semantic Scholar Academic Graph" in shown and "Key: S2_API_KEY, which is set." in shown
    shown = citerec_here("corpus", "show", "s2ag", "--url", server.url).stdout
    assert "Releases: 1. The newest: 2024-01-02" in shown and "Terms of use: Made up, for tests." in shown
    get = ("corpus", "get", "s2ag", "--url", server.url, "--out", "cs")
    (tmp_path / "my.bib").write_text("@article{a, title={Something}, doi={10.1/1003}, year=2001}\n")
    near = citerec_here(*get, "--cited-by", "my.bib", "--estimate")
    assert near.returncode == 0 and "citations" in near.stdout and "nan" not in near.stdout
    assert not (tmp_path / "cs").exists()
    (tmp_path / "x" / "making").mkdir(parents=True)  # a build that was stopped is no obstacle
    few = ("--field", "physics", "--year-from", 2024)
    result = citerec_here(*get, *few, "--build", "x", code=0)
    papers = len(state_of(tmp_path / "cs")["papers"])
    assert f"cs: {papers} papers of s2ag 2024-01-02" in result.stdout
    assert re.search(rf"^x built: {papers} papers\.$", result.stdout, re.MULTILINE)
    assert f"cs holds this already: {papers} papers." in citerec_here(*get, *few).stdout
    assert "Cut: year_from 2024, fields physics" in citerec_here("corpus", "show", "cs").stdout
    one_line(citerec_here("corpus", "get", "s2ga", "--out", "x2"), 2, "Did you mean s2ag")
    one_line(citerec_here(*get, "--language", "en"), 2, "does not say languages")
    one_line(citerec_here("corpus", "update", "nothing"), 2, "nothing is no fetched corpus")
