"""Making the vectors of the papers of an index: given, from the cache, or encoded."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.errors import BuildError, InputError, ModelError, SourceError
from citerec.files.hashing import digest_of
from citerec.files.parallel import HERE, Parallelism
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index.arrays import mapped
from citerec.index.manifest import checksum
from citerec.index.vectors.cache import VectorCache
from citerec.index.vectors.encode import DenseOptions as DenseOptions
from citerec.index.vectors.encode import Encoding, OpenEncoder, TextEncoder, encode_papers, name_of
from citerec.index.vectors.faiss import FILE_NAME as FAISS
from citerec.index.vectors.faiss import build_faiss, choose
from citerec.index.vectors.given import dimension_of, find_given, take_given
from citerec.index.vectors.manifest import DenseManifest
from citerec.index.vectors.vectors import CODES, SCALES, VALUES, VectorWriter
from citerec.records import Paper
from citerec.version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Texts = Callable[[], Iterator[Paper]]

# Other models give unrelated vectors; other rounding, and somewhat different texts, give nearly the same.
_SAME = 0.9
_COMPARED, _SAMPLED = 16, 1000
_PART = 4096


def build_vectors(
    folder: Path,
    cache: VectorCache,
    texts: Texts,
    fingerprint: str,
    ids: Path,
    options: DenseOptions,
    on_progress: Progress,
    *,
    open_encoder: OpenEncoder = TextEncoder.open,
    parallelism: Parallelism = HERE,
) -> DenseManifest:
    """Makes the vectors of all papers of a store in a folder, and what searches them.

    Args:
        folder: The folder, which is empty.
        cache: Vectors that are there already.
        texts: The papers, in order of id; or what else gets a vector, with its text as the title.
        fingerprint: Of the store.
        ids: The file with the ids of the papers, in order; or of what else gets a vector.
        options: The encoder, or given vectors, and how they are searched.
        on_progress: Called as the work goes on.
        open_encoder: Opens the encoder.
        parallelism: Where papers are encoded.

    Raises:
        ModelError: The model cannot be found or loaded.
        SourceError: Given vectors are missing or broken, or no paper has a text.
        BuildError: Too many given vectors cannot be used, or FAISS is not installed.
    """
    whole = len(mapped(ids))
    sources, given = find_given(options.vectors), _key("given", _lasting(options.model))
    faults: dict[str, int] = {}
    only: NDArray[np.bool_] | None = None
    dimension = cache.dimension(given) if options.are_given else None
    if sources:
        dimension = dimension or dimension_of(sources)
        faults, taken = take_given(cache, given, mapped(ids), sources, dimension, options.max_bad, on_progress)
        only = None if options.are_given else taken
    is_given = bool(sources) or options.are_given
    keys: list[tuple[str, Callable[[Paper], bytes]]] = []
    if is_given:
        keys.append((given, lambda paper: paper.paper_id.encode()))
    encoding = None
    if not is_given or (not sources and next(_without(cache, given, texts), None) is not None):
        encoding = _encoding(options, open_encoder, parallelism, is_needed=not is_given)
    if encoding is not None:
        encoder = encoding.encoder
        key = _key(encoder.identity, options.backend, encoder.max_tokens)
        papers = texts() if not is_given else _without(cache, given, texts)
        if not is_given or _has_made(encoding, cache, given, texts):
            encode_papers(cache, key, papers, whole, encoding, on_progress)
            keys.append((key, name_of))
            dimension = encoder.dimension
    count = _write(folder, cache, keys, texts, only, dimension or 0)
    if not count:
        raise SourceError("no paper has a text to encode", "Give papers with titles or abstracts.")
    cache.drop_others()
    values = mapped(folder / VALUES)
    kind = choose(options.kind, *values.shape)
    files = [VALUES, CODES, SCALES]
    if kind != "exact":
        build_faiss(folder, values, kind, on_progress)
        files.append(FAISS)
    manifest = DenseManifest(
        citerec=__version__,
        model=_lasting(options.model),
        identity=None if is_given or encoding is None else encoding.encoder.identity,
        backend=options.backend,
        max_tokens=None if is_given or encoding is None else encoding.encoder.max_tokens,
        dimension=values.shape[1],
        count=count,
        without_vector=len(values) - count,
        given=is_given,
        faults=faults,
        store=fingerprint,
        asked=options.kind,
        kind_of_search=kind,
        checksums={name: checksum(folder / name) for name in files},
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
    if asked is not None and _lasting(asked.model) != manifest.model:
        return asked
    if asked is not None and asked.vectors:
        if not manifest.given:
            raise InputError(
                f"the vectors of {previous.parent.parent} were encoded from its texts by this model",
                "Leave --vectors out: new papers are encoded as the rest was.",
            )
        return replace(asked, are_given=True)
    return DenseOptions(
        model=manifest.model,
        kind=asked.kind if asked else manifest.asked,
        max_tokens=asked.max_tokens if asked else manifest.max_tokens,
        backend=asked.backend if asked else manifest.backend,
        are_given=manifest.given,
    )


def _key(*what: Any) -> str:
    """The key of the vectors that something makes."""
    return digest_of([str(one) for one in what])[:16]


def _encoding(
    options: DenseOptions, open_encoder: OpenEncoder, parallelism: Parallelism, *, is_needed: bool
) -> Encoding | None:
    """The encoder; None if it is not needed and cannot be opened."""
    try:
        return Encoding(options, open_encoder, parallelism)
    except (ModelError, BuildError):
        if is_needed:
            raise
        return None


def _without(cache: VectorCache, given: str, texts: Texts) -> Iterator[Paper]:
    """The papers of a store without a given vector."""
    for part in in_parts(texts(), _PART):
        known = cache.get(given, (paper.paper_id.encode() for paper in part))
        yield from (paper for paper in part if paper.paper_id.encode() not in known)


def _has_made(encoding: Encoding, cache: VectorCache, given: str, texts: Texts) -> bool:
    """Whether given vectors of some papers are about those that the encoder makes."""
    import numpy as np

    sample = list(itertools.islice(texts(), _SAMPLED))
    known = cache.get(given, (paper.paper_id.encode() for paper in sample))
    papers = [paper for paper in sample if paper.paper_id.encode() in known][:_COMPARED]
    if encoding.encoder.dimension != cache.dimension(given) or not papers:
        return False
    theirs = np.stack([known[paper.paper_id.encode()] for paper in papers]).astype(np.float32)
    return bool(np.mean(np.sum(theirs * encoding.encoder.encode_papers(papers), axis=1)) >= _SAME)


def _write(
    folder: Path,
    cache: VectorCache,
    keys: Sequence[tuple[str, Callable[[Paper], bytes]]],
    texts: Texts,
    only: "NDArray[np.bool_] | None",
    dimension: int,
) -> int:
    """Writes the vector of each paper, of the first key that has one; returns how many have one.

    `only` says which papers may have one, (papers,); by default all may.
    """
    import numpy as np

    count = done = 0
    with VectorWriter(folder, dimension) as writer:
        for part in in_parts(texts(), _PART):
            vectors, missing = np.zeros((len(part), dimension), np.float16), set(range(len(part)))
            if only is not None:
                missing = set(np.flatnonzero(only[done : done + len(part)]).tolist())
            for key, name in keys:
                known = cache.get(key, (name(part[at]) for at in missing))
                for at in sorted(missing):
                    if (vector := known.get(name(part[at]))) is not None:
                        vectors[at] = vector
                        missing.remove(at)
                        count += 1
            writer.append(vectors)
            done += len(part)
    return count


def _lasting(model: str) -> str:
    """The model's name, valid from any working directory."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model
