"""Vectors of citing sentences: what each citing paper says of each paper that it cites, one vector for both."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from citerec.contexts.topic import clean
from citerec.corpus.store import PaperStore, SearchableCitance, SearchableText
from citerec.errors import IndexUnusableError, SettingsError
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.files.resume import Journal
from citerec.retrieve.dense.build import checksum
from citerec.retrieve.dense.encode import DenseOptions, Encoding, PaperEncoder, encode_papers
from citerec.retrieve.dense.files import ArrayWriter, mapped, rows_of
from citerec.retrieve.dense.listing import text_digest
from citerec.retrieve.dense.vectors import Vectors
from citerec.retrieve.manifest import MadeManifest, Manifest
from citerec.retrieve.staging import DENSE, followed, making_folder, open_store
from citerec.version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "profile"
KIND = "citerec-citing-vectors"
VERSION = 1
UNKNOWN_YEAR = 9999
"""Stands for an unknown year: later than all others, so that nothing of that year is known to be old enough."""

_FILES = ("ids.npy", "vectors.npy", "digests.npy", "years.npy", "cited.npy", "citing.npy", "citing_digests.npy")
_PART = 1 << 16


class CitingManifest(MadeManifest):
    """`profile/manifest.json`.

    Attributes:
        model: The encoder, which is that of the papers' vectors.
        identity: Its `model_identity`.
        count: How many pairs of a cited and a citing paper have a vector.
        papers: Checksum of the papers' vectors, to whose rows `cited.npy` and `citing.npy` point.
    """

    holds: ClassVar[str] = "vectors of citing sentences"
    kind: str = KIND
    version: int = VERSION
    model: str
    identity: str
    count: int
    papers: str


class CitingVectors:
    """The memory-mapped arrays of a folder; rows are in order of cited paper, year and citing paper.

    Attributes:
        ids: `CITED YEAR CITING`, bytes, (count,).
        values: The vectors, float16, (count, dimension), each of length one.
        digests: 8 bytes of the digest of each text, (count,).
        years: Years of the citing papers, (count,); `UNKNOWN_YEAR` if unknown.
        cited: Rows of the cited papers in the papers' vectors, (count,); -1 for papers without a vector. The same for
            `citing`.
        citing_digests: 8 bytes of the digest of each citing paper's id, (count,).

    Raises:
        IndexUnusableError: The folder is half made, or its files do not fit together.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = CitingManifest.read(path)
        self.ids: NDArray[np.bytes_] = mapped(path / "ids.npy")
        self.values: NDArray[np.float16] = mapped(path / "vectors.npy")
        self.digests: NDArray[np.uint64] = mapped(path / "digests.npy")
        self.years: NDArray[np.int32] = mapped(path / "years.npy")
        self.cited: NDArray[np.int64] = mapped(path / "cited.npy")
        self.citing: NDArray[np.int64] = mapped(path / "citing.npy")
        self.citing_digests: NDArray[np.uint64] = mapped(path / "citing_digests.npy")
        columns = [getattr(self, name) for name in ("ids", "values", "digests", "years", "cited", "citing")]
        columns.append(self.citing_digests)
        if any(len(column) != self.manifest.count for column in columns):
            raise IndexUnusableError(
                f"{path} is damaged: its files have other numbers of rows", CitingManifest.remedy(path)
            )

    def rows(self, ids: Sequence[str]) -> "NDArray[np.int64]":
        """The rows of some pairs; -1 for those without a vector."""
        return rows_of(self.ids, ids)

    def citing_id(self, row: int) -> str:
        """The citing paper of a row."""
        return str(self.ids[row].decode()).split(" ", 2)[2]


