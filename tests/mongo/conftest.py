"""The stores that one contract holds for: SQLite, MongoDB's protocol (nx-27017), a real MongoDB where there is one."""

import contextlib
import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from citerec.corpus.base import Shard, find_shards
from citerec.corpus.ingest import ingest
from citerec.corpus.store import PaperStore, open_store
from tests.conftest import s2ag_paper, write_lines

REAL = "CITEREC_TEST_MONGODB_URI"

NewStore = Callable[[], PaperStore]


@contextlib.contextmanager
def new_database(server: str) -> Iterator[str]:
    """The address of a database of its own on a server; users are still looked for where they were."""
    parts = re.fullmatch(r"(mongodb[^/]*//[^/?]+)/?([^?]*)(?:\?(.*))?", server)
    assert parts
    before, database, options = parts.groups()
    if "@" in before and "authsource" not in (options or "").lower():
        options = "&".join(filter(None, [options, f"authSource={database or 'admin'}"]))
    uri = f"{before}/citerec_test_{uuid.uuid4().hex[:12]}" + (f"?{options}" if options else "")
    yield uri
    with MongoClient(uri) as client:
        client.drop_database(client.get_default_database().name)


@pytest.fixture
def mongodb(nx_server: str) -> Iterator[str]:
    """The address of a database of its own on the nx-27017 server."""
    with new_database(nx_server) as address:
        yield address


@pytest.fixture(params=["sqlite", "nx-27017", "mongodb"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str | Path]]:
    """Addresses of new stores, all of one kind."""
    if request.param == "sqlite":
        yield lambda: tmp_path / f"{uuid.uuid4().hex}.sqlite"
        return
    if request.param == "mongodb" and REAL not in os.environ:
        pytest.skip(f"needs a real MongoDB server in {REAL}")
    server = os.environ[REAL] if request.param == "mongodb" else request.getfixturevalue("nx_server")
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(new_database(server))


@pytest.fixture
def new_store(where: Callable[[], str | Path]) -> Iterator[NewStore]:
    """Makes stores of one kind, and closes them."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(contextlib.closing(open_store(where())))


@pytest.fixture
def store(new_store: NewStore) -> PaperStore:
    return new_store()


@pytest.fixture
def release(tmp_path: Path) -> list[Shard]:
    """Shards that are large enough for several processes, with one bad record."""
    folder = tmp_path / "release"
    papers = [s2ag_paper(number, f"title {number}", year=2000 + number % 9) for number in range(700)]
    papers[0]["url"] = "x" * 8_000_000
    write_lines(folder / "papers" / "0.jsonl", papers[:400])
    write_lines(folder / "papers" / "1.gz", [*papers[300:], s2ag_paper(5, "later")], compress=True)
    abstracts = [{"corpusid": number, "abstract": f"abstract {number}"} for number in range(0, 700, 2)]
    write_lines(folder / "abstracts" / "0.jsonl", [*abstracts, {"corpusid": None}])
    cited = [
        {"citationid": n, "citingcorpusid": n, "citedcorpusid": n % 50, "contexts": [f"s {n}"]} for n in range(600)
    ]
    write_lines(folder / "citations" / "0.jsonl", cited)
    return find_shards([folder])


def ingested(store: PaperStore, shards: Sequence[Shard], **options: Any) -> PaperStore:
    defaults = {"first": 1, "max_bad": 0.05, "workers": 1, "on_progress": lambda *_: None}
    ingest(shards, store, **{**defaults, **options})
    return store


def facts_of(store: PaperStore) -> tuple[Any, ...]:
    """What two stores of the same shards have in common."""
    return store.fingerprint(), store.counts(), store.shards(), list(store.quarantine())
