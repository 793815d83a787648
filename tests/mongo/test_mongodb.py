"""What only MongoDB has: addresses, users, passwords, servers that do not answer, documents that are too large."""

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ConfigurationError,
    InvalidURI,
    OperationFailure,
    ServerSelectionTimeoutError,
)

from citerec.corpus import mongo_store
from citerec.corpus.store import StoreError, changes_of
from citerec.corpus.stores import PASSWORD, USERNAME, address_of, is_mongodb, name_of, open_store
from citerec.diagnostics.families import census_of
from citerec.errors import CiterecError, InputError
from citerec.records import Paper, PaperText
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
    with pytest.raises(InputError, match="is no SQLite store"):
        open_store(path)
    with pytest.raises(InputError, match="is no SQLite store"):
        open_store(tmp_path / "no" / "folder.sqlite")


def test_half_of_the_credentials_is_an_error(monkeypatch: pytest.MonkeyPatch, silent_port: int) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)
    assert "only one of" in str(told(lambda: open_store("mongodb://h/db")))
    monkeypatch.setenv(USERNAME, "u")
    told(lambda: open_store(f"mongodb://127.0.0.1:{silent_port}/db"))


FAILURES = [
    (OperationFailure(f"Authentication failed for {SECRET}.", 18), InputError, "refuses this user"),
    (OperationFailure("not authorized on db", 13), InputError, "refuses this user"),
    (AutoReconnect("gone"), StoreError, "failed: "),
    (ServerSelectionTimeoutError("none"), StoreError, "failed: "),
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


def test_documents_over_the_limit(mongodb: str) -> None:
    store = open_store(mongodb)
    long = "x" * (16 * 1024 * 1024)
    message = str(told(lambda: store.write(changes_of([PaperText("abstracts", "long", long)]))))
    assert "the record 'long' takes 16,777," in message and "up to 16,777,216" in message
    store.write(changes_of([PaperText("abstracts", "fits", long[:-100])]))
    store.close()
