"""The manifest of a folder of vectors."""

from pathlib import Path
from typing import Literal, Self

from citerec.errors import IndexUnusableError
from citerec.index.manifest import FILE_NAME, FolderManifest

Asked = Literal["auto", "exact", "flat", "ivfsq", "ivfpq", "hnsw"]
"""How vectors are searched: by numpy, or the kind of a FAISS index; `auto` is one of them by their number."""


class DenseManifest(FolderManifest):
    """`manifest.json` of a folder of vectors of papers.

    Attributes:
        store: Fingerprint of the paper store for which they were made.
        model: The encoder of queries, by the name that the user gave.
        identity: The `model_identity` of that model; None if the vectors were given.
        max_tokens: How many tokens of a text were read; None if the vectors were given.
        count: How many papers have a vector.
        without_vector: How many have none.
        given: Whether the vectors were given, not encoded here.
        faults: Counts of faults of given vectors, by reason.
        asked: How they are to be searched; `auto` if their number decides.
        kind_of_search: How they are searched.
    """

    kind: Literal["citerec-vectors"] = "citerec-vectors"
    version: Literal[2] = 2
    store: str
    model: str
    identity: str | None
    backend: str
    max_tokens: int | None
    dimension: int
    count: int
    without_vector: int
    given: bool
    faults: dict[str, int]
    asked: Asked
    kind_of_search: Asked

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest of a folder.

        Raises:
            IndexUnusableError: It is missing, broken, or of another version.
        """
        if not has_vectors(folder):
            raise IndexUnusableError(f"{folder.parent.parent} has no vectors", cls.remedy(folder))
        return cls.of(folder, cls.remedy(folder))

    @staticmethod
    def remedy(folder: Path) -> str:
        """How to make the vectors of a folder again."""
        return f"Make them: {encode_command(folder)}"


def encode_command(folder: Path, model: str | None = None) -> str:
    """The command that makes the vectors of a folder of an index, whose name is that of their retriever.

    Only `dense` has a default model.
    """
    if folder.name == "profile":
        return f"citerec index encode {folder.parent.parent} --retriever profile"
    if folder.name != "dense":
        return f"citerec index encode {folder.parent.parent} --retriever {folder.name} --model {model or 'FOLDER'}"
    return f"citerec index encode {folder.parent.parent}{f' --model {model}' if model else ''}"


def has_vectors(folder: Path) -> bool:
    """Whether a folder holds finished vectors, of any version."""
    return (folder / FILE_NAME).is_file()
