"""Encoding part by part, on all executors: the same bytes, begun in one and finished in another."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from citerec.corpus.store import SearchableText
from citerec.errors import ModelError
from citerec.files.parallel import HERE, Parallelism, Ray
from citerec.files.progress import no_progress
from citerec.retrieve.dense import encode as encode_module
from citerec.retrieve.dense.build import build_dense
from citerec.retrieve.dense.encode import DenseOptions, PaperEncoder, TextEncoder
from citerec.retrieve.dense.manifest import FILES
from tests.dense.conftest import WORDS, StoreOf, build, papers_of
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

    def encode_papers(self, papers: Sequence[SearchableText]) -> Any:
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


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (*FILES, "manifest.json")}


def build_on(folder: Path, store: Any, options: DenseOptions, parallelism: Parallelism, **more: Any) -> None:
    given = {"on_progress": no_progress, **more}
    build_dense(folder, store, store.fingerprint(), PAPERS, options, parallelism=parallelism, **given)


def test_all_executors_write_the_same_bytes(tmp_path: Path, store_of: StoreOf, static: str, on_ray: Ray) -> None:
    store, options = store_of(papers_of(PAPERS)), DenseOptions(static)
    build(tmp_path / "here", store, options)
    places: dict[str, Parallelism] = {"processes": 2, "ray": on_ray}
    for name, parallelism in places.items():
        build_on(tmp_path / name, store, options, parallelism)
        assert files(tmp_path / name) == files(tmp_path / "here"), name


def test_the_order_of_parts_makes_no_difference(
    tmp_path: Path, store_of: StoreOf, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, options = store_of(papers_of(PAPERS)), DenseOptions(model)
    build(tmp_path / "here", store, options)
    monkeypatch.setattr(encode_module, "outcomes_of", backwards)
    build(tmp_path / "backwards", store, options)
    assert files(tmp_path / "backwards") == files(tmp_path / "here")


def test_what_was_begun_in_one_place_goes_on_in_another(
    tmp_path: Path, store_of: StoreOf, static: str, on_ray: Ray
) -> None:
    store, options = store_of(papers_of(PAPERS)), DenseOptions(static)
    build(tmp_path / "whole", store, options)

    def stop(doing: str, done: float, _whole: float) -> None:
        if doing == "encoding" and done >= 40:
            raise StoppedError

    told: list[float] = []

    def listen(doing: str, done: float, _whole: float) -> None:
        if doing == "encoding":
            told.append(done)

    for name, first, second in (("local", HERE, on_ray), ("ray", on_ray, HERE), ("two", 2, HERE)):
        with pytest.raises(StoppedError):
            build_on(tmp_path / name, store, options, first, on_progress=stop)
        told.clear()
        build_on(tmp_path / name, store, options, second, on_progress=listen)
        assert min(told) >= 42, f"{name}: finished parts are not encoded again"
        assert files(tmp_path / name) == files(tmp_path / "whole"), name


def test_a_part_is_read_once_and_what_is_known_is_taken_over(
    tmp_path: Path, store_of: StoreOf, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = papers_of(PAPERS)
    old = build(tmp_path / "old", store_of(papers[:70]), DenseOptions(model))
    whole = build(tmp_path / "whole", store_of(papers), DenseOptions(model), previous=tmp_path / "old")
    monkeypatch.setattr(encode_module, "outcomes_of", backwards)
    build(tmp_path / "new", store_of(papers), DenseOptions(model), previous=tmp_path / "old")
    assert files(tmp_path / "new") == files(tmp_path / "whole")
    ids = [paper.paper_id for paper in papers[:70]]
    np.testing.assert_array_equal(whole.values[whole.rows(ids)], old.values[old.rows(ids)])


def test_a_killed_worker_of_ray_is_replaced(tmp_path: Path, store_of: StoreOf, static: str, on_ray: Ray) -> None:
    slow = Path(static).parent / "slow"
    slow.mkdir(exist_ok=True)
    store, options = store_of(papers_of(PAPERS)), DenseOptions(static)
    build(tmp_path / "whole", store, options)
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
        build_on(tmp_path / "ray", store, options, on_ray, open_encoder=open_slowly)
    finally:
        thread.join()
    workers = {int(note.name) for note in slow.iterdir() if note.name != "go"}
    assert killed
    assert os.getpid() not in workers
    assert workers > set(killed), "another process did its part"
    assert files(tmp_path / "ray") == files(tmp_path / "whole")


def test_another_model_on_another_machine_is_refused(
    tmp_path: Path, store_of: StoreOf, static: str, on_ray: Ray
) -> None:
    store, options = store_of(papers_of(PAPERS)), DenseOptions(static)
    for place in (2, on_ray):
        with pytest.raises(ModelError, match="is another one than here"):
            build_on(tmp_path / "dense", store, options, place, open_encoder=open_another)


def test_threads_are_shared_by_the_processes_of_a_machine(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode_module, "available_processors", lambda: 8)
    threads = {
        processes: encode_module.Encoding(DenseOptions(model), parallelism=processes).__reduce__()[1][-1]
        for processes in (1, 2, 3, 16)
    }
    assert threads == {1: 8, 2: 4, 3: 2, 16: 1}
