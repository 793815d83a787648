"""Building a folder of vectors from a paper store; an interrupted build is resumed."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import PaperStore, SearchableText
from citerec.errors import BuildError, IndexUnusableError, InputError, ModelError, SourceError
from citerec.groundwork.hashing import file_digest, identity
from citerec.groundwork.progress import Progress
from citerec.groundwork.resume import Journal
from citerec.groundwork.writing import link
from citerec.models.encoder import Encoder
from citerec.retrieve.dense.files import ArrayWriter, mapped
from citerec.retrieve.dense.given import arrange_given, find_given
from citerec.retrieve.dense.kinds import FILE_NAME as FAISS
from citerec.retrieve.dense.kinds import Asked, build_faiss, choose
from citerec.retrieve.dense.listing import Texts, list_papers, paper_text, text_digest
from citerec.retrieve.dense.manifest import FILES, DenseManifest, FaissSettings, has_vectors
from citerec.retrieve.dense.vectors import Vectors
from citerec.version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A kill may cost two minutes of work on a slow processor; in smaller chunks, fewer texts have similar lengths.
_CHUNK = 4096
_PART = 512
# Other models give unrelated vectors; other rounding, and somewhat different texts, give nearly the same.
_SAME = 0.9
_COMPARED, _SAMPLED = 16, 1000
INPUTS = ("ids.npy", "vectors.npy")
"""The files over which the FAISS index is built."""


@dataclass(frozen=True, slots=True)
class DenseOptions:
    """How vectors are made and searched.

    Attributes:
        model: The encoder of the papers, and later of the queries: a folder, or a name.
        vectors: Vectors that were made elsewhere by that model, in place of encoding: docs/storage.md.
        kind: Kind of FAISS index; `auto` chooses by the number of vectors.
        max_tokens: How many tokens of a text are read; None for the number that the model's authors set.
        max_bad: Share of unusable given vectors, 0 to 1, above which the work stops.
    """

    model: str
    vectors: tuple[Path, ...] = ()
    kind: Asked = "auto"
    max_tokens: int | None = 192
    backend: str = "torch"
    max_bad: float = 0.05


class PaperEncoder(Protocol):
    """Makes the vectors of papers; it reads titles and abstracts."""

    @property
    def identity(self) -> str:
        """Its `model_identity`."""

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""

    @property
    def max_tokens(self) -> int:
        """How many tokens of a text it reads."""

    def encode_papers(self, papers: Sequence[SearchableText], /) -> "NDArray[np.float32]":
        """The vectors of some papers, (papers, dimension), each of length one."""


class TextEncoder:
    """An encoder of texts, for papers: each is one text, `paper_text`."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity, self.dimension, self.max_tokens = encoder.identity, encoder.dimension, encoder.max_tokens

    @classmethod
    def open(cls, options: DenseOptions) -> Self:
        """Opens the encoder that some options name; errors as for `Encoder.open`."""
        return cls(Encoder.open(options.model, backend=options.backend, max_tokens=options.max_tokens))

    def encode_papers(self, papers: Sequence[SearchableText]) -> "NDArray[np.float32]":
        """As for `PaperEncoder`."""
        return self._encoder.encode([paper_text(paper) for paper in papers])


OpenEncoder = Callable[[DenseOptions], PaperEncoder]
"""Opens the encoder that some options name."""


class Encoded(Protocol):
    """Vectors that were encoded before."""

    @property
    def values(self) -> "NDArray[np.float16]":
        """The vectors, (count, dimension)."""

    @property
    def digests(self) -> "NDArray[np.uint64]":
        """8 bytes of the digest of each text, (count,)."""

    def rows(self, ids: Sequence[str], /) -> "NDArray[np.int64]":
        """The rows of some ids; -1 for those without a vector."""


