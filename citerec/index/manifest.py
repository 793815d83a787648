"""An index directory: its generations, the manifest of each, and the paper store.

A generation is a folder that is never changed once it is there; `CURRENT` names the newest. A reader opens the files of
one generation and keeps them. A writer makes the next one beside it, with links to what did not change, and then
replaces `CURRENT`, as LevelDB does. The generation before is kept for those who are opening it. What was trained for an
index lies beside its generations, in `trained/`.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from citerec.corpus import store as stores
from citerec.corpus.store import Counts, PaperStore, ShardCounts, SqliteStore
from citerec.errors import IndexUnusableError, first_fault
from citerec.files.resume import JOURNAL, Journal, file_digest, read_json
from citerec.files.writing import alone, link, recover, remove, sync_entry, write_failures, writing_file
from citerec.settings import INDEXES

CURRENT, TRAINED = "CURRENT", "trained"
MAKING, LOCK = "making", ".lock"
CACHE = "vectors.sqlite"
"""The file with what was encoded for an index, beside its generations."""
_KEPT = 2
_TRIES, _PAUSE = 100, 0.01

Files = TypeVar("Files")


def generation_of(index: Path) -> Path:
    """The folder of the current generation of an index; one that does not exist if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return index / ((index / CURRENT).read_text(encoding="ascii").strip() or "0")
    return index / "0"


def trained_of(index: Path, name: str) -> Path:
    """The folder of what was trained for an index, by the name of the part."""
    folder = index / TRAINED / name
    recover(folder)
    return folder


@contextlib.contextmanager
def next_generation(index: Path, plan: Mapping[str, Any]) -> Iterator[Journal]:
    """The journal of a folder that becomes the current generation of an index at the end.

    If the work is interrupted, the folder waits for the same plan.

    Raises:
        BuildError: The disk is full, or another process is building the index.
    """
    remedy = "Make room, or mend its permissions; the same command then goes on. What was there is unchanged."
    with write_failures(index, remedy), alone(index.resolve() / LOCK, f"another process is building {index}"):
        journal = Journal(index / MAKING, plan)
        yield journal
        making = journal.folder
        (making / JOURNAL).unlink()
        Manifest.of(making, remedy).with_vectors(making).write(making)
        for path in [*making.rglob("*"), making]:
            sync_entry(path)  # `CURRENT` never gets to the disk before them
        number = 1 + max((int(path.name) for path in index.iterdir() if path.name.isdecimal()), default=0)
        making.rename(index / str(number))
        with writing_file(index / CURRENT) as partial:
            partial.write_text(f"{number}\n", encoding="ascii")
        sync_entry(index)
        for path in index.iterdir():
            if path.name.isdecimal() and int(path.name) <= number - _KEPT:
                remove(path)


def link_folder(source: Path, target: Path, but: str = "") -> None:
    """Gives the files of a folder, if there is one, which never change, names in another, but for those of one name."""
    if source.is_dir():
        ignored = shutil.ignore_patterns(but)
        shutil.copytree(source, target, copy_function=link, ignore=ignored, dirs_exist_ok=True)


def opened(index: Path, open_files: Callable[[], Files], close: Callable[[Files], object] = lambda _: None) -> Files:
    """Opens files of an index, and again if it, or what was trained for it, was replaced meanwhile.

    Args:
        index: The index directory.
        open_files: Opens them.
        close: Closes what was opened, if it is opened again.

    Raises:
        IndexUnusableError: They are replaced again and again.
        Exception: `open_files` raised it, and nothing was replaced.
    """
    for _ in range(_TRIES):
        before = identity(index)
        try:
            files = open_files()
        except Exception:
            if identity(index) == before:
                raise
        else:
            if identity(index) == before:
                return files
            close(files)
        time.sleep(_PAUSE)
    raise IndexUnusableError(f"{index} is being replaced again and again", "Wait until the builds are done.")


