"""Several processes that fill one MongoDB database at once."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pymongo.errors import BulkWriteError

from citerec.corpus import leases as leases_module
from citerec.corpus.ingest import ingest
from citerec.corpus.leases import leases_of
from citerec.corpus.ledger import ledger_of
from citerec.corpus.sources import REMOVED, Shard
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import NumberedRecord, PaperStore, StoreError
from citerec.corpus.stores import address_of, open_store
from citerec.errors import InputError
from citerec.records import Paper
from tests.conftest import ROOT, Citerec, write_lines
from tests.mongo.conftest import REAL, _database, _name, _with_database

pytestmark = pytest.mark.slow

SHARDS, RECORDS = 12, 60


@pytest.fixture(params=["nx-27017", "mongodb"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a new database."""
    if request.param == "nx-27017":
        yield from _database(f"{request.getfixturevalue('nx_server')}/{_name()}")
    elif not os.environ.get(REAL):
        pytest.skip(f"needs a real MongoDB server in {REAL}")
    else:
        yield from _database(_with_database(os.environ[REAL], _name()))


@pytest.fixture
def opened(database: str) -> Iterator[Callable[[], PaperStore]]:
    """Opens the store of a process of its own, and closes it."""
    stores: list[PaperStore] = []

    def new() -> PaperStore:
        stores.append(open_store(database))
        return stores[-1]

    yield new
    for store in stores:
        store.close()


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


def read_here(store: PaperStore, shards: list[Shard]) -> PaperStore:
    ingest(shards, store, first=1, max_bad=0.05, workers=1, on_progress=lambda *_: None)
    return store


def same(store: PaperStore, shards: list[Shard]) -> bool:
    """Whether a store holds what one process alone reads from the shards, in the store and in the ledger."""
    alone = read_here(SqliteStore(Path(":memory:")), shards)
    found, expected = ledger_of(store), ledger_of(alone)
    return (
        store.fingerprint() == alone.fingerprint()
        and store.counts() == alone.counts()
        and found.finished_shards() == expected.finished_shards()
        and list(found.quarantine()) == list(expected.quarantine())
    )


