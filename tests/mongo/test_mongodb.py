"""What only MongoDB has: addresses, users, passwords, servers that do not answer, documents that are too large."""

import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from pymongo import ReadPreference, monitoring
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ConfigurationError,
    InvalidURI,
    OperationFailure,
    ServerSelectionTimeoutError,
)

from citerec.corpus import mongo_store
from citerec.corpus.matching import name_digest
from citerec.corpus.store import StoreError, changes_of
from citerec.corpus.stores import PASSWORD, USERNAME, address_of, is_mongodb, name_of, open_store
from citerec.diagnostics.bounds import census_of
from citerec.errors import CiterecError, InputError
from citerec.records import Abstract, Citation, Deletion, Paper
from tests.conftest import write_lines

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mongo_store, "_PATIENCE_SECONDS", 0.5)
    monkeypatch.delenv(USERNAME, raising=False)
    monkeypatch.delenv(PASSWORD, raising=False)


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("mongodb://h/db", "mongodb://h/db"),
        (f"mongodb://u:{SECRET}@h:1,i:2/db?authSource=admin", "mongodb://h:1,i:2/db"),
        (f"mongodb+srv://u:{SECRET}@cluster.example.net/db", "mongodb+srv://cluster.example.net/db"),
        (f"mongodb://u:{SECRET}@[::1]:27017/db", "mongodb://[::1]:27017/db"),
        ("mongodb://u:p%40%2F@h/db", "mongodb://h/db"),
        (f"mongodb://u@h/?tlsCertificateKeyFilePassword={SECRET}", "mongodb://h/"),
        (f"mongodb://u:{SECRET}/x@h/db", "mongodb://…"),
        (f"mongodb://u:x/{SECRET}@h/db", "mongodb://…"),
        (f"mongodb://u:x@{SECRET}@h/db", "mongodb://…"),
        (f"mongodb://u:x@{SECRET}/y?z@h/db", "mongodb://…"),
        (f"mongodb://u:x?{SECRET}@h/db", "mongodb://…"),
        (f"mongodb://u:x#{SECRET}@h/db", "mongodb://…"),
        (f"mongodb://u:{SECRET}", "mongodb://…"),
        (f"mongodb:/u:{SECRET}@h/db", "mongodb://…"),
        (f"MongoDB://u:{SECRET}@h/db", "mongodb://…"),
        ("papers.sqlite", "papers.sqlite"),
        (Path("a") / "mongodb.sqlite", "a/mongodb.sqlite"),
    ],
)
def test_names_hold_no_secret(where: str | Path, name: str) -> None:
    assert name_of(where) == name
    assert is_mongodb(where) == name.startswith("mongodb")


@pytest.mark.parametrize(
    ("uri", "kept"),
    [
        ("mongodb://h/db", "mongodb://h/db"),
        (f"mongodb://u:{SECRET}@h,i:2/db", "mongodb://h,i:2/db"),
        (
            f"mongodb://u:{SECRET}@h/db?tls=true&tlsCertificateKeyFilePassword={SECRET}&readpreference=nearest&replicaSet=r",
            "mongodb://h/db?tls=true&readpreference=nearest&replicaSet=r",
        ),
        (f"mongodb://h/db?authMechanismProperties=AWS_SESSION_TOKEN:{SECRET}", "mongodb://h/db"),
    ],
)
def test_an_index_keeps_no_secret_of_an_address(uri: str, kept: str) -> None:
    assert address_of(uri) == kept


def test_who_writes_reads_from_the_primary(mongodb: str) -> None:
    """A secondary may not have yet what the ledger says."""
    uri = f"{mongodb}?readPreference=secondaryPreferred"
    for read_only, preference in ((False, ReadPreference.PRIMARY), (True, ReadPreference.SECONDARY_PREFERRED)):
        store = open_store(uri, read_only=read_only)
        assert store._database.read_preference == preference
        store.close()


@pytest.mark.parametrize(("options", "concern"), [("", {"w": "majority"}), ("?w=1&journal=true", {"w": 1, "j": True})])
def test_writes_wait_for_the_majority_unless_the_address_says_else(
    mongodb: str, options: str, concern: dict[str, object]
) -> None:
    sent = []

    class Listener(monitoring.CommandListener):
        def started(self, event: monitoring.CommandStartedEvent) -> None:
            if event.command_name in ("insert", "update", "delete", "findAndModify"):
                sent.append((event.command_name, event.command.get("writeConcern")))

        def succeeded(self, event: object) -> None:
            pass

        failed = succeeded

    listeners = monitoring._LISTENERS
    monitoring.register(Listener())
    try:
        store = open_store(mongodb + options)
    finally:
        listeners.command_listeners.pop()
    with store.writing():
        store.write(changes_of([Paper("1", title="t"), Deletion("papers", "1")]))
    store.close()
    assert {name for name, _ in sent} == {"update", "delete"}
    assert [written for _, written in sent] == [concern] * len(sent)


