"""The manifest of an index directory, and its paper store."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from citerec.corpus import store as stores
from citerec.corpus.store import Counts, PaperStore, ShardCounts, SqliteStore
from citerec.errors import IndexUnusableError, first_fault
from citerec.files.hashing import file_digest
from citerec.files.resume import read_json
from citerec.index.generations import generation_of, opened
from citerec.settings import INDEXES

KIND: Literal["citerec-index"] = "citerec-index"
FILE_NAME = "manifest.json"
STORE = "papers.sqlite"
DENSE = "dense"


class FolderManifest(BaseModel):
    """`manifest.json` of a folder. It is written last: a folder without it is half made.

    Attributes:
        kind: What the folder is; each subclass allows one kind and one version.
        version: Increased when older folders can no longer be read.
        citerec: The version of citerec that wrote it.
        checksums: BLAKE2 digests of files, by their places in the folder.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    kind: str
    version: int
    citerec: str
    checksums: dict[str, str]

    @classmethod
    def of(cls, folder: Path, remedy: str) -> Self:
        """The manifest of a folder; an IndexUnusableError with a remedy if it is broken or of another version."""
        path = folder / FILE_NAME
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            fault = first_fault(error) if isinstance(error, ValidationError) else error
            raise IndexUnusableError(f"{path} is broken or of another version ({fault})", remedy) from None

    def write(self, folder: Path) -> None:
        """Writes the manifest into a folder."""
        (folder / FILE_NAME).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


class Layout(BaseModel):
    """How the words of an index are written.

    Attributes:
        engine: What writes and searches them: one of `citerec.index.base.ENGINES`.
        abstract_field: Index abstracts as a field of their own too, so that words.weights.abstract can weight them.
        url: Where a server keeps words and vectors; None if the index does.
    """

    model_config = ConfigDict(frozen=True)

    engine: str = "embedded"
    abstract_field: bool = False
    url: str | None = None


@dataclass(frozen=True, slots=True)
class IndexCounts(Counts):
    """How much is in the index: the counts of its store, and how many records do not count.

    Of these, `duplicates` of papers were replaced or deleted by a later record, and `bad` could not be read.
    """

    duplicates: int
    bad: int


class Manifest(Layout, FolderManifest):
    """The manifest of a generation of an index; its checksums are of the files of columns and words.

    Attributes:
        store: The address of the MongoDB database that keeps the records, without user and password; None if they are
            in the index.
        fingerprint: Of the records.
    """

    kind: Literal["citerec-index"] = KIND
    version: Literal[6] = 6
    store: str | None = None
    fingerprint: str
    counts: IndexCounts
    sources: list[ShardCounts]

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
        if not (generation_of(index) / FILE_NAME).exists():
            within = indexes_in(index)
            remedy = f"Choose one of those in it: {', '.join(map(str, within))}" if within else build
            raise IndexUnusableError(f"{index} is not an index: it has no {FILE_NAME}", remedy)
        return cls.of(generation_of(index), f"Build it again from its sources: citerec index build … --out {index}")


def checksum(path: Path) -> str:
    """The checksum of a file, as in manifests."""
    return file_digest(path, "blake2b")[:32]


def open_store(index: Path) -> PaperStore:
    """The paper store of an index directory, to read.

    Raises:
        IndexUnusableError: There is no index, or its store is a file that cannot be read.
        InputError: It is a MongoDB database, and no server answers there, or it refuses the user.
    """
    if address := Manifest.read(index).store:
        return stores.open_store(address, read_only=True)
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
    found = indexes_in(INDEXES)
    same = [path for path in found if fingerprint is not None and _stated(path).get("fingerprint") == fingerprint]
    if same or len(found) == 1:
        return [*same, *found][0]
    if not found:
        raise IndexUnusableError(
            "there is no index yet", "Run `citerec demo`, or: citerec index build SOURCE… --out indexes/NAME"
        )
    raise IndexUnusableError("there are several indexes", f"Choose one with --index: {', '.join(map(str, found))}")


def indexes_in(folder: Path) -> list[Path]:
    """The indexes in a folder, in order of name. The ranker that comes with citerec is in `indexes/` too."""
    return sorted(path for path in folder.glob("[!.]*") if is_index(path))


def _stated(index: Path) -> dict[str, Any]:
    """The manifest of an index as JSON, valid or not; empty if there is none."""
    return read_json(generation_of(index) / FILE_NAME) or {}