@pytest.fixture
def writer(database: str, shards: list[Shard], tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a process that reads the shards, slowly."""
    listed = tmp_path / "shards.json"
    listed.write_text(json.dumps([[str(shard.path), shard.format] for shard in shards]))
    started: list[subprocess.Popen[str]] = []

    def start(lease_seconds: float, pause: float) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.mongo.writer", database, str(listed), str(lease_seconds), str(pause)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def read_by(process: "subprocess.Popen[str]", seconds: float = 60) -> list[str]:
    """The shards that a process read, after its end."""
    read, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0
    return read.split()


def test_two_processes_share_the_shards(
    writer: Callable[..., Any], opened: Callable[[], PaperStore], shards: list[Shard]
) -> None:
    first, second = (read_by(process) for process in [writer(60, 0.05), writer(60, 0.05)])
    assert first
    assert second
    assert sorted([*first, *second]) == sorted(shard.path.name for shard in shards)  # each shard was read once
    assert same(opened(), shards)


def test_the_shards_of_a_killed_process_are_taken_over(
    writer: Callable[..., Any], opened: Callable[[], PaperStore], shards: list[Shard]
) -> None:
    killed = writer(3, 0.2)
    for _ in range(3):
        killed.stdout.readline()
    time.sleep(0.3)  # it is in the middle of the third
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    store = opened()
    done = ledger_of(store).finished_shards()
    assert 2 <= len(done) < len(shards)
    left = [shard.path.name for number, shard in enumerate(shards, 1) if number not in done]
    assert sorted(read_by(writer(60, 0))) == sorted(left)
    assert same(store, shards)


def test_a_process_that_was_stopped_for_too_long_writes_no_more(
    writer: Callable[..., Any], opened: Callable[[], PaperStore], shards: list[Shard]
) -> None:
    """Otherwise it could bring back what another has deleted meanwhile."""
    stopped = writer(3, 0.2)
    stopped.stdout.readline()
    stopped.send_signal(signal.SIGSTOP)
    read_by(writer(60, 0))
    stopped.send_signal(signal.SIGCONT)
    stopped.communicate(timeout=60)
    assert stopped.returncode == 1
    assert same(opened(), shards)


def test_a_lease_is_had_by_one_and_ends(opened: Callable[[], PaperStore], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases_module, "SECONDS", 2.0)
    with leases_of(opened()) as first, leases_of(opened()) as second:
        for leases in (first, second):
            leases.offer({"a": "1", "b": "2"})
        assert first.take("a")
        assert not second.take("a")
        assert not first.take("a")
        assert second.take("b")
        time.sleep(3)  # both are renewed meanwhile
        assert not first.take("b")
        assert not second.take("a")
        first.check()
        first.give_back("a")
        assert second.take("a")
        second.__exit__()
        assert first.take("a")
        assert first.take("b")


def test_a_lease_that_was_not_renewed_is_lost(
    opened: Callable[[], PaperStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, "SECONDS", 1.0)
    monkeypatch.setattr(leases_module, "_RENEWALS", 0.1)
    with leases_of(opened()) as first, leases_of(opened()) as second:
        first.offer({"a": "1"})
        assert first.take("a")
        first.check()
        time.sleep(1.2)
        assert second.take("a")
        with pytest.raises(StoreError, match="did not answer for 1 seconds"):
            first.check()
        second.check()
        first.give_back("a")
        assert not first.take("a")  # what another took over is not given back


def test_one_waits_for_the_other(opened: Callable[[], PaperStore], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases_module, "_PAUSE_SECONDS", 0.02)
    waited = threading.Event()
    order = []
    with leases_of(opened()) as first, leases_of(opened()) as second:
        with first.alone("deletions", waited.set):
            assert not waited.is_set()

            def wait() -> None:
                with second.alone("deletions", waited.set):
                    order.append("second")

            thread = threading.Thread(target=wait)
            thread.start()
            assert waited.wait(10)
            order.append("first")
        thread.join(10)
    assert order == ["first", "second"]


def test_other_shards_are_refused(opened: Callable[[], PaperStore], shards: list[Shard]) -> None:
    with leases_of(opened()) as leases:  # of a process that has not finished a shard
        leases.offer({"shard 1": "jsonl 00.jsonl 1"})
    store = opened()
    with pytest.raises(InputError, match=r"holds papers of other shards\. Give the address of an empty database"):
        read_here(store, shards)
    assert store.counts().papers == 0


def test_what_is_refused_changes_nothing(opened: Callable[[], PaperStore], shards: list[Shard]) -> None:
    store = read_here(opened(), shards[:-2])
    for others in (shards[1:], [*shards[1:-2], shards[0], shards[-1]], shards[:-3]):
        with pytest.raises(InputError, match="other shards"):
            read_here(store, others)
    assert same(read_here(store, shards[:-2]), shards[:-2])
    assert same(read_here(store, shards), shards)  # what comes after the shards that are read is added


def test_shards_of_an_earlier_version_are_known(opened: Callable[[], PaperStore], shards: list[Shard]) -> None:
    store = read_here(opened(), shards)
    store.database.clear("leases")  # it had none
    with pytest.raises(InputError, match="other shards"):
        read_here(store, shards[1:])
    store.database.clear("leases")
    assert same(read_here(store, shards), shards)


@pytest.mark.parametrize(("there", "wins"), [(1, "ours"), (9, "theirs")])
def test_a_record_that_another_process_wrote_a_moment_before(
    opened: Callable[[], PaperStore], monkeypatch: pytest.MonkeyPatch, there: int, wins: str
) -> None:
    """MongoDB looks for the id, finds none, and meets it when it inserts: of the two the later record stays."""
    from pymongo.synchronous.collection import Collection

    ours, theirs = opened(), opened()
    write, calls = Collection.bulk_write, []

    def raced(self: Any, operations: Any, **options: Any) -> Any:
        calls.append(operations)
        if len(calls) > 1:
            return write(self, operations, **options)
        theirs.write(theirs.encode([NumberedRecord(there, Paper("p", title="theirs"))]))
        errors = [{"index": 0, "code": 11000, "errmsg": "duplicate key"}]
        raise BulkWriteError({"writeErrors": errors, "writeConcernErrors": []})

    monkeypatch.setattr(Collection, "bulk_write", raced)
    ours.write(ours.encode([NumberedRecord(5, Paper("p", title="ours"))]))
    assert ours.papers(["p"])["p"].title == wins
    assert ours.counts().papers == 1


def test_two_builds_of_indexes_fill_one_database(
    database: str, shards: list[Shard], citerec: Citerec, tmp_path: Path
) -> None:
    build = ("index", "build", *(shard.path for shard in shards if shard.format == "jsonl"), "--max-bad", "0.05")
    with ThreadPoolExecutor(2) as pool:
        for made in pool.map(lambda out: citerec(*build, "--store", database, "--out", out), "ab"):
            assert made.returncode == 0, made.stderr
    assert citerec(*build, "--out", "plain").returncode == 0
    plain, *others = (json.loads((tmp_path / out / "manifest.json").read_text()) for out in ("plain", *"ab"))
    for made in others:
        assert made["store"] == address_of(database)
        assert {name: value for name, value in made.items() if name != "store"} == plain
