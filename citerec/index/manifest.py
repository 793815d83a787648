"""The manifest of an index directory, and its paper store."""

from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from citerec.corpus import stores
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import PaperStore, ShardCounts
from citerec.errors import IndexUnusableError, first_fault
from citerec.files.hashing import file_digest
from citerec.files.places import INDEXES
from citerec.files.resume import read_json
from citerec.index.generations import generation_of, opened

KIND = "citerec-index"
VERSION = 6
"""Increased when older indexes can no longer be read."""

FILE_NAME = "manifest.json"
STORE = "papers.sqlite"
DENSE = "dense"

_AGAIN = "Build it again from its sources: citerec index build … --out {}"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class IndexCounts(_Part):
    """How much is in the index; `duplicates` of papers were replaced or deleted by a later record."""

    papers: int
    with_abstract: int
    with_tldr: int
    with_year: int
    citances: int
    with_citances: int
    unmatched: int
    duplicates: int
    bad: int


class Manifest(_Part):
    """`manifest.json`. It is written last: a directory without it is not an index.

    Attributes:
        engine: What searches its words: one of `citerec.index.base.ENGINES`.
        abstract_field: Whether abstracts are a field of their own.
        url: Where a server keeps words and vectors; None if the index does.
        quantization: How the server keeps vectors in memory.
        remark: What users should know of how it was built; empty for nothing.
        store: The address of the MongoDB database that keeps the records, without user and password; None if they are
            in the index.
        fingerprint: Of the records.
        checksums: BLAKE2 digests of the files of columns and words, by their places in the generation.
    """

    kind: str = KIND
    version: int = VERSION
    citerec: str
    engine: str
    abstract_field: bool = False
    url: str | None = None
    quantization: str = "none"
    remark: str = ""
    store: str | None = None
    fingerprint: str
    counts: IndexCounts
    sources: list[ShardCounts]
    checksums: dict[str, str]

    @classmethod
    def read(cls, index: Path) -> Self:
        """The manifest of an index directory.

        Raises:
            IndexUnusableError: There is no index, or it is half built, broken, or of another version.
        """
        build = "Build it with: citerec index build SOURCE… --out " + str(index)
        if not index.exists():
            raise IndexUnusableError(f"there is no index {index}", build)
        if index.is_file():
            raise IndexUnusableError(
                f"{index} is a file, not an index",
                f"Build one of it, if it holds papers: citerec index build {index} --out {INDEXES / 'NAME'}",
            )
        path = generation_of(index) / FILE_NAME
        if not path.exists():
            within = _indexes_in(index)
            remedy = f"Choose one of those in it: {', '.join(map(str, within))}" if within else build
            if (index / FILE_NAME).exists() and is_index(index):
                raise IndexUnusableError(f"{index} is an index of an older version", _AGAIN.format(index))
            raise IndexUnusableError(f"{index} is not an index: it has no {FILE_NAME}", remedy)
        if (version := _stated(index).get("version", VERSION)) != VERSION:
            raise IndexUnusableError(
                f"{index} is an index of version {version}; this citerec reads version {VERSION}",
                _AGAIN.format(index),
            )
        try:
            manifest = cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise IndexUnusableError(f"{path} is broken ({first_fault(error)})", build) from None
        if manifest.kind != KIND:
            raise IndexUnusableError(f"{index} is a {manifest.kind}, not a {KIND}", build)
        return manifest

    def write(self, folder: Path) -> None:
        """Writes the manifest into the folder of a generation."""
        (folder / FILE_NAME).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def checksum(path: Path) -> str:
    """The checksum of a file, as in manifests."""
    return file_digest(path, "blake2b")[:32]


def open_store(index: Path) -> PaperStore:
    """The paper store of an index directory, to read.

    Raises:
        IndexUnusableError: It is a file that cannot be read.
        InputError: It is a MongoDB database, and no server answers there, or it refuses the user.
    """
    if address := _stated(index).get("store"):
        return stores.open_store(str(address), read_only=True)
    return open_file(index)


def open_file(index: Path) -> SqliteStore:
    """The paper store of an index directory that keeps its records itself, to read; errors as for `open_store`."""
    return SqliteStore(generation_of(index) / STORE, read_only=True)


def manifest_and_store(index: Path) -> tuple[Manifest, PaperStore]:
    """The manifest of an index and its paper store, to read; errors as for both."""
    return opened(index, lambda: (Manifest.read(index), open_store(index)), lambda found: found[1].close())


def is_index(path: Path) -> bool:
    """Whether the manifest of a directory says that it is an index, of any version."""
    return _stated(path).get("kind") == KIND


def find_index(given: Path | None, fingerprint: str | None = None) -> Path:
    """The index to use: the given one, the one with the fingerprint below `indexes/`, or the only one there.

    Raises:
        IndexUnusableError: None is given, and `indexes/` has none or several.
    """
    if given is not None:
        return given
    found = _indexes_in(INDEXES)
    for path in found if fingerprint is not None else ():
        if _stated(path).get("fingerprint") == fingerprint and _stated(path).get("version") == VERSION:
            return path
    if len(found) == 1:
        return found[0]
    if not found:
        raise IndexUnusableError(
            "there is no index yet", "Run `citerec demo`, or: citerec index build SOURCE… --out indexes/NAME"
        )
    raise IndexUnusableError("there are several indexes", f"Choose one with --index: {', '.join(map(str, found))}")


def _indexes_in(folder: Path) -> list[Path]:
    """The indexes in a folder, in order of name. The ranker that comes with citerec is in `indexes/` too."""
    return sorted(path for path in folder.glob("[!.]*") if is_index(path))


class MadeManifest(_Part):
    """`manifest.json` of the folder that `index encode` made in an index, the base of each retriever's own.

    It is written last: a folder without it is half made. Subclasses give `kind` and `version` their values.

    Attributes:
        holds: What the folder holds, for errors.
        store: Fingerprint of the paper store for which it was made.
        checksums: BLAKE2 digest of each file.
    """

    model_config = ConfigDict(protected_namespaces=())

    holds: ClassVar[str]
    kind: str
    version: int
    citerec: str
    store: str
    checksums: dict[str, str]

    @staticmethod
    def remedy(folder: Path) -> str:
        """How to make a folder again."""
        return f"Make them: citerec index encode {folder.parent.parent} --retriever {folder.name}"

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest of a folder.

        Raises:
            IndexUnusableError: It is missing, broken, or of another version.
        """
        path, remedy = folder / FILE_NAME, cls.remedy(folder)
        if not path.is_file():
            raise IndexUnusableError(f"{folder.parent.parent} has no {cls.holds}", remedy)
        try:
            manifest = cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            fault = first_fault(error) if isinstance(error, ValidationError) else error
            raise IndexUnusableError(f"{path} is broken or of another version ({fault})", remedy) from None
        kind, version = (cls.model_fields[name].default for name in ("kind", "version"))
        if (manifest.kind, manifest.version) != (kind, version):
            raise IndexUnusableError(
                f"{path} is a {manifest.kind} of version {manifest.version}; this citerec reads version {version}",
                remedy,
            )
        return manifest

    def write(self, folder: Path) -> None:
        """Writes the manifest into a folder."""
        (folder / FILE_NAME).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _stated(index: Path) -> dict[str, Any]:
    """The manifest of an index as JSON, valid or not, also of an older version; empty if there is none."""
    return read_json(generation_of(index) / FILE_NAME) or read_json(index / FILE_NAME) or {}
