"""The stores that one contract holds for: SQLite, MongoDB's protocol (nx-27017), a real MongoDB where there is one."""

import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citerec.corpus.store import PaperStore
from citerec.corpus.stores import open_store

REAL = "CITEREC_TEST_MONGODB_URI"
KINDS = ("sqlite", "nx-27017", "mongodb")

NewStore = Callable[[], PaperStore]


@pytest.fixture
def mongodb(nx_server: str) -> Iterator[str]:
    """The address of a database of its own on the nx-27017 server."""
    yield from _database(f"{nx_server}/{_name()}")


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest) -> Iterator[Callable[[], str | Path]]:
    """Addresses of new stores, all of one kind."""
    kind, made = request.param, []
    if kind == "mongodb" and not os.environ.get(REAL):
        pytest.skip(f"needs a real MongoDB server in {REAL}")

    def address() -> str | Path:
        if kind == "sqlite":
            return request.getfixturevalue("tmp_path") / f"{_name()}.sqlite"
        if kind == "nx-27017":
            uri = f"{request.getfixturevalue('nx_server')}/{_name()}"
        else:
            uri = _with_database(os.environ[REAL], _name())
        made.append(_database(uri))
        return next(made[-1])

    yield address
    for database in made:
        next(database, None)


@pytest.fixture
def new_store(where: Callable[[], str | Path]) -> Iterator[NewStore]:
    """Makes stores of one kind, and closes them."""
    stores: list[PaperStore] = []

    def new() -> PaperStore:
        stores.append(open_store(where()))
        return stores[-1]

    yield new
    for store in stores:
        store.close()


@pytest.fixture
def store(new_store: NewStore) -> PaperStore:
    return new_store()


def _name() -> str:
    return f"citerec_test_{uuid.uuid4().hex[:12]}"


def _with_database(uri: str, name: str) -> str:
    """The address with another database; users are still looked for where they were."""
    before, database, options = re.fullmatch(r"(mongodb[^/]*//[^/?]+)/?([^?]*)(?:\?(.*))?", uri).groups()  # type: ignore[union-attr]
    if "@" in before and "authsource" not in (options or "").lower():
        options = "&".join(filter(None, [options, f"authSource={database or 'admin'}"]))
    return f"{before}/{name}" + (f"?{options}" if options else "")


def _database(uri: str) -> Iterator[str]:
    from pymongo import MongoClient

    yield uri
    with MongoClient(uri) as client:
        client.drop_database(client.get_default_database().name)
