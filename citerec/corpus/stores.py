"""Which store an address means: an SQLite file, or a MongoDB database."""

import os
import re
import sqlite3
from pathlib import Path

from citerec.corpus.store import PaperStore, SqliteStore
from citerec.errors import InputError

USERNAME = "CITEREC_MONGODB_USERNAME"
PASSWORD = "CITEREC_MONGODB_PASSWORD"
"""Names of the environment variables that hold what the address leaves out."""

_HOST = r"(?:[\w.%-]+|\[[\w.:%]+\])(?::\d{1,5})?"
# Stricter than the driver, so that no part of a password without percent-encoding is taken for a host.
_ADDRESS = re.compile(
    r"(?P<scheme>mongodb(?:\+srv)?://)"
    r"(?:(?P<user>[^@/?#:]*)(?::(?P<password>[^@/?#:]*))?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)"
    r"(?:/(?P<database>[^@/?#. \"$\\]*))?"
    r"(?:\?[^@#]*)?"
)
# Options that hold no secret: with them an index finds its store again.
_KEPT_OPTIONS = re.compile(
    "authMechanism|authSource|directConnection|loadBalanced|maxStalenessSeconds|readPreference|readPreferenceTags|"
    "replicaSet|tls|tlsCAFile|tlsCertificateKeyFile",
    re.IGNORECASE,
)


def is_mongodb(where: str | Path) -> bool:
    """Whether an address means a MongoDB database."""
    return str(where).casefold().startswith(("mongodb:", "mongodb+srv:"))


def name_of(where: str | Path) -> str:
    """The name of a store in messages and manifests: its address without user, password and options."""
    if not is_mongodb(where):
        return str(where)
    address = _ADDRESS.fullmatch(str(where))
    return f"{address['scheme']}{address['hosts']}/{address['database'] or ''}" if address else "mongodb://…"


def address_of(uri: str) -> str:
    """The address of a MongoDB database as an index keeps it: no user, no password, no option that may be secret."""
    options = uri.partition("?")[2].split("&")
    kept = "&".join(option for option in options if _KEPT_OPTIONS.fullmatch(option.partition("=")[0]))
    return name_of(uri) + (f"?{kept}" if kept else "")


def open_store(where: str | Path, *, read_only: bool = False) -> PaperStore:
    """The store at an address: `mongodb://HOST/DATABASE`, `mongodb+srv://…`, or else the path of a SQLite file.

    A store that does not exist yet is created. User and password of MongoDB come from the address or the environment.
    With `read_only`, a MongoDB database is read where the read preference of the address says, else from the primary.

    Raises:
        InputError: The address is not valid, no server answers there, it refuses the user, or the file is not a store.
    """
    if is_mongodb(where):
        return _mongodb(str(where), read_only=read_only)
    if "://" in str(where) or "@" in str(where):
        # It may be an address with a password, so it is not shown.
        raise InputError("the store is not an address that citerec knows", "Write mongodb://HOST/DATABASE, or a path.")
    try:
        return SqliteStore(Path(where))
    except sqlite3.Error as error:
        raise InputError(f"{where} is no SQLite store ({error})", "Give a file of citerec, or a new one.") from error


def _mongodb(uri: str, *, read_only: bool) -> PaperStore:
    address = _ADDRESS.fullmatch(uri)
    if not address:
        remedy = "Write mongodb://HOST:PORT/DATABASE; in user and password @ : / ? # % are %40 %3A %2F %3F %23 %25."
        raise InputError("the address of the MongoDB server is not valid", remedy)
    name = name_of(uri)
    if not address["database"]:
        raise InputError(f"{name} names no database", f"Add one: {name.rstrip('/')}/citerec")
    from citerec.corpus.mongo_store import MongoStore  # the driver takes a moment to load

    return MongoStore(uri, name=name, credentials=_credentials(address), read_only=read_only)


def _credentials(address: re.Match[str]) -> dict[str, str]:
    """User name and password from the environment, if the address lacks them."""
    username, password = map(os.environ.get, (USERNAME, PASSWORD))
    if address["user"] is not None:
        return {"password": password} if password and address["password"] is None else {}
    if bool(username) != bool(password):
        raise InputError(f"only one of {USERNAME} and {PASSWORD} is set", "Set both, or neither.")
    return {"username": username, "password": password} if username and password else {}