def encode_citing_sentences(index: Path, on_progress: Progress, parallelism: Parallelism = HERE) -> CitingManifest:
    """Makes the vectors of all citing sentences of an index, with the encoder of its papers.

    An interrupted run is resumed; texts that were encoded before by the same model are not encoded again.

    Raises:
        IndexUnusableError: There is no index, or it has no vectors of its papers.
        SettingsError: The index has no citing sentences.
        ModelError: The encoder cannot be loaded.
    """
    index = followed(index)
    counts = Manifest.read(index).counts
    if not counts.citances:
        raise SettingsError(
            f"{index} has no citing sentences", "Build it with S2AG's citations, or with --citances FILE."
        )
    with making_folder(index, NAME) as folder:
        papers = Vectors(index / DENSE)
        made = papers.manifest
        options = DenseOptions(made.model, max_tokens=made.max_tokens, backend=made.backend)
        encoding = Encoding(options, parallelism=parallelism)
        encoder = encoding.encoder
        fingerprint = Manifest.read(index).fingerprint
        plan = {
            "store": fingerprint,
            "papers": made.checksums,
            "identity": encoder.identity,
            "max_tokens": encoder.max_tokens,
        }
        journal = Journal(folder, plan)
        store = open_store(index)
        try:
            encode_papers(
                folder,
                lambda after: _pairs(store, after),
                encoding,
                _previous(index / NAME, encoder),
                counts.citances,
                journal,
                on_progress,
            )
        finally:
            store.close()
        count = _write_rows(folder, papers)
        manifest = CitingManifest(
            citerec=__version__,
            model=made.model,
            identity=encoder.identity,
            count=count,
            store=fingerprint,
            papers=made.checksums["vectors.npy"],
            checksums={name: checksum(folder / name) for name in _FILES},
        )
        manifest.write(folder)
        return manifest


def _previous(folder: Path, encoder: PaperEncoder) -> CitingVectors | None:
    """Vectors to take over from; None if there are none of the same model."""
    try:
        old = CitingVectors(folder)
    except IndexUnusableError:
        return None
    return old if old.manifest.identity == encoder.identity else None


def _pairs(store: PaperStore, after: str) -> Iterator[SearchableText]:
    """The texts of all pairs above an id, in order: a cited paper's sentences in one citing paper are one text."""
    # All ids from that of the cited paper on are above it without its last character.
    just_before = after.split(" ", 1)[0][:-1]
    for _, citances in itertools.groupby(store.searchable_citances(just_before), lambda one: one.cited.paper_id):
        pairs = (_pair(list(group)) for _, group in itertools.groupby(citances, lambda one: one.citing_id))
        for pair in sorted(pairs, key=lambda pair: pair.paper_id.encode()):
            if pair.paper_id.encode() > after.encode():
                yield pair


def _pair(sentences: list[SearchableCitance]) -> SearchableText:
    first = sentences[0]
    year = UNKNOWN_YEAR if first.citing_year is None else first.citing_year
    text = " ".join(clean(one.text) for one in sentences)
    key = f"{first.cited.paper_id} {year:04d} {first.citing_id}"
    return SearchableText(key, text, "", year, None, "[]", None)


def _write_rows(folder: Path, papers: Vectors) -> int:
    """Writes the rows of the cited and the citing papers of all pairs; returns how many pairs there are."""
    import numpy as np

    ids = mapped(folder / "ids.npy")
    with (
        ArrayWriter(folder / "cited.npy", "<i8") as cited,
        ArrayWriter(folder / "citing.npy", "<i8") as citing,
        ArrayWriter(folder / "citing_digests.npy", "<u8") as digests,
    ):
        for begin in range(0, len(ids), _PART):
            keys = [key.decode().split(" ", 2) for key in ids[begin : begin + _PART].tolist()]
            cited.append(papers.rows([key[0] for key in keys]))
            citing.append(papers.rows([key[2] for key in keys]))
            digests.append(np.array([text_digest(key[2]) for key in keys], dtype=np.uint64))
    return len(ids)


def checked(vectors: CitingVectors, papers: Vectors) -> None:
    """Raises IndexUnusableError unless the vectors of citing sentences were made beside these vectors of papers."""
    made_beside: Any = vectors.manifest.papers
    if made_beside != papers.manifest.checksums["vectors.npy"]:
        raise IndexUnusableError(
            f"the vectors of citing sentences of {vectors.path.parent} were made for other papers",
            CitingManifest.remedy(vectors.path),
        )
