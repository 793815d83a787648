"""Executors: the same outcomes and the same errors on processes and on Ray, and what dies is done again."""

import functools
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citerec.errors import InputError, ServiceError
from citerec.groundwork import ray_executor
from citerec.groundwork.executors import executor_on, outcomes_of
from citerec.groundwork.processes import ProcessDiedError

pytestmark = pytest.mark.slow


def counted_down(number: int) -> Iterator[tuple[int, str]]:
    for left in range(number, 0, -1):
        yield left, Path.cwd().name


def refused(number: int) -> Iterator[int]:
    yield number
    raise InputError(f"{number} is refused", "Give another.")


def deadly(folder: Path, deaths: int, number: int) -> Iterator[int]:
    """Dies between its outcomes, the first times that it is called."""
    yield number
    died = sorted(folder.glob(f"{number}-*"))
    if len(died) < deaths:
        (folder / f"{number}-{len(died)}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield -number


def slow(folder: Path, number: int) -> Iterator[int]:
    yield number
    time.sleep(60)
    (folder / "went on").touch()


@pytest.mark.parametrize("on", [None, "ray"])
def test_each_item_gives_its_outcomes_in_order(
    on: str | None, ray_here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with executor_on(on, 2) as executor:
        found: dict[int, list[tuple[int, str]]] = {}
        for number, outcome in outcomes_of(counted_down, [3, 1, 0, 2], executor):
            found.setdefault(number, []).append(outcome)
        assert list(outcomes_of(counted_down, [], executor)) == []
    here = tmp_path.name
    assert found == {0: [(3, here), (2, here), (1, here)], 1: [(1, here)], 3: [(2, here), (1, here)]}


@pytest.mark.parametrize("on", [None, "ray"])
def test_an_error_of_the_work_arrives_as_it_is(on: str | None, ray_here: Any) -> None:
    with executor_on(on, 2) as executor, pytest.raises(InputError) as raised:
        list(outcomes_of(refused, [7, 7], executor))
    assert str(raised.value) == "7 is refused. Give another."
    assert "in refused" in raised.value.__notes__[0]


def test_what_died_on_ray_is_done_again(ray_here: Any, tmp_path: Path) -> None:
    with executor_on("ray", 2) as executor:
        found = sorted(outcomes_of(functools.partial(deadly, tmp_path, 1), [1, 2, 3], executor))
    assert found == [(0, -1), (0, 1), (1, -2), (1, 2), (2, -3), (2, 3)]
    assert len(list(tmp_path.iterdir())) == 3


def test_what_always_dies_ends_in_one_error(ray_here: Any, tmp_path: Path) -> None:
    with executor_on("ray", 1) as executor, pytest.raises(ProcessDiedError, match=r"Ray could not finish the work"):
        list(outcomes_of(functools.partial(deadly, tmp_path, 100), [1], executor))
    assert len(list(tmp_path.iterdir())) == 4  # once, and three times again


def test_who_stops_listening_ends_the_work(ray_here: Any, tmp_path: Path) -> None:
    with executor_on("ray", 2) as executor:
        outcomes = outcomes_of(functools.partial(slow, tmp_path), [1, 2], executor)
        next(outcomes)
        outcomes.close()
        assert list(outcomes_of(counted_down, [1], executor))  # there is room for other work
    assert not list(tmp_path.iterdir())


def test_a_machine_without_the_folder_of_the_command_is_named(tmp_path: Path) -> None:
    """As on a cluster that shares no disk."""
    *_, (_, error) = ray_executor._each(refused, 7, str(tmp_path / "elsewhere"))
    assert isinstance(error, InputError)
    assert f"7 is refused. This happened on {socket.gethostname()}, which has no {tmp_path / 'elsewhere'}" in str(error)


def test_gpus_are_asked_for_only_where_there_are_some(ray_here: Any) -> None:
    with executor_on("ray", 1) as executor:
        assert len(list(outcomes_of(counted_down, [1], executor, gpus=1))) == 1


def test_another_version_on_the_cluster_is_refused(ray_here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor, "__version__", "0.0.0")
    with pytest.raises(ServiceError, match=r"at ray has citerec .*, and this is 0.0.0"), executor_on("ray"):
        pass


@pytest.mark.parametrize("place", ["ray://", "Ray", "ray://host", "nonsense", "host:", ":10001", "host:port"])
def test_no_address(place: str) -> None:
    with pytest.raises(ServiceError, match=r"is no address of Ray. Give ray, ray://HOST:PORT"):
        ray_executor._check_address(place)


@pytest.mark.parametrize("scheme", ["ray://", ""])
def test_nobody_answers(silent_port: int, scheme: str) -> None:
    with pytest.raises(ServiceError, match=r"no Ray cluster answers at .*Start one: ray start --head"):
        ray_executor._check_address(f"{scheme}127.0.0.1:{silent_port}")


def test_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"Ray is not installed. pip install 'citerec\[ray\]'"), executor_on("ray"):
        pass


def test_folders_of_killed_commands_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(ray_executor, "_LONGEST", 500)
    ended, living = tmp_path / "citerec-ray-999999999-x", tmp_path / f"citerec-ray-{os.getpid()}-x"
    for folder in (ended, living):
        folder.mkdir()
        os.utime(folder, (0, 0))
    (young := tmp_path / "citerec-ray-999999998-x").mkdir()
    new = Path(ray_executor._short_folder())
    assert {*tmp_path.iterdir()} == {living, young, new}
