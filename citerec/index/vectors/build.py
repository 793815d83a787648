"""Making the vectors of the papers of an index: given, from the cache, or encoded."""

import contextlib
import itertools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.errors import BuildError, InputError, ModelError, SourceError
from citerec.files.hashing import digest_of
from citerec.files.parallel import HERE, Parallelism
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index.arrays import mapped, rows_of
from citerec.index.columns import COLUMNS
from citerec.index.manifest import checksum
from citerec.index.vectors.cache import NAME as CACHE
from citerec.index.vectors.cache import VectorCache
from citerec.index.vectors.encode import DenseOptions as DenseOptions
from citerec.index.vectors.encode import OpenEncoder, PaperEncoder, TextEncoder, encode_papers, has_text, name_of
from citerec.index.vectors.faiss import build_faiss, choose
from citerec.index.vectors.given import dimension_of, find_given, take_given
from citerec.index.vectors.manifest import DenseManifest
from citerec.index.vectors.vectors import VALUES, blank_vectors, finish_vectors
from citerec.records import Paper
from citerec.version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GIVEN = "given.npy"
"""Which rows have a vector that was given, in a folder with such vectors."""

# Other models give unrelated vectors; other rounding, and somewhat different texts, give nearly the same.
_SAME = 0.9
_COMPARED, _SAMPLED = 16, 1000
_PART = 4096


def build_vectors(
    folder: Path,
    texts: Callable[[], Iterator[Paper]],
    fingerprint: str,
    options: DenseOptions,
    on_progress: Progress,
    *,
    ids: str = "ids.npy",
    open_encoder: OpenEncoder = TextEncoder.open,
    parallelism: Parallelism = HERE,
) -> DenseManifest:
    """Makes the vectors of all papers of a store in a folder, and what searches them.

    Args:
        folder: The folder in the next generation of an index, whose columns are there; it is made anew.
        texts: The papers, in order of id; or what else gets a vector, with its text as the title.
        fingerprint: Of the store.
        options: The encoder, or given vectors, and how they are searched.
        on_progress: Called as the work goes on.
        ids: The file with the ids of the papers, in order, among the columns; or of what else gets a vector.
        open_encoder: Opens the encoder.
        parallelism: Where papers are encoded.

    Raises:
        ModelError: The model cannot be found or loaded.
        SourceError: Given vectors are missing or broken, or no paper has a text.
        BuildError: Too many given vectors cannot be used, or FAISS is not installed.
    """
    import numpy as np

    shutil.rmtree(folder, ignore_errors=True)  # of an interrupted run
    folder.mkdir()
    row_ids = mapped(folder.parent / COLUMNS / ids)
    sources, is_given = find_given(options.vectors), bool(options.vectors or options.given)
    has_given = np.zeros(len(row_ids), bool)
    faults: dict[str, int] = {}

    def lacking() -> Iterator[tuple[int, Paper]]:
        return ((row, paper) for row, paper in enumerate(texts()) if not has_given[row] and has_text(paper))

    encoder: PaperEncoder | None = None
    if is_given:
        dimension = DenseManifest.read(options.given).dimension if options.given else dimension_of(sources)
        values = blank_vectors(folder, len(row_ids), dimension)
        if options.given:
            has_given = _keep_given(options.given, values, row_ids)
        if sources:
            faults, taken = take_given(values, row_ids, sources, options.max_bad, on_progress)
            has_given |= taken
        elif next(lacking(), None):
            encoder = _encoder_of(options, open_encoder, texts, values, has_given)
        np.save(folder / GIVEN, has_given)
    else:
        encoder = open_encoder(options)
        values = blank_vectors(folder, len(row_ids), encoder.dimension)
    key = encoder and digest_of([encoder.identity, options.backend, str(encoder.max_tokens)])[:16]
    with contextlib.closing(VectorCache(folder.parents[1] / CACHE, folder.name, key or "")) as cache:
        if encoder is not None:
            papers = (paper for _, paper in lacking())
            encode_papers(cache, papers, len(row_ids), encoder, options, open_encoder, parallelism, on_progress)
            for part in in_parts(lacking(), _PART):
                vectors = cache.get(name_of(paper) for _, paper in part)
                for row, paper in part:
                    values[row] = vectors[name_of(paper)]
        cache.drop_others()
    if not (count := finish_vectors(folder)):
        raise SourceError("no paper has a text to encode", "Give papers with titles or abstracts.")
    kind = choose(options.kind, *values.shape)
    if kind != "exact":
        build_faiss(folder, values, kind, on_progress)
    manifest = DenseManifest(
        citerec=__version__,
        model=_lasting(options.model),
        identity=None if is_given or encoder is None else encoder.identity,
        backend=options.backend,
        max_tokens=None if is_given or encoder is None else encoder.max_tokens,
        dimension=values.shape[1],
        count=count,
        without_vector=len(values) - count,
        given=is_given,
        faults=faults,
        store=fingerprint,
        asked=options.kind,
        kind_of_search=kind,
        checksums={path.name: checksum(path) for path in sorted(folder.iterdir())},
    )
    manifest.write(folder)
    return manifest


def renewal(previous: Path, asked: DenseOptions | None = None) -> DenseOptions:
    """The options that update vectors: those they were made with, or those that are asked for.

    Raises:
        IndexUnusableError: The vectors cannot be used.
        InputError: Vectors are given, and those before were encoded by the same model.
    """
    manifest = DenseManifest.read(previous)
    if asked is None:
        max_tokens, backend = manifest.max_tokens, manifest.backend
        asked = DenseOptions(manifest.model, kind=manifest.asked, max_tokens=max_tokens, backend=backend)
    if _lasting(asked.model) != manifest.model:
        return asked
    if asked.vectors and not manifest.given:
        raise InputError(
            f"the vectors of {previous.parent.parent} were encoded from its texts by this model",
            "Leave --vectors out: new papers are encoded as the rest was.",
        )
    return replace(asked, given=previous if manifest.given else None)


def _keep_given(before: Path, values: "NDArray[np.float16]", ids: "NDArray[np.bytes_]") -> "NDArray[np.bool_]":
    """Puts vectors that were given for a generation before into their rows; returns which these are, (papers,)."""
    import numpy as np

    old_ids, old_values = mapped(before.parent / COLUMNS / "ids.npy"), mapped(before / VALUES)
    has_given = np.zeros(len(ids), bool)
    for part in in_parts(np.flatnonzero(mapped(before / GIVEN)), _PART):
        rows = rows_of(ids, (key.decode() for key in old_ids[part].tolist()))
        values[rows[rows >= 0]] = old_values[part][rows >= 0]
        has_given[rows[rows >= 0]] = True
    return has_given


def _encoder_of(
    options: DenseOptions,
    open_encoder: OpenEncoder,
    texts: Callable[[], Iterator[Paper]],
    values: "NDArray[np.float16]",
    has_given: "NDArray[np.bool_]",
) -> PaperEncoder | None:
    """The encoder that made given vectors; None if it cannot be opened, or makes others of the first papers."""
    import numpy as np

    try:
        encoder = open_encoder(options)
    except (ModelError, BuildError):
        return None
    sample = ((row, paper) for row, paper in itertools.islice(enumerate(texts()), _SAMPLED) if has_given[row])
    some = dict(itertools.islice(sample, _COMPARED))
    if encoder.dimension != values.shape[1] or not some:
        return None
    cosines = np.sum(values[list(some)].astype(np.float32) * encoder.encode_papers(list(some.values())), axis=1)
    return encoder if np.mean(cosines) >= _SAME else None


def _lasting(model: str) -> str:
    """The model's name, valid from any working directory."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model
