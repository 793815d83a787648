"""What only MongoDB has: addresses, users, passwords, servers that do not answer, documents that are too large."""

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from citerec.corpus import mongo_store
from citerec.corpus.store import PASSWORD, USERNAME, address_of, changes_of, is_mongodb, name_of, open_store
from citerec.errors import InputError
from citerec.records import PaperText
from tests.conftest import write_lines

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mongo_store, "_PATIENCE_SECONDS", 0.5)
    monkeypatch.delenv(USERNAME, raising=False)
    monkeypatch.delenv(PASSWORD, raising=False)


@pytest.mark.parametrize(
    ("where", "name", "options"),
    [
        ("mongodb://h/db", "mongodb://h/db", ""),
        (f"mongodb://u:{SECRET}@h:1,i:2/db?authSource=admin", "mongodb://h:1,i:2/db", "?authSource=admin"),
        (f"mongodb+srv://u:{SECRET}@cluster.example.net/db", "mongodb+srv://cluster.example.net/db", ""),
        (
            f"mongodb://u@h/db?tls=true&tlsCertificateKeyFilePassword={SECRET}&readpreference=nearest&replicaSet=r",
            "mongodb://h/db",
            "?tls=true&readpreference=nearest&replicaSet=r",
        ),
        (f"mongodb://h/db?authMechanismProperties=AWS_SESSION_TOKEN:{SECRET}", "mongodb://h/db", ""),
        (f"mongodb://u:{SECRET}/x@h/db", "mongodb://…", ""),
        (f"mongodb://u:x@{SECRET}/y?z@h/db", "mongodb://…", ""),
        (f"MongoDB://u:{SECRET}@h/db", "mongodb://…", ""),
        ("papers.sqlite", "papers.sqlite", ""),
    ],
)
def test_names_and_what_an_index_keeps_hold_no_secret(where: str | Path, name: str, options: str) -> None:
    assert name_of(where) == name
    assert is_mongodb(where) == name.startswith("mongodb")
    assert address_of(str(where)) == name + options


def told(call: Callable[[], object]) -> str:
    """The error of a call: one line and a remedy, and the secret nowhere in what Python prints of it."""
    with warnings.catch_warnings(record=True) as warned, pytest.raises(InputError) as raised:
        warnings.simplefilter("always")
        call()
    printed = "".join(traceback.format_exception(raised.value))
    said = [line for line in printed.splitlines() if not line.startswith("    ")]  # others are lines of source
    said += [repr(raised.value), repr(raised.value.__cause__), *(str(warning.message) for warning in warned)]
    assert SECRET not in "\n".join(said)
    assert "\n" not in str(raised.value)
    assert raised.value.remedy
    return str(raised.value)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("mongodb://h", "mongodb://h/ names no database. Add one: mongodb://h/citerec"),
        (f"mongodb://u:{SECRET}@h", "names no database"),
        ("mongodb://h/a.b", "is not valid"),
        (f"mongodb://u:{SECRET}/x@h/db", "%40 %3A %2F"),
        (f"mongodb://u:x@{SECRET}@h/db", "%40 %3A %2F"),
        (f"mongodb://u:{SECRET}@h:99999/db", "the spelling of the options"),
        (f"mongodb://u:{SECRET}@h/db?nonsense={SECRET}", "the spelling of the options"),
        (f"mongodb://u:{SECRET}@h/db?tlsCAFile=/nowhere/{SECRET}", "the spelling of the options"),
        (f"mongodb+srv://u:{SECRET}@localhost/db", "the spelling of the options"),
        (f"mongodb://u:{SECRET}@127.0.0.1:PORT/db", "no MongoDB server answers at mongodb://127.0.0.1:PORT/db within"),
    ],
)
def test_errors_say_what_would_be_right_and_never_the_password(uri: str, message: str, silent_port: int) -> None:
    uri, message = (text.replace("PORT", str(silent_port)) for text in (uri, message))
    assert message in told(lambda: open_store(uri))


def test_half_of_the_credentials_is_an_error(monkeypatch: pytest.MonkeyPatch, silent_port: int) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)
    assert "only one of" in told(lambda: open_store("mongodb://h/db"))
    monkeypatch.setenv(USERNAME, "u")
    told(lambda: open_store(f"mongodb://127.0.0.1:{silent_port}/db"))


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "papers.jsonl", [{"paper_id": "1" * 200}] * 20)
    for wrong in (path, tmp_path / "no" / "folder.sqlite"):
        assert "is no SQLite store" in told(lambda wrong=wrong: open_store(wrong))


def test_documents_over_the_limit(mongodb: str) -> None:
    store = open_store(mongodb)
    long = "x" * (16 * 1024 * 1024)
    message = told(lambda: store.write(changes_of([PaperText("abstracts", "long", long)])))
    assert "the record 'long' takes 16,777," in message and "up to 16,777,216" in message
    store.write(changes_of([PaperText("abstracts", "fits", long[:-100])]))
    store.close()
