"""What the collections of an address state about themselves, and what an index notes of its last push."""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from citerec.errors import IndexUnusableError
from citerec.retrieve.dense.manifest import DenseManifest
from citerec.retrieve.manifest import MadeManifest
from citerec.retrieve.qdrant.address import Address, Connection, failures

NAME = "qdrant"
KIND = "citerec-qdrant"
VERSION = 1
"""Increased when older collections can no longer be searched."""

PAPERS, CITANCES = "papers", "citances"

Quantization = Literal["none", "int8", "binary"]


class Stated(BaseModel):
    """The metadata of both collections.

    Attributes:
        fingerprint: That of the index they were pushed from.
        updating: Fingerprint of the index that is being pushed; empty if none is.
        papers: How many papers there are. `citances` is the same for citing sentences.
        k1: BM25's k1, which is part of the vectors. The same for `b`.
        means: How many words each field has in the mean.
        collisions: How many terms share their index with another one.
        dense: What made the vectors of the papers; None if there are none.
    """

    model_config = ConfigDict(frozen=True)

    kind: str = KIND
    version: int = VERSION
    citerec: str
    fingerprint: str
    updating: str = ""
    papers: int
    citances: int
    analyzer: str
    k1: float
    b: float
    means: dict[str, float]
    collisions: int
    quantization: Quantization
    dense: DenseManifest | None


class QdrantManifest(MadeManifest):
    """`qdrant/manifest.json`: where an index was pushed last.

    Attributes:
        url: The address.
        base: Size and time of the paper store without its changes: whether what changed since is known.
        shards: How many shards the store had read.
        stated: What the collections state.
    """

    holds: ClassVar[str] = "collections in Qdrant"
    kind: str = KIND
    version: int = VERSION
    url: str
    base: int
    shards: int
    stated: Stated

    @staticmethod
    def remedy(folder: Path) -> str:
        """How to make the collections."""
        return f"Push it: {push_command(folder.parent)}"


def push_command(index: Path) -> str:
    """The command that pushes an index."""
    return f"citerec index push {index} --to http://HOST:6333/NAME"


def alias_of(address: Address, kind: str) -> str:
    """The name under which papers or citing sentences are read."""
    return address.name if kind == PAPERS else f"{address.name}-{CITANCES}"


def aliases(connection: Connection) -> dict[str, str]:
    """The collections of all aliases, by alias."""
    with failures(connection.address):
        return {one.alias_name: one.collection_name for one in connection.client.get_aliases().aliases}


def stated_at(connection: Connection) -> Stated | None:
    """What the collections of an address state; None if there are none.

    Raises:
        IndexUnusableError: There is a collection that citerec did not make, or one of another version.
        ServiceError: The server cannot be asked.
    """
    address = connection.address
    collection = aliases(connection).get(alias_of(address, PAPERS))
    if collection is None:
        return None
    with failures(address):
        found = connection.client.get_collection(collection).config.metadata or {}
    if (found.get("kind"), found.get("version")) != (KIND, VERSION):
        raise IndexUnusableError(
            f"{address} was not pushed by this version of citerec",
            "Give another name, or push the index again: citerec index push INDEX --to … --anew",
        )
    try:
        return Stated.model_validate(found)
    except ValidationError:
        raise IndexUnusableError(f"{address} states nothing that citerec can read", "Push the index again.") from None


def opened(index: Path, fingerprint: str, url: str | None) -> tuple[Connection, Stated]:
    """A connection to the collections of an index, and what they state.

    Args:
        index: The index directory.
        fingerprint: The fingerprint of its papers.
        url: Where they are; by default where the index was pushed last.

    Raises:
        IndexUnusableError: It was never pushed, or the collections hold other papers.
        ServiceError: The server cannot be asked.
    """
    address = Address.parse(url or QdrantManifest.read(index / NAME).url)
    nothing = IndexUnusableError(f"there is nothing at {address}", f"Push it: {push_command(index)}")
    if address.folder and not address.folder.is_dir():  # a connection would make it
        raise nothing
    connection = Connection(address)
    try:
        stated = stated_at(connection)
        if stated is None:
            raise nothing
        if fingerprint not in (stated.fingerprint, stated.updating):
            raise IndexUnusableError(
                f"{connection.address} holds other papers than {index}",
                f"Push the index: citerec index push {index} --to {connection.address}",
            )
    except BaseException:
        connection.close()
        raise
    return connection, stated
