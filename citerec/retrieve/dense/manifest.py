"""The manifest of a folder of vectors."""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from citerec.errors import IndexUnusableError, first_fault

KIND = "citerec-vectors"
VERSION = 1
"""Increased when older vectors can no longer be read."""

FILE_NAME = "manifest.json"
FILES = ("ids.npy", "vectors.npy", "digests.npy", "years.npy", "citations.npy", "index.faiss")

IndexKind = Literal["flat", "ivfsq", "ivfpq", "hnsw"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class FaissSettings(_Part):
    """How the vectors are searched.

    Attributes:
        kind: The kind of index in index.faiss.
        asked: The kind that was requested; `auto` if the number of vectors decided.
        build: The parameters of the build: M and efConstruction, or lists and code bytes.
        probe: efSearch of HNSW for a hundred hits, or nprobe of IVF-SQ and IVF-PQ; 0 for flat.
        recall: Share of the exact 100 nearest that it finds with that, measured after it was built.
        faiss: Version of FAISS that built it.
    """

    kind: IndexKind
    asked: Literal["auto", "flat", "ivfsq", "ivfpq", "hnsw"]
    build: dict[str, int]
    probe: int
    recall: float
    faiss: str


class DenseManifest(_Part):
    """`dense/manifest.json`. It is written last: a folder without it holds no vectors.

    Attributes:
        model: The encoder of queries, by the name that the user gave.
        identity: The `model_identity` of that model; None if the vectors were given.
        max_tokens: How many tokens of a text were read; None if the vectors were given.
        given: Whether the vectors were given, not encoded here.
        faults: Counts of faults of given vectors, by reason.
        store: Fingerprint of the paper store for which they were made.
        checksums: BLAKE2 digest of each file.
    """

    kind: str = KIND
    version: int = VERSION
    citerec: str
    model: str
    identity: str | None
    backend: str
    max_tokens: int | None
    dimension: int
    normalised: bool = True
    count: int
    without_vector: int
    given: bool
    faults: dict[str, int]
    store: str
    faiss: FaissSettings
    checksums: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest of a folder of vectors.

        Raises:
            IndexUnusableError: There are no vectors, or they are half made, broken, or of another version.
        """
        remedy = f"Make them: {encode_command(folder)}"
        path = folder / FILE_NAME
        if not path.is_file():
            raise IndexUnusableError(f"{folder.parent} has no vectors", remedy)
        try:
            manifest = cls.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise IndexUnusableError(f"{path} is broken or of another version ({first_fault(error)})", remedy) from None
        if manifest.kind != KIND or manifest.version != VERSION:
            raise IndexUnusableError(
                f"{path} is a {manifest.kind} of version {manifest.version}; this citerec reads version {VERSION}",
                remedy,
            )
        return manifest

    def write(self, folder: Path) -> None:
        """Writes the manifest into a folder of vectors."""
        (folder / FILE_NAME).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")


def encode_command(folder: Path, model: str | None = None) -> str:
    """The command that makes the vectors of a folder of an index, whose name is that of their retriever.

    Only `dense` has a default model.
    """
    if folder.name != "dense":
        return f"citerec index encode {folder.parent} --retriever {folder.name} --model {model or 'FOLDER'}"
    return f"citerec index encode {folder.parent}{f' --model {model}' if model else ''}"


def has_vectors(folder: Path) -> bool:
    """Whether a folder holds finished vectors, of any version."""
    return (folder / FILE_NAME).is_file()
