"""Encoding part by part, on all executors: the same bytes, begun in one and finished in another."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from citerec import Index
from citerec.errors import ModelError
from citerec.files.parallel import HERE, Parallelism, Ray
from citerec.files.progress import no_progress
from citerec.index import vectors as encode_module
from citerec.index.build import encode_index
from citerec.index.vectors import DenseOptions
from citerec.models.encoder import PaperEncoder, TextEncoder
from citerec.records import Paper
from tests.dense.conftest import WORDS, papers_of, vectors_of
from tests.tiny_models import write_tiny_static

pytestmark = pytest.mark.slow

PAPERS = 90
PATIENCE_SECONDS = 240


class StoppedError(Exception):
    """What a test stops a build with."""


class SlowEncoder:
    """A real encoder that writes its process to a folder with each piece, and waits until the test lets it go on."""

    def __init__(self, encoder: TextEncoder, folder: Path) -> None:
        self._encoder, self._folder = encoder, folder
        self.identity, self.dimension, self.max_tokens = encoder.identity, encoder.dimension, encoder.max_tokens

    def encode_papers(self, papers: Sequence[Paper]) -> Any:
        (self._folder / f"{os.getpid()}").touch()
        while not (self._folder / "go").exists():
            time.sleep(0.02)
        return self._encoder.encode_papers(papers)


def open_slowly(options: DenseOptions) -> PaperEncoder:
    return SlowEncoder(TextEncoder.open(options), Path(options.model).parent / "slow")


def open_another(options: DenseOptions) -> PaperEncoder:
    """An encoder whose weights are others in each process."""
    encoder = TextEncoder.open(options)
    encoder.identity += f" of {os.getpid()}"
    return encoder


def backwards(work: Callable[[Any], Any], items: Sequence[Any], _workers: Parallelism, *, gpus: float = 0) -> Any:
    """In place of `outcomes_of`: items end in reverse order."""
    assert gpus == 1, "torch asks for a GPU"
    read = list(items)
    for number in reversed(range(len(read))):
        yield number, work(read[number])


@pytest.fixture(scope="session")
def static(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that another process opens without torch, which takes seconds to import."""
    return str(write_tiny_static(tmp_path_factory.mktemp("models") / "static", [" ".join(WORDS)]))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_module, "_PART", 16)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    Index.build(papers_of(PAPERS), tmp_path / "index")
    return tmp_path / "index"


def encoded_on(index: Path, options: DenseOptions, parallelism: Parallelism = HERE, **more: Any) -> bytes:
    """The vectors that a copy of an index gets, as bytes; it goes on with what is there."""
    if not (copy := index.with_name(more.pop("name", f"copy of {parallelism}"))).exists():
        shutil.copytree(index, copy)
    encode_index(copy, options, more.pop("on_progress", no_progress), parallelism=parallelism, **more)
    return (vectors_of(copy).path / "vectors.npy").read_bytes()


def test_all_executors_write_the_same_bytes(index: Path, static: str, on_ray: Ray) -> None:
    options = DenseOptions(static)
    here = encoded_on(index, options)
    assert encoded_on(index, options, 2) == here
    assert encoded_on(index, options, on_ray, name="ray") == here


def test_the_order_of_parts_makes_no_difference(index: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = encoded_on(index, DenseOptions(model), name="here")
    monkeypatch.setattr(encode_module, "outcomes_of", backwards)
    assert encoded_on(index, DenseOptions(model), name="backwards") == here


def test_what_was_begun_in_one_place_goes_on_in_another(index: Path, static: str, on_ray: Ray) -> None:
    options = DenseOptions(static)
    whole = encoded_on(index, options, name="whole")

    def stop(doing: str, done: float, _whole: float) -> None:
        if doing == "encoding" and done >= 40:
            raise StoppedError

    told: list[float] = []

    def listen(doing: str, done: float, _whole: float) -> None:
        if doing == "encoding":
            told.append(done)

    for name, first, second in (("local", HERE, on_ray), ("ray", on_ray, HERE), ("two", 2, HERE)):
        with pytest.raises(StoppedError):
            encoded_on(index, options, first, name=name, on_progress=stop)
        told.clear()
        assert encoded_on(index, options, second, name=name, on_progress=listen) == whole, name
        assert len(told) == 3, f"{name}: of six parts, three were finished, and are not encoded again"


def test_a_killed_worker_of_ray_is_replaced(index: Path, static: str, on_ray: Ray) -> None:
    slow = Path(static).parent / "slow"
    slow.mkdir(exist_ok=True)
    options = DenseOptions(static)
    whole = encoded_on(index, options, name="whole")
    killed: list[int] = []

    def kill() -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end and not killed:
            for note in slow.iterdir():
                # A worker sits between two of its outcomes, or before the first.
                psutil.Process(int(note.name)).send_signal(signal.SIGKILL)
                killed.append(int(note.name))
                break
            time.sleep(0.02)
        (slow / "go").touch()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        there = encoded_on(index, replace(options, open_encoder=open_slowly), on_ray, name="ray")
    finally:
        thread.join()
    workers = {int(note.name) for note in slow.iterdir() if note.name != "go"}
    assert killed
    assert os.getpid() not in workers
    assert workers > set(killed), "another process did its part"
    assert there == whole


def test_another_model_on_another_machine_is_refused(index: Path, static: str, on_ray: Ray) -> None:
    for place in (2, on_ray):
        with pytest.raises(ModelError, match="is another one than here"):
            encode_index(index, DenseOptions(static, open_encoder=open_another), parallelism=place)


def test_threads_are_shared_by_the_processes_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_module, "available_processors", lambda: 8)
    threads = {processes: encode_module.threads_for(processes) for processes in (1, 2, 3, 16)}
    assert threads == {1: 8, 2: 4, 3: 2, 16: 1}
