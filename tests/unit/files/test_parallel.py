"""Work on many items: the same outcomes and the same errors in processes and on Ray, and what dies is done again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from citerec.errors import InputError, ServiceError
from citerec.files.parallel import Parallelism, Ray, outcomes_of, workers_on
from tests.conftest import ROOT


def squared(number: int) -> tuple[int, str, str]:
    return number**2, Path.cwd().name, os.environ.get("CITEREC_TEST_PLACE", "")


def refused(number: int) -> int:
    raise InputError(f"{number} is refused", "Give another.")


def slow(folder: Path, number: int) -> int:
    (folder / f"{os.getpid()}-{number}").touch()
    time.sleep(60 if number else 0)
    return number


@pytest.fixture(params=[1, 2, pytest.param("ray", marks=pytest.mark.slow)])
def workers(request: pytest.FixtureRequest) -> Parallelism:
    if request.param == "ray":
        request.getfixturevalue("ray_here")
        return Ray(2)
    return int(request.param)


def test_each_item_gives_its_outcome(workers: Parallelism, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):  # processes are used again
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("CITEREC_TEST_PLACE", name)
        place = name if isinstance(workers, int) else ""  # a cluster has an environment of its own
        found = {
            number: (root, folder, variable if place else "")
            for number, (root, folder, variable) in outcomes_of(squared, iter(range(20)), workers)
        }
        assert found == {number: (number**2, name, place) for number in range(20)}
    assert list(outcomes_of(squared, [], workers)) == []
    with pytest.raises(InputError, match=r"^7 is refused\. Give another\.$"):
        list(outcomes_of(refused, [7, 7], workers))


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
