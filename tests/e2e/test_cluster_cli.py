"""`--on ray` and addresses: the same bytes as without, stopped work goes on, and nothing is left behind."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from citerec.files.addresses import path_of
from tests.conftest import CITEREC, Citerec
from tests.unit.test_build import MAX_BAD

pytestmark = pytest.mark.slow

EXTRACT = ("contexts", "extract", "--max-bad", MAX_BAD)


@pytest.fixture(scope="module")
def expected(s2_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contexts of the release, extracted here; its quarantine is beside it."""
    from citerec.contexts.extract import Rules, extract_shards

    out = tmp_path_factory.mktemp("expected") / "contexts.jsonl"
    extract_shards([s2_release / "s2orc_v2"], out, Rules(), max_bad=MAX_BAD, workers=1)
    return out


def is_same(one: Path, other: Path) -> bool:
    """Whether two files of contexts, and their quarantines, are the same."""
    pairs = [(path, path.with_name(f"{path.name}.quarantine.jsonl")) for path in (one, other)]
    return [file.read_bytes() for file in pairs[0]] == [file.read_bytes() for file in pairs[1]]


def times(work: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in work.iterdir() if path.suffix == ".json"}


def test_from_address_to_address(
    citerec_here: Citerec, s2_release: Path, expected: Path, ray_here: Any, s3: str
) -> None:
    for path in (s2_release / "s2orc_v2").iterdir():
        path_of(f"{s3}/texts/{path.name}").write_bytes(path.read_bytes())
    citerec_here(*EXTRACT, f"{s3}/texts/*", "--out", f"{s3}/out/contexts.jsonl", "--on", "ray", code=0)
    assert is_same(path_of(f"{s3}/out/contexts.jsonl"), expected)
    assert len(list(path_of(f"{s3}/out/.contexts.jsonl.work").iterdir())) > 6  # results and their receipts


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_command_that_is_stopped_leaves_no_ray_and_goes_on(
    sent: signal.Signals, citerec_here: Citerec, s2_release: Path, expected: Path, ray_here: Any, tmp_path: Path
) -> None:
    command = [*map(str, EXTRACT), str(s2_release / "s2orc_v2"), "--out", "contexts.jsonl", "--on", "ray"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([CITEREC, *command, "--workers", "1"], cwd=tmp_path, **pipes) as process:
        work = tmp_path / ".contexts.jsonl.work"
        while not (work.exists() and times(work)):
            assert process.poll() is None, process.communicate()
            time.sleep(0.005)
        rays = psutil.Process(process.pid).children(recursive=True)
        assert rays
        os.killpg(process.pid, sent)
        out, said = process.communicate(timeout=60)
    assert out == ""
    if sent == signal.SIGINT:
        assert process.returncode == 1
        assert said.strip() == "citerec: stopped. Nothing is lost: repeat the command to resume or restart."
    assert not [one for one in psutil.wait_procs(rays, timeout=30)[1] if one.status() != psutil.STATUS_ZOMBIE]
    assert not (tmp_path / "contexts.jsonl").exists()
    done = times(work)
    citerec_here(*command, code=0)
    assert is_same(tmp_path / "contexts.jsonl", expected)
    assert done.items() <= times(work).items()
