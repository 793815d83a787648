"""Pushing an index into Qdrant: whole, into new collections that take the place of the old ones, or what changed."""

import contextlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError, InputError
from citerec.files.progress import Progress
from citerec.files.resume import Journal
from citerec.files.writing import remove
from citerec.retrieve.dense.manifest import DenseManifest, has_vectors
from citerec.retrieve.lucene.fields import ANALYZER
from citerec.retrieve.lucene.queries import Bm25
from citerec.retrieve.manifest import Manifest
from citerec.retrieve.qdrant.address import FORM, Address, Connection
from citerec.retrieve.qdrant.manifest import NAME, QdrantManifest, Quantization, Stated, stated_at
from citerec.retrieve.qdrant.statistics import word_statistics
from citerec.retrieve.qdrant.upload import Layout, Upload
from citerec.retrieve.staging import DENSE as VECTORS
from citerec.retrieve.staging import followed, making_folder, open_store, recover
from citerec.version import __version__

_MOST_DRIFT = 0.01
"""How far the mean length of a field may move before all vectors are made anew: scores move less than that."""


@dataclass(frozen=True, slots=True)
class PushOptions:
    """How an index is pushed.

    Attributes:
        quantization: How the server keeps vectors in memory; the vectors themselves stay too.
        layout: How the collections lie in a cluster.
        bm25: BM25's parameters, which become part of the vectors.
        anew: Whether everything is pushed, even if only a part has changed.
    """

    quantization: Quantization = "none"
    layout: Layout = field(default_factory=Layout)
    bm25: Bm25 = field(default_factory=Bm25)
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Pushed:
    """What was pushed.

    Attributes:
        address: Where to.
        stated: What the collections state.
        changed: How many papers were written or removed; None if all were written, into new collections.
    """

    address: Address
    stated: Stated
    changed: int | None


def push_index(index: Path, to: str | None, options: PushOptions, on_progress: Progress) -> Pushed:
    """Pushes an index. An interrupted push is resumed by the same call.

    The first push, and one after many changes, writes new collections, which readers see when they are complete.
    Otherwise what changed since the last push is written into the collections that are there, paper by paper.

    Args:
        index: The index.
        to: The address; by default where the index was pushed last.
        options: How it is pushed.
        on_progress: Called as the work goes on.

    Raises:
        IndexUnusableError: There is no index.
        InputError: The address is wrong, or the name is taken.
        ServiceError: The server does not answer.
        JavaError: There is no Java runtime that can analyse the words.
        BuildError: The collections do not hold what was pushed, or another build is running.
    """
    index = followed(index)
    recover(index)
    Manifest.read(index)
    before = _last(index)
    if to is None and before is None:
        raise InputError(f"{index} was not pushed yet", f"Say where to: --to ADDRESS. {FORM}")
    address = Address.parse(to or (before.url if before else ""))
    with (
        Connection(address) as connection,
        making_folder(index, NAME) as folder,
        contextlib.closing(open_store(index)) as store,
    ):
        manifest = Manifest.read(index)
        known = None if before is None or options.anew else _known(before, connection)
        stated = _stated(index, manifest, options, known)
        changed: int | None = None
        if before is not None and known is not None and _fits(before, stated, _identity(store)):
            remove(folder)  # of an interrupted push of everything
            folder.mkdir(parents=True)
            since = before.shards
            upload = Upload(connection, store, stated, options.layout, on_progress, _vectors(index))
            changed = upload.changes(since) if stated.fingerprint != before.store else 0
        else:
            stated = stated if known is None else _stated(index, manifest, options, None)
            plan = {"to": str(address), "stated": stated.model_dump(mode="json"), "layout": asdict(options.layout)}
            upload = Upload(connection, store, stated, options.layout, on_progress, _vectors(index))
            upload.whole(Journal(folder, plan))
        QdrantManifest(
            citerec=__version__,
            url=str(address),
            base=_identity(store),
            shards=max(store.shards(), default=0) + 1,
            stated=stated,
            store=stated.fingerprint,
            checksums={},
        ).write(folder)
    return Pushed(address, stated, changed)


def _last(index: Path) -> QdrantManifest | None:
    """What an index notes of its last push; None if it was never pushed, or by another version."""
    with contextlib.suppress(IndexUnusableError):
        return QdrantManifest.read(index / NAME)
    return None


def _known(before: QdrantManifest, connection: Connection) -> Stated | None:
    """What the collections state, if they are those of the last push; None if all has to be pushed."""
    if before.url != str(connection.address):
        return None
    try:
        stated = stated_at(connection)
    except IndexUnusableError:
        return None
    return stated if stated is not None and stated.fingerprint == before.store else None


def _stated(index: Path, manifest: Manifest, options: PushOptions, known: Stated | None) -> Stated:
    """What collections of an index state; mean lengths stay those of the vectors that are there, if they are near."""
    statistics = word_statistics(index, collisions=known is None)
    means, collisions = statistics.means, statistics.collisions
    if known is not None and means.keys() == known.means.keys():
        if all(abs(means[name] / known.means[name] - 1) <= _MOST_DRIFT for name in means):
            means = known.means
        collisions = known.collisions
    return Stated(
        citerec=__version__,
        fingerprint=manifest.fingerprint,
        papers=manifest.counts.papers,
        citances=manifest.counts.citances,
        analyzer=ANALYZER,
        k1=options.bm25.k1,
        b=options.bm25.b,
        means=means,
        collisions=collisions,
        quantization=options.quantization,
        dense=DenseManifest.read(index / VECTORS) if _vectors(index) else None,
    )


def _fits(before: QdrantManifest, now: Stated, base: int) -> bool:
    """Whether the collections of the last push become those of now by writing what changed since."""
    of_points = {"citerec", "analyzer", "k1", "b", "means", "quantization"}
    if before.stated.model_dump(include=of_points) != now.model_dump(include=of_points):
        return False
    if bool(before.stated.citances) != bool(now.citances) or not _same_model(before.stated.dense, now.dense):
        return False
    if before.store == now.fingerprint:
        return _vector_files(before.stated.dense) == _vector_files(now.dense)
    return before.base == base


def _same_model(before: DenseManifest | None, now: DenseManifest | None) -> bool:
    """Whether vectors of texts that did not change are the same. Given vectors may be any."""
    if before is None or now is None:
        return before is now
    made_by = [(one.model, one.identity, one.max_tokens, one.dimension, one.backend) for one in (before, now)]
    return bool(made_by[0] == made_by[1])


def _vector_files(dense: DenseManifest | None) -> str:
    return dense.checksums["vectors.npy"] if dense else ""


def _vectors(index: Path) -> Path | None:
    """The folder of the vectors of an index, if it has some that are of its papers."""
    folder = index / VECTORS
    if not has_vectors(folder):
        return None
    return folder if DenseManifest.read(folder).store == Manifest.read(index).fingerprint else None


def _identity(store: PaperStore) -> int:
    """The identity of the store of an index; 0 where the records are in MongoDB: it is never brought up to date."""
    return store.identity if isinstance(store, SqliteStore) else 0
