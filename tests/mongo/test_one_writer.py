"""One process at a time writes to a MongoDB database, and goes on where a killed one stopped."""

import multiprocessing
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import pytest

from citerec.corpus import mongo_store
from citerec.corpus.base import REMOVED, Shard
from citerec.corpus.store import SqliteStore, StoreError, changes_of, open_store
from citerec.errors import InputError
from citerec.records import Paper
from tests.conftest import write_lines
from tests.mongo.conftest import facts_of, ingested

pytestmark = pytest.mark.slow


def write_slowly(address: str, shards: Sequence[Shard], written: "SimpleQueue[float]") -> None:
    """Another process that writes: it tells how far it is, and its lock lasts as long as a test can wait."""
    mongo_store.LOCK_SECONDS = 1.5

    def progress(_doing: str, done: float, _whole: float) -> None:
        written.put(done)
        time.sleep(0.02)

    ingested(open_store(address), shards, on_progress=progress)


def test_killed_writers(mongodb: str, release: list[Shard], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "removed.txt").write_text("".join(f"{number}\n" for number in range(0, 700, 3)))
    back = write_lines(tmp_path / "back.jsonl", [{"paper_id": "3", "title": "back"}, {"paper_id": "new", "title": "n"}])
    shards = [*release, Shard(tmp_path / "removed.txt", REMOVED), Shard(back, "jsonl")]
    expected = ingested(SqliteStore(tmp_path / "alone.sqlite"), shards)
    context = multiprocessing.get_context("spawn")
    for steps in (1, 2, 3, 4):  # killed after a batch of a shard and after a shard, in turns
        written = context.SimpleQueue()
        writer = context.Process(target=write_slowly, args=(mongodb, shards, written))
        writer.start()
        for _ in range(steps):
            written.get()
        writer.kill()
        writer.join()
    monkeypatch.setattr(mongo_store, "LOCK_SECONDS", 1.5)
    store = open_store(mongodb)
    assert 0 < len(store.shards()) < len(shards)
    assert facts_of(ingested(store, shards)) == facts_of(expected)
    store.close()
    expected.close()


def test_one_writer_and_the_same_shards(mongodb: str, monkeypatch: pytest.MonkeyPatch, release: list[Shard]) -> None:
    monkeypatch.setattr(mongo_store, "LOCK_SECONDS", 0.4)
    first, second = open_store(mongodb), open_store(mongodb)
    ended = threading.Event()

    def keep_writing() -> None:
        while not ended.wait(0.1):
            first.write(changes_of([Paper("p")]))

    with first.writing(), ThreadPoolExecutor(1) as pool:
        pool.submit(keep_writing)
        with pytest.raises(StoreError, match="another process is writing to"):
            ingested(second, release)
        ended.set()
    ingested(second, release[:2])  # the lock was given back
    for others in (release[2:4], release[:1]):
        with pytest.raises(InputError, match="holds papers of other shards"):
            ingested(second, others)
    first.close()
    second.close()
