"""Files at addresses, such as s3://bucket/papers: used like paths, through fsspec.

`UPath` of universal-pathlib has the methods of `Path`, so what reads and writes files by these methods needs no second
form. Credentials come from the environment, as fsspec's packages look for them.
"""

import contextlib
import os
import re
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from citerec.errors import InputError, ServiceError, SourceError

_CLIENTS = ("botocore", "aiobotocore", "aiohttp", "google", "gcsfs", "azure", "requests")
"""Packages whose errors are not OSErrors."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/@\s]*:[^/@\s]*@")
# What other machines write must be seen at once: no lists of folders are kept. Dozens of results are read at once.
_OPTIONS: dict[str, Any] = {"use_listings_cache": False, "default_block_size": 8 << 20}


def path_of(path: str | os.PathLike[str]) -> Path:
    """A path on this machine, or a file or folder at an address, which is used like a path. `file://` is a path.

    Raises:
        InputError: The package for such addresses is not installed, or nobody knows them.
    """
    if not isinstance(path, str) or not _ADDRESS.match(path):
        return cast("Path", path) if is_address(path) else Path(path)
    scheme, _, rest = path.partition("://")
    if _PASSWORD.match(path, len(scheme)):
        remedy = "Give it in the environment instead: addresses are printed."
        raise InputError(f"an address {scheme}:// holds a password", remedy)
    if scheme == "file":
        return Path(urllib.parse.unquote(rest.removeprefix("localhost")))
    if scheme in ("http", "https"):
        raise InputError(f"{path}: files of the web are not read", "Download it, and give the path.")
    if not rest.strip("/"):
        raise InputError(f"{path} names no folder", f"Write {scheme}://BUCKET/FOLDER.")
    try:
        from upath import UPath

        address = UPath(path, **_OPTIONS)
        address.fs  # noqa: B018 - this imports the package for it
    except ImportError as error:
        ours = error.name == "upath" or scheme == "s3"
        needed = "pip install 'citerec[scale]'" if ours else f"{error}."
        raise InputError(f"{path}: the package for {scheme}:// is not installed", needed) from error
    except ValueError as error:
        raise InputError(f"{path}: there are no addresses {scheme}://", "Try s3://, gs:// or a path.") from error
    return cast("Path", address)


def is_address(path: object) -> bool:
    """Whether this is a file or a folder at an address, and not on a disk of this machine."""
    return not isinstance(path, str | Path) and hasattr(path, "storage_options")


def expanded(paths: Sequence[Path]) -> list[Path]:
    """The paths, with the files in place of an address with `*`; a shell does so for paths of the machine.

    Raises:
        SourceError: No file has such an address.
        ServiceError: The service cannot be reached, or refuses.
    """
    return [file for path in paths for file in (_files_like(path) if is_address(path) else [path])]


def _files_like(address: Path) -> list[Path]:
    system: Any = address
    try:
        with client_failures():
            if "*" not in str(address):
                address.exists()
                return [address]
            matches = sorted(map(system.fs.unstrip_protocol, system.fs.glob(system.path)))
    except OSError as error:
        remedy = "Are the credentials in the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …)?"
        raise ServiceError(f"cannot reach {address}: {error.strerror or error}", remedy) from error
    if not matches:
        raise SourceError(f"there is nothing at {address}", "Check the address: * stands for a part of a name.")
    return list(map(path_of, matches))


@contextlib.contextmanager
def client_failures() -> Iterator[None]:
    """Turns the errors of clients of storage services into OSErrors, which readers and writers expect."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] not in _CLIENTS:
            raise
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise OSError(_PASSWORD.sub("://…@", line)) from error