BAD = [
    f"mongodb://u:{SECRET}/x@h/db",
    f"mongodb://u:x@{SECRET}@h/db",
    f"mongodb://u:{SECRET}%zz@h/db",
    f"mongodb://u:{SECRET}:x@h/db",
    f"mongodb://u:{SECRET}",
    f"mongodb://u:{SECRET}@h",
    f"mongodb://u:{SECRET}@h/",
    f"mongodb://u:{SECRET}@h:99999/db",
    f"mongodb://u:{SECRET}@h/db?nonsense={SECRET}",
    f"mongodb://u:{SECRET}@h/db?maxPoolSize={SECRET}",
    f"mongodb://u:{SECRET}@h/db?authMechanism={SECRET}",
    f"mongodb://u:{SECRET}@h/db?tlsCAFile=/nowhere/{SECRET}",
    f"mongodb://u:{SECRET}@127.0.0.1:1/db",
    f"mongodb+srv://u:{SECRET}@localhost/db",
    f"mongodb+srv://u:{SECRET}@a.example.invalid:27017/db",
]


def told(call: Callable[[], object], kind: type[CiterecError] = InputError) -> CiterecError:
    """The error of a call: one line and a remedy, and the secret nowhere in what Python prints of it."""
    try:
        call()
    except CiterecError as error:
        text = traceback.format_exc()
        # Lines of source are not what was said.
        said = [line for line in text.splitlines() if not line.startswith("    ")]
        assert SECRET not in "\n".join(said)
        assert SECRET not in repr(error) + repr(error.__cause__)
        assert "\n" not in str(error)
        assert error.remedy
        assert isinstance(error, kind)
        return error
    raise AssertionError("no error")


@pytest.mark.parametrize("uri", BAD)
def test_no_error_tells_the_password(uri: str) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        told(lambda: open_store(uri))
    assert not any(SECRET in str(warning.message) for warning in warned)


def test_the_process_prints_no_password() -> None:
    """As a user sees it, with Python's own printing of the whole chain."""
    script = "import sys; from citerec.corpus.stores import open_store; open_store(sys.argv[1])"
    for uri in BAD[:5]:
        result = subprocess.run([sys.executable, "-c", script, uri], capture_output=True, text=True, check=False)
        assert "InputError" in result.stderr
        assert SECRET not in result.stderr + result.stdout


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("mongodb://h", "mongodb://h/ names no database. Add one: mongodb://h/citerec"),
        ("mongodb://h/?x=1", "names no database"),
        ("mongodb://h/a.b", "is not valid"),
        (f"mongodb://u:a@b:{SECRET}@h/db", "%40 %3A %2F"),
        ("mongodb://h/db?nonsense=1", "the spelling of the options"),
        ("mongodb://127.0.0.1:{port}/db", "no MongoDB server answers at mongodb://127.0.0.1:{port}/db within"),
    ],
)
def test_errors_say_what_would_be_right(uri: str, message: str, silent_port: int) -> None:
    port = str(silent_port)
    assert message.replace("{port}", port) in str(told(lambda: open_store(uri.replace("{port}", port))))


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "papers.jsonl", [{"paper_id": "1" * 200}] * 20)
    with pytest.raises(InputError, match="cannot be opened as a SQLite store"):
        open_store(path)
    with pytest.raises(InputError, match="cannot be opened as a SQLite store"):
        open_store(tmp_path / "no" / "folder.sqlite")


class Called(Exception):  # noqa: N818
    pass


def credentials_of(uri: str, monkeypatch: pytest.MonkeyPatch) -> object:
    def client(uri: str, **credentials: str) -> None:
        raise Called(uri, credentials)

    monkeypatch.setattr(mongo_store, "MongoClient", client)
    with pytest.raises(Called) as called:
        open_store(uri)
    return called.value.args[1]


@pytest.mark.parametrize(
    ("uri", "environment", "passed"),
    [
        ("mongodb://h/db", {}, {}),
        ("mongodb://h/db", {USERNAME: "u", PASSWORD: "p@/"}, {"username": "u", "password": "p@/"}),
        ("mongodb://v:q@h/db", {USERNAME: "u", PASSWORD: "p"}, {}),
        ("mongodb://v@h/db", {USERNAME: "u", PASSWORD: "p"}, {"password": "p"}),
        ("mongodb://v@h/db", {}, {}),
    ],
)
def test_credentials_come_from_the_address_or_the_environment(
    uri: str, environment: dict[str, str], passed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert credentials_of(uri, monkeypatch) == passed


def test_half_of_the_credentials_is_an_error(monkeypatch: pytest.MonkeyPatch, silent_port: int) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)
    assert f"{PASSWORD} is set and {USERNAME} is not" in str(told(lambda: open_store("mongodb://h/db")))
    monkeypatch.setenv(USERNAME, "u")
    told(lambda: open_store(f"mongodb://127.0.0.1:{silent_port}/db"))


