"""One process at a time writes to a MongoDB database, and goes on where a killed one stopped."""

import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from citerec.corpus import mongo_store
from citerec.corpus.base import REMOVED, Shard
from citerec.corpus.ingest import ingest
from citerec.corpus.store import PaperStore, SqliteStore, StoreError, changes_of
from citerec.corpus.stores import open_store
from citerec.errors import InputError
from citerec.records import Paper
from tests.conftest import ROOT, write_lines
from tests.mongo.conftest import NewStore

pytestmark = pytest.mark.slow

SHARDS, RECORDS = 12, 60


@pytest.fixture
def shards(tmp_path: Path) -> list[Shard]:
    """Shards that share ids, so that their order counts; some bad records; papers that are deleted and come back."""
    made = []
    for number in range(SHARDS):
        records: list[Any] = [
            {"paper_id": f"p{line * 7 % 100}", "title": f"title {number} {line}", "abstract": f"of {number}"}
            for line in range(RECORDS)
        ]
        if number % 5 == 1:
            records.append({"title": "no id"})
        made.append(Shard(write_lines(tmp_path / f"{number:02}.jsonl", records), "jsonl"))
    removed = tmp_path / "removed.txt"
    removed.write_text("".join(f"p{number}\n" for number in range(0, 100, 3)))
    back = write_lines(
        tmp_path / "back.jsonl", [{"paper_id": "p3", "title": "back"}, {"paper_id": "new", "title": "n"}]
    )
    return [*made[:-1], Shard(removed, REMOVED), Shard(back, "jsonl")]


def read(store: PaperStore, shards: list[Shard]) -> None:
    ingest(shards, store, first=1, max_bad=0.05, workers=1, on_progress=lambda *_: None)


def facts(store: PaperStore) -> tuple[Any, ...]:
    return store.fingerprint(), store.counts(), store.shards(), list(store.quarantine())


@pytest.fixture
def expected(shards: list[Shard], tmp_path: Path) -> tuple[Any, ...]:
    store = SqliteStore(tmp_path / "alone.sqlite")
    read(store, shards)
    found = facts(store)
    store.close()
    return found


def writer(mongodb: str, shards: list[Shard], tmp_path: Path, pause: float) -> "subprocess.Popen[str]":
    listed = tmp_path / "shards.json"
    listed.write_text(json.dumps([[str(shard.path), shard.format] for shard in shards]))
    command = [sys.executable, "-m", "tests.mongo.writer", mongodb, str(listed), "1.5", str(pause)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)


def test_killed_writers_lose_nothing(
    mongodb: str, shards: list[Shard], expected: tuple[Any, ...], tmp_path: Path
) -> None:
    for stop in range(1, 5):
        with writer(mongodb, shards, tmp_path, 0.02) as process:
            assert process.stdout
            for _, _ in zip(range(2 * stop), process.stdout, strict=False):
                pass
            process.send_signal(signal.SIGKILL)
    process = writer(mongodb, shards, tmp_path, 0)
    process.communicate(timeout=60)
    assert process.returncode == 0
    store = open_store(mongodb)
    assert facts(store) == expected
    store.close()


def test_a_writer_that_stays_is_named(mongodb: str, monkeypatch: pytest.MonkeyPatch, shards: list[Shard]) -> None:
    monkeypatch.setattr(mongo_store, "LOCK_SECONDS", 0.4)
    first, second = open_store(mongodb), open_store(mongodb)
    ended = threading.Event()

    def keep_writing() -> None:
        while not ended.wait(0.1):
            first.write(changes_of([Paper("p")]))

    with first.writing(), ThreadPoolExecutor(1) as pool:
        pool.submit(keep_writing)
        with pytest.raises(StoreError, match="another process is writing to"):
            read(second, shards)
        ended.set()
    with second.writing():  # the lock was given back
        second.write(changes_of([Paper("p")]))
    first.close()
    second.close()


def test_a_database_of_other_shards_is_refused(new_store: NewStore, shards: list[Shard]) -> None:
    store = new_store()
    read(store, shards[:2])
    with pytest.raises(InputError, match="holds papers of other shards"):
        read(store, shards[2:4])
    with pytest.raises(InputError, match="holds papers of other shards"):
        read(store, shards[:1])