def build_dense(
    folder: Path,
    store: PaperStore,
    fingerprint: str,
    papers: int,
    options: DenseOptions,
    *,
    previous: Path | None = None,
    open_encoder: OpenEncoder = TextEncoder.open,
    on_progress: Progress,
) -> DenseManifest:
    """Makes the vectors of all papers of a store, and the FAISS index over them, in a folder.

    A call with the same arguments resumes an interrupted build after the last chunk. Texts that `previous` has encoded
    with the same model are not encoded again. Errors are those of `encode_index`.
    """
    sources = find_given(options.vectors)
    encoder = None
    if not sources:
        encoder = open_encoder(options)
    plan: dict[str, Any] = {
        "store": fingerprint,
        "model": options.model,
        "identity": encoder.identity if encoder else None,
        "backend": options.backend,
        "max_tokens": encoder.max_tokens if encoder else None,
        "vectors": [identity(file) for source in sources for file in _files(source)],
    }
    journal = Journal(folder, plan)
    if has_vectors(folder):
        manifest = DenseManifest.read(folder)
        if manifest.faiss.asked == options.kind:
            return manifest
    old = opened(previous)
    faults: dict[str, int] = {}
    if encoder is None:
        given = arrange_given(folder, store.searchable_texts, sources, options.max_bad, papers, journal, on_progress)
        dimension, left_out, faults = given.dimension, given.left_out, given.faults
    else:
        same = old if old and is_same_model(old.manifest, encoder, options) else None
        dimension = encoder.dimension
        left_out = encode_papers(folder, store.searchable_texts, encoder, same, papers, journal, on_progress)
    count = papers - left_out
    if not count:
        raise SourceError("no paper has a text to encode", "Give papers with titles or abstracts.")
    checksums = {name: checksum(folder / name) for name in INPUTS}
    faiss = taken_over(folder, old, checksums, options.kind) or build_faiss(folder, options.kind, on_progress)
    manifest = DenseManifest(
        citerec=__version__,
        model=_lasting(options.model),
        identity=plan["identity"],
        backend=options.backend,
        max_tokens=plan["max_tokens"],
        dimension=dimension,
        count=count,
        without_vector=left_out,
        given=encoder is None,
        faults={reason: number for reason, number in sorted(faults.items()) if number},
        store=fingerprint,
        faiss=faiss,
        checksums=checksums | {name: checksum(folder / name) for name in FILES if name not in checksums},
    )
    manifest.write(folder)
    return manifest


def renewal(previous: Path, asked: DenseOptions | None = None) -> DenseOptions:
    """The options that update vectors: those they were made with, or those that are asked for.

    Given vectors stay if others of the same model are added to them.

    Raises:
        InputError: Vectors are given for papers whose vectors were encoded here by the same model.
    """
    manifest = DenseManifest.read(previous)
    if asked is None:
        return DenseOptions(
            model=manifest.model,
            vectors=(previous,) if manifest.given else (),
            kind=manifest.faiss.asked,
            max_tokens=manifest.max_tokens,
            backend=manifest.backend,
        )
    if not asked.vectors or _lasting(asked.model) != manifest.model:
        return asked
    if not manifest.given:
        raise InputError(
            f"the vectors of {previous.parent} were encoded from its texts by this model",
            "Leave --vectors out: new papers are encoded as the rest was.",
        )
    return replace(asked, vectors=(previous, *asked.vectors))


def encode_changed(
    folder: Path, store: SqliteStore, changed_ids: Sequence[str], options: DenseOptions, on_progress: Progress
) -> DenseOptions:
    """Encodes papers that changed, or were added, after vectors were given for the others.

    Args:
        folder: Where the vectors are written; a call with the same arguments resumes an interrupted one.
        store: All papers.
        changed_ids: Ids of the papers that may have changed, in order.
        options: The options of `renewal`; their model encodes the papers.
        on_progress: Called as the work goes on.

    Returns:
        The options with these vectors too; unchanged if the model cannot be loaded, or did not make the given vectors.
    """
    old = Vectors(options.vectors[0])
    try:
        encoder = TextEncoder.open(options)
    except (ModelError, BuildError):
        return options

    def is_new(paper: SearchableText) -> bool:
        row = int(old.rows([paper.paper_id])[0])
        return row < 0 or int(old.digests[row]) != text_digest(paper_text(paper))

    def changed(after: str) -> Iterator[SearchableText]:
        return filter(is_new, store.searchable_texts(after, changed_ids))

    sample = [paper for paper in itertools.islice(store.searchable_texts(), _SAMPLED) if not is_new(paper)]
    if not _has_made(encoder, old, sample[:_COMPARED]) or not any(map(_has_text, changed(""))):
        return options
    plan = {"encoder": encoder.identity, "max_tokens": encoder.max_tokens, "backend": options.backend}
    count = sum(1 for _ in changed(""))
    encode_papers(folder, changed, encoder, None, count, Journal(folder, plan), on_progress)
    return replace(options, vectors=(*options.vectors, folder))


def _has_made(encoder: PaperEncoder, vectors: Vectors, papers: Sequence[SearchableText]) -> bool:
    """Whether given vectors of some papers are about those that the encoder makes."""
    import numpy as np

    if encoder.dimension != vectors.manifest.dimension:
        return False
    if not papers:
        return True
    given = vectors.values[vectors.rows([paper.paper_id for paper in papers])].astype(np.float32)
    made = encoder.encode_papers(papers)
    return bool(np.mean(np.sum(given * made, axis=1)) >= _SAME)


