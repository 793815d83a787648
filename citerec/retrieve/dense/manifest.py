"""The manifest of a folder of vectors."""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from citerec.retrieve.manifest import FILE_NAME, MadeManifest

KIND = "citerec-vectors"
VERSION = 1
"""Increased when older vectors can no longer be read."""

FILES = ("ids.npy", "vectors.npy", "digests.npy", "years.npy", "citations.npy", "index.faiss")

IndexKind = Literal["flat", "ivfsq", "ivfpq", "hnsw"]


class FaissSettings(BaseModel):
    """How the vectors are searched.

    Attributes:
        kind: The kind of index in index.faiss.
        asked: The kind that was requested; `auto` if the number of vectors decided.
        build: The parameters of the build: M and efConstruction, or lists, code bytes and `scale`.
        probe: efSearch of HNSW for a hundred hits, or nprobe of IVF-SQ and IVF-PQ; 0 for flat.
        recall: Share of the exact 100 nearest that it finds with that, measured after it was built.
        faiss: Version of FAISS that built it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: IndexKind
    asked: Literal["auto", "flat", "ivfsq", "ivfpq", "hnsw"]
    build: dict[str, int | float]
    probe: int
    recall: float
    faiss: str


class DenseManifest(MadeManifest):
    """`manifest.json` of a folder of vectors of papers.

    Attributes:
        model: The encoder of queries, by the name that the user gave.
        identity: The `model_identity` of that model; None if the vectors were given.
        max_tokens: How many tokens of a text were read; None if the vectors were given.
        given: Whether the vectors were given, not encoded here.
        faults: Counts of faults of given vectors, by reason.
    """

    holds: ClassVar[str] = "vectors"
    kind: str = KIND
    version: int = VERSION
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
    faiss: FaissSettings

    @staticmethod
    def remedy(folder: Path) -> str:
        """How to make the vectors of a folder again."""
        return f"Make them: {encode_command(folder)}"


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
