"""Work on many items in processes: where it is done, and that none outlives its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from citerec.errors import InputError, ServiceError
from citerec.files.parallel import outcomes_of, workers_on
from tests.conftest import ROOT


def squared(number: int) -> tuple[int, str, str]:
    return number**2, Path.cwd().name, os.environ.get("CITEREC_TEST_PLACE", "")


def slow(folder: Path, number: int) -> int:
    (folder / f"{os.getpid()}-{number}").touch()
    time.sleep(60 if number else 0)
    return number


def test_processes_work_where_they_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("CITEREC_TEST_PLACE", name)
        found = dict(outcomes_of(squared, iter(range(20)), 2))
        assert found == {number: (number**2, name, name) for number in range(20)}


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL], ids=["stopped", "killed"])
def test_processes_end_with_their_parent(sent: signal.Signals, tmp_path: Path) -> None:
    program = (
        "import functools, pathlib, sys\n"
        "from citerec.files.parallel import outcomes_of\n"
        "from tests.unit.files.test_parallel import slow\n"
        "list(outcomes_of(functools.partial(slow, pathlib.Path(sys.argv[1])), [1, 2], 2))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, sent) if sent == signal.SIGINT else process.send_signal(sent)
        process.wait(60)
    _, alive = psutil.wait_procs(children, timeout=20)
    assert children and not [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def test_nobody_answers(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = f"ray://127.0.0.1:{silent_port}"
    for address in ("ray://", "Ray", "ray://host", "nonsense", "host:", ":10001", "host:port", silent):
        remedy = "Start one: ray start --head" if address == silent else "Give ray://HOST:"
        with pytest.raises(ServiceError, match=f"no Ray cluster answers at .*{remedy}"), workers_on(address):
            pass
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"Ray is not installed. pip install 'citerec\[scale\]'"), workers_on("ray"):
        pass
