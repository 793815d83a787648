"""Building a folder of vectors from a paper store; an interrupted build is resumed."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import PaperStore, SearchableText
from citerec.errors import BuildError, IndexUnusableError, InputError, ModelError, SourceError
from citerec.files.hashing import file_digest, identity
from citerec.files.parallel import HERE, Parallelism
from citerec.files.progress import Progress
from citerec.files.resume import Journal
from citerec.files.writing import link
from citerec.retrieve.dense.encode import DenseOptions as DenseOptions
from citerec.retrieve.dense.encode import Encoding, OpenEncoder, PaperEncoder, TextEncoder, encode_papers, has_text
from citerec.retrieve.dense.given import arrange_given, find_given
from citerec.retrieve.dense.kinds import FILE_NAME as FAISS
from citerec.retrieve.dense.kinds import Asked, build_faiss, choose
from citerec.retrieve.dense.listing import paper_text, text_digest
from citerec.retrieve.dense.manifest import FILES, DenseManifest, FaissSettings, has_vectors
from citerec.retrieve.dense.vectors import Vectors
from citerec.version import __version__

# Other models give unrelated vectors; other rounding, and somewhat different texts, give nearly the same.
_SAME = 0.9
_COMPARED, _SAMPLED = 16, 1000
INPUTS = ("ids.npy", "vectors.npy")
"""The files over which the FAISS index is built."""


def build_dense(
    folder: Path,
    store: PaperStore,
    fingerprint: str,
    papers: int,
    options: DenseOptions,
    *,
    previous: Path | None = None,
    open_encoder: OpenEncoder = TextEncoder.open,
    parallelism: Parallelism = HERE,
    on_progress: Progress,
) -> DenseManifest:
    """Makes the vectors of all papers of a store, and the FAISS index over them, in a folder.

    A call with the same arguments resumes an interrupted build, wherever it is done. Texts that `previous` has encoded
    with the same model are not encoded again. Errors are those of `encode_index`.
    """
    sources = find_given(options.vectors)
    encoding = None if sources else Encoding(options, open_encoder, parallelism)
    encoder = encoding.encoder if encoding else None
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
    if encoding is None:
        given = arrange_given(folder, store.searchable_texts, sources, options.max_bad, papers, journal, on_progress)
        dimension, left_out, faults = given.dimension, given.left_out, given.faults
    else:
        same = old if old and is_same_model(old.manifest, encoding.encoder, options) else None
        dimension = encoding.encoder.dimension
        left_out = encode_papers(folder, store.searchable_texts, encoding, same, papers, journal, on_progress)
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
        given=encoding is None,
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
    folder: Path,
    store: SqliteStore,
    changed_ids: Sequence[str],
    options: DenseOptions,
    on_progress: Progress,
    parallelism: Parallelism = HERE,
) -> DenseOptions:
    """Encodes papers that changed, or were added, after vectors were given for the others.

    Args:
        folder: Where the vectors are written; a call with the same arguments resumes an interrupted one.
        store: All papers.
        changed_ids: Ids of the papers that may have changed, in order.
        options: The options of `renewal`; their model encodes the papers.
        on_progress: Called as the work goes on.
        parallelism: Where papers are encoded.

    Returns:
        The options with these vectors too; unchanged if the model cannot be loaded, or did not make the given vectors.
    """
    old = Vectors(options.vectors[0])
    try:
        encoding = Encoding(options, parallelism=parallelism)
    except (ModelError, BuildError):
        return options
    encoder = encoding.encoder

    def is_new(paper: SearchableText) -> bool:
        row = int(old.rows([paper.paper_id])[0])
        return row < 0 or int(old.digests[row]) != text_digest(paper_text(paper))

    def changed(after: str) -> Iterator[SearchableText]:
        return filter(is_new, store.searchable_texts(after, changed_ids))

    sample = [paper for paper in itertools.islice(store.searchable_texts(), _SAMPLED) if not is_new(paper)]
    if not _has_made(encoder, old, sample[:_COMPARED]) or not any(map(has_text, changed(""))):
        return options
    plan = {"encoder": encoder.identity, "max_tokens": encoder.max_tokens, "backend": options.backend}
    count = sum(1 for _ in changed(""))
    encode_papers(folder, changed, encoding, None, count, Journal(folder, plan), on_progress)
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