def _files(source: Path) -> Sequence[Path]:
    return [source / name for name in INPUTS] if source.is_dir() else [source]


def opened(previous: Path | None) -> Vectors | None:
    """Vectors to take over from; None if they can no longer be used."""
    if previous is None or not has_vectors(previous):
        return None
    try:
        return Vectors(previous)
    except IndexUnusableError:
        return None


def is_same_model(manifest: DenseManifest, encoder: PaperEncoder, options: DenseOptions) -> bool:
    """Whether vectors were encoded as an encoder with some options does it."""
    return not manifest.given and (manifest.identity, manifest.max_tokens, manifest.backend, manifest.dimension) == (
        encoder.identity,
        encoder.max_tokens,
        options.backend,
        encoder.dimension,
    )


def taken_over(folder: Path, old: Vectors | None, checksums: dict[str, str], asked: Asked) -> FaissSettings | None:
    """The settings of the previous FAISS index, which is linked or copied, if it is over the same vectors."""
    if old is None or any(old.manifest.checksums.get(name) != value for name, value in checksums.items()):
        return None
    before = old.manifest.faiss
    if before.kind != choose(asked, len(old), old.manifest.dimension):
        return None
    (folder / FAISS).unlink(missing_ok=True)
    link(old.path / FAISS, folder / FAISS)
    return before.model_copy(update={"asked": asked})


def checksum(path: Path) -> str:
    """The checksum of a file, as in the manifest of vectors."""
    return file_digest(path, "blake2b")[:32]


def _lasting(model: str) -> str:
    """The model's name, valid from any working directory."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model


def encode_papers(
    folder: Path,
    texts: Texts,
    encoder: PaperEncoder,
    previous: Encoded | None,
    papers: int,
    journal: Journal,
    on_progress: Progress,
) -> int:
    """Writes ids and vectors of some papers, if they have a text; returns how many have none.

    Continues after the last chunk in the journal. `previous` holds vectors of the same model: those of unchanged
    texts are copied.
    """
    if journal.get("left_out") is None:
        journal.note(left_out=list_papers(folder, texts, _has_text, papers, on_progress))
    ids, digests = mapped(folder / "ids.npy"), mapped(folder / "digests.npy")
    done = int(journal.get("rows") or 0)
    after = ids[done - 1].decode() if done else ""
    with ArrayWriter(folder / "vectors.npy", "<f2", (encoder.dimension,), done) as vectors:
        remaining = filter(_has_text, texts(after))
        while chunk := list(itertools.islice(remaining, _CHUNK)):
            rows = slice(vectors.rows, vectors.rows + len(chunk))
            made = _Chunk(chunk, digests[rows], encoder)
            for told in made.fill(previous):
                on_progress("encoding", rows.start + told, len(ids))
            vectors.append(made.vectors)
            vectors.commit()
            journal.note(rows=vectors.rows)
    return int(journal.get("left_out"))


class _Chunk:
    """The vectors of some consecutive papers."""

    def __init__(self, papers: Sequence[SearchableText], digests: "NDArray[np.uint64]", encoder: PaperEncoder) -> None:
        import numpy as np

        self._papers, self._digests, self._encoder = papers, digests, encoder
        self.vectors = np.empty((len(papers), encoder.dimension), dtype=np.float16)

    def fill(self, previous: Encoded | None) -> Iterator[int]:
        """Makes all vectors; yields the number done so far."""
        todo = list(range(len(self._papers))) if previous is None else self._taken_over(previous)
        # Texts of similar length are encoded together.
        todo.sort(key=lambda position: (-len(paper_text(self._papers[position])), position))
        done = len(self._papers) - len(todo)
        for begin in range(0, len(todo), _PART):
            part = todo[begin : begin + _PART]
            self.vectors[part] = self._encoder.encode_papers([self._papers[position] for position in part])
            done += len(part)
            yield done
        yield done

    def _taken_over(self, previous: Encoded) -> list[int]:
        """Copies vectors that were encoded before; returns the positions of the rest."""
        import numpy as np

        rows = previous.rows([paper.paper_id for paper in self._papers])
        same = rows >= 0
        same[same] = previous.digests[rows[same]] == self._digests[same]
        self.vectors[same] = previous.values[rows[same]]
        return np.flatnonzero(~same).tolist()


def _has_text(paper: SearchableText) -> bool:
    return bool(paper.title or paper.abstract)