def identity(index: Path) -> tuple[str, ...]:
    """What changes when an index, or a part that was trained for it, is replaced.

    The current generation, and the manifests of what was trained: their places, file numbers and times.
    """
    facts = [generation_of(index).name]
    for path in sorted((index / TRAINED).glob("**/manifest.json")):
        with contextlib.suppress(OSError):
            facts.append(f"{path} {path.stat().st_ino} {path.stat().st_mtime_ns}")
    return tuple(facts)


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
        (folder / FILE_NAME).unlink(missing_ok=True)  # it may be a link to that of the generation before
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
    """The manifest of a generation of an index.

    Its checksums are of the files of columns and words, and of the manifests of its vectors.

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
            remedy = f"Build one of it, if it holds papers: citerec index build {index} --out {INDEXES / 'NAME'}"
            raise IndexUnusableError(f"{index} is a file, not an index", remedy)
        if not (generation_of(index) / FILE_NAME).exists():
            within = indexes_in(index)
            remedy = f"Choose one of those in it: {', '.join(map(str, within))}" if within else build
            raise IndexUnusableError(f"{index} is not an index: it has no {FILE_NAME}", remedy)
        return cls.of(generation_of(index), f"Build it again from its sources: citerec index build … --out {index}")

    def with_vectors(self, folder: Path) -> Self:
        """The manifest with checksums of the manifests of those vectors that its folder has now."""
        own = {name: value for name, value in self.checksums.items() if Path(name).name != FILE_NAME}
        paths = sorted(folder.glob(f"*/{FILE_NAME}"))
        of_vectors = {f"{path.parent.name}/{FILE_NAME}": checksum(path) for path in paths}
        return self.model_copy(update={"checksums": own | of_vectors})


def checksum(path: Path) -> str:
    """The checksum of a file, as in manifests."""
    return file_digest(path, "blake2b")[:32]


def checksums(folder: Path, *names: str) -> dict[str, str]:
    """The checksums of the files of a folder, or of some folders in it, by their places in the folder."""
    files = (path for name in names or [""] for path in sorted((folder / name).rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): checksum(path) for path in files}


def may_hold_index(out: Path) -> bool:
    """Whether an index may be made at a place: there is nothing, an index, or an interrupted build of one."""
    if not out.is_dir():
        return not out.exists()
    return is_index(out) or all(path.name.startswith((MAKING, LOCK, CACHE)) for path in out.iterdir())


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
    return opened(index, lambda: (Manifest.read(index), open_store(index)), lambda pair: pair[1].close())


def is_index(path: Path) -> bool:
    """Whether the manifest of a directory says that it is an index, of any version."""
    return _json_of(path).get("kind") == KIND


def find_index(index: Path | None, fingerprint: str | None = None) -> Path:
    """The index to use: the given one, the one with the fingerprint below `indexes/`, or the only one there.

    Raises:
        IndexUnusableError: None is given, and `indexes/` has none or several.
    """
    if index is not None:
        return index
    indexes = indexes_in(INDEXES)
    same = [path for path in indexes if fingerprint is not None and _json_of(path).get("fingerprint") == fingerprint]
    if same or len(indexes) == 1:
        return [*same, *indexes][0]
    if not indexes:
        remedy = "Run `citerec demo`, or: citerec index build SOURCE… --out indexes/NAME"
        raise IndexUnusableError("there is no index yet", remedy)
    raise IndexUnusableError("there are several indexes", f"Choose one with --index: {', '.join(map(str, indexes))}")


def indexes_in(folder: Path) -> list[Path]:
    """The indexes in a folder, in order of name; of an index itself. The shipped ranker is in `indexes/` too."""
    return [folder] if is_index(folder) else sorted(path for path in folder.glob("[!.]*") if is_index(path))


def _json_of(index: Path) -> dict[str, Any]:
    """The manifest of an index as JSON, valid or not; empty if there is none."""
    return read_json(generation_of(index) / FILE_NAME) or {}
