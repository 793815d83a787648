"""`citerec corpus` from outside, against a server on loopback: killed and taken up again, and given wrong arguments."""

import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import Citerec
from tests.corpus_server import KEY, S2agServer, cut_state, first_state, next_state, state_of
from tests.e2e.test_cli import one_line

pytestmark = pytest.mark.slow

STATE = first_state(3000)
KILLS = 4


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S2_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[S2agServer]:
    with S2agServer(shards=6) as server:
        server.publish("2024-01-02", STATE)
        yield server


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def killed(folder: Path, command: list[object], seconds: float) -> bool:
    """Runs a command and kills it with all its processes after some seconds; whether it was still at work."""
    arguments = [Path(sys.executable).with_name("citerec"), *map(str, command)]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(arguments, cwd=folder, start_new_session=True, **output) as process:
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return True
    return False


def test_get_and_update_that_are_killed_end_with_the_same_bytes(
    server: S2agServer, citerec: Citerec, tmp_path: Path
) -> None:
    get = ["corpus", "get", "s2ag", "--url", server.url, "--year-from", 2000, "--workers", 1, "--out"]
    update = ["corpus", "update", "--url", server.url, "--workers", 1]
    assert citerec(*get, "whole").returncode == 0
    server.failing, server.pause, rng = 0.05, 0.03, random.Random(7)
    cut_short = sum(killed(tmp_path, [*get, "cs"], rng.uniform(1.5, 4)) for _ in range(KILLS))
    assert cut_short
    result = citerec(*get, "cs")
    assert (tmp_path / "cs").is_dir(), result.stderr
    assert digests(tmp_path / "cs") == digests(tmp_path / "whole")
    state = STATE
    for number in range(3):
        server.publish(f"2024-02-0{number + 1}", state := next_state(state, number))
    for _ in range(KILLS):
        killed(tmp_path, [*update, "cs"], rng.uniform(1.5, 4))
    assert citerec(*update, "cs").returncode == 0
    assert state_of(tmp_path / "cs") == cut_state(state, lambda paper: paper["year"] >= 2000)
    server.failing, server.pause = 0.0, 0.0
    assert citerec(*update, "whole").returncode == 0
    assert digests(tmp_path / "cs") == digests(tmp_path / "whole")


def test_from_a_release_to_an_index(server: S2agServer, citerec: Citerec, tmp_path: Path) -> None:
    few = ("--field", "physics", "--year-from", 2024)
    (tmp_path / "x" / "making").mkdir(parents=True)  # a build that was stopped is no obstacle
    result = citerec("corpus", "get", "s2ag", *few, "--url", server.url, "--out", "cs", "--build", "x")
    assert result.returncode == 0, result.stderr
    papers = len(state_of(tmp_path / "cs")["papers"])
    assert f"cs: {papers} papers of s2ag 2024-01-02" in result.stdout
    assert re.search(
        rf"^x built: {papers} papers\.\n(.*\n)+  with abstract +{papers} \(100%\) *$", result.stdout, re.MULTILINE
    )
    assert f"{papers} papers have a vector" in result.stdout
    assert "estimates from the first megabytes" in result.stdout
    assert "The index takes up to" in result.stdout
    again = citerec("corpus", "get", "s2ag", *few, "--url", server.url, "--out", "cs")
    assert again.returncode == 0, again.stderr
    assert f"cs holds this already: {papers} papers." in again.stdout
    shown = citerec("corpus", "show", "cs").stdout
    assert f"cs: {papers} papers of s2ag, release 2024-01-02" in shown
    assert "Cut: year_from 2024, fields physics" in shown


def test_what_there_is(server: S2agServer, citerec: Citerec, tmp_path: Path) -> None:
    listed = citerec("corpus", "show").stdout
    assert "s2ag: Semantic Scholar Academic Graph" in listed
    assert "Key: S2_API_KEY, which is set." in listed
    shown = citerec("corpus", "show", "s2ag", "--url", server.url).stdout
    assert "Releases: 1. The newest: 2024-01-02" in shown
    assert "Terms of use: Made up, for tests." in shown
    estimated = citerec("corpus", "get", "s2ag", "--url", server.url, "--out", "cs", "--estimate")
    assert estimated.returncode == 0, estimated.stderr
    assert "citations" in estimated.stdout
    (tmp_path / "my.bib").write_text("@article{a, title={Something}, doi={10.1/1003}, year=2001}\n")
    near = citerec("corpus", "get", "s2ag", "--url", server.url, "--out", "cs", "--cited-by", "my.bib", "--estimate")
    assert "nan" not in near.stdout
    assert not (tmp_path / "cs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get", "s2ga", "--out", "cs"], "Did you mean s2ag"),
        (["get", "s2ag", "--out", "cs", "--language", "en"], "does not say languages"),
        (["get", "s2ag", "--out", "cs", "--ids", "none"], "cannot read none"),
        (["get", "s2ag", "--out", ".", "--url", "http://127.0.0.1:9"], "is the current folder"),
        (["show", "nothing"], "there is no corpus 'nothing'"),
        (["show", "."], ". is no fetched corpus"),
        (["update", "nothing"], "nothing is no fetched corpus"),
        (["get", "s2ag", "--out", "cs", "--build", "full"], "full exists and is not an index"),
    ],
)
def test_wrong_arguments_end_in_one_line(
    citerec_here: Citerec, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    result = citerec_here("corpus", *arguments)
    one_line(result, 2, message)


def test_a_disk_that_is_too_small(server: S2agServer, citerec_here: Citerec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    result = citerec_here("corpus", "get", "s2ag", "--url", server.url, "--out", "cs")
    assert result.returncode == 2
    assert "10 bytes are free" in result.stderr