FAILURES = [
    (OperationFailure(f"Authentication failed for {SECRET}.", 18), InputError, "refuses this user name or password"),
    (OperationFailure("not authorized on db", 13), InputError, "does not allow this user"),
    (AutoReconnect("gone"), StoreError, "no longer answers"),
    (ServerSelectionTimeoutError("none"), StoreError, "no longer answers"),
    (OperationFailure("x", 9, {"errmsg": "Out of\n disk"}), StoreError, "failed: Out of disk. See the server's log"),
    (
        BulkWriteError({"writeErrors": [{"code": 52, "errmsg": "bad field"}], "writeConcernErrors": []}),
        StoreError,
        "failed: bad field",
    ),
    (InvalidURI("x"), StoreError, "failed"),
    (ConfigurationError("x"), StoreError, "failed"),
]


@pytest.mark.parametrize(("failure", "kind", "message"), FAILURES, ids=lambda value: getattr(value, "__name__", None))
def test_failures_at_work_have_a_remedy(
    mongodb: str, monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: type[CiterecError], message: str
) -> None:
    from pymongo.synchronous.collection import Collection

    def fail(*_: object, **__: object) -> None:
        raise failure

    store = open_store(mongodb)
    for method in ("find", "bulk_write", "aggregate", "count_documents"):
        monkeypatch.setattr(Collection, method, fail)
    calls: list[Callable[[], object]] = [
        lambda: store.papers(["1"]),
        lambda: census_of(store),
        lambda: list(store.all_papers()),
        store.counts,
        store.fingerprint,
        lambda: store.write(changes_of([Paper("1", title="t")])),
    ]
    for call in calls:
        assert message in str(told(call, kind))
    store.close()


def test_a_write_that_failed_among_duplicates_is_told(mongodb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pymongo.synchronous.collection import Collection

    errors = [{"code": 11000, "errmsg": "duplicate"}, {"code": 10334, "errmsg": "too large"}]

    def fail(*_: object, **__: object) -> None:
        raise BulkWriteError({"writeErrors": errors, "writeConcernErrors": []})

    store = open_store(mongodb)
    monkeypatch.setattr(Collection, "bulk_write", fail)
    with pytest.raises(StoreError, match="failed"):
        store.write(changes_of([Paper("1", title="t")]))
    store.close()


def test_documents_over_the_limit(mongodb: str) -> None:
    store = open_store(mongodb)
    long = "x" * (16 * 1024 * 1024)
    message = str(told(lambda: store.write(changes_of([Abstract("long", long)]))))
    assert "the record 'long' takes 16,777," in message and "up to 16,777,216" in message
    store.write(changes_of([Abstract("fits", long[:-100])]))
    store.close()


def test_a_record_over_the_limit_stops_an_ingest_with_its_reason(
    mongodb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from citerec.corpus.ingest import ingest
    from citerec.corpus.shards import Shard

    monkeypatch.setenv("CITEREC_MAX_RECORD_BYTES", "30000000")  # more than MongoDB takes
    path = write_lines(tmp_path / "p.jsonl", [{"paper_id": "p", "title": "t", "abstract": "word " * 4_000_000}])
    store = open_store(mongodb)
    with pytest.raises(InputError, match="the record 'p' takes"):
        ingest([Shard(path, "jsonl")], store, first=1, max_bad=0.1, workers=1, on_progress=lambda *_: None)
    store.close()


def test_what_lies_in_the_database_is_what_the_docs_say(mongodb: str) -> None:
    from pymongo import MongoClient

    store = open_store(mongodb)
    paper = Paper("p", title="t", authors=("A",), fields_of_study=("Art",), external_ids={"DOI": "10.1/x"})
    gone = [Deletion("papers", "q"), Deletion("citations", "7")]
    store.write(changes_of([paper, Paper("q"), Citation("p", "q", ("a",), citation_id="7"), *gone]))
    store.close()
    with MongoClient(mongodb) as client:
        database = client.get_default_database()
        assert not database["citations"].find_one()
        assert database["papers"].find_one() == {
            "_id": "p",
            "paper_id": "p",
            "names": sorted(map(name_digest, ("doi:10.1/x", "title:t"))),
            "title": "t",
            "year": None,
            "venue": None,
            "authors": ["A"],
            "fields_of_study": ["Art"],
            "citation_count": None,
            "external_ids": [{"scheme": "DOI", "id": "10.1/x"}],
            "bibtex": None,
            "origins": [],
        }


def test_sqlite_needs_no_driver() -> None:
    script = "import sys, citerec, citerec.corpus.stores, citerec.corpus.ingest; assert 'pymongo' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ})
