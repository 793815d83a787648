"""Encoding papers part by part: a part is encoded wholly in one place, and any of them may come first."""

import contextlib
import functools
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from citerec.errors import ModelError
from citerec.files.parallel import HERE, Parallelism, available_processors, outcomes_of
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index.vectors.cache import VectorCache, digest_of_text
from citerec.index.vectors.manifest import Asked
from citerec.models.encoder import ENCODERS, Encoder
from citerec.records import Paper

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Rows of a part. A kill costs each worker half a minute on a slow processor; in smaller parts, fewer texts have similar
# lengths: of abstracts, torch reads 0.4 % more padding than in parts of 4,096.
_PART = 1024


@dataclass(frozen=True, slots=True)
class DenseOptions:
    """How vectors are made and searched.

    Attributes:
        model: The encoder of the papers, and later of the queries: a folder, or a name.
        vectors: Vectors that were made elsewhere by that model, in place of encoding: docs/storage.md.
        kind: How they are searched: `exact` by numpy, or the kind of a FAISS index; `auto` chooses by their number.
        max_tokens: How many tokens of a text are read; None for the number that the model's authors set.
        max_bad: Share of unusable given vectors, 0 to 1, above which the work stops.
        are_given: Whether the vectors that the index has were given by the same model. They are used again, beside
            `vectors`; papers without one are encoded, if the model is there and makes such vectors.
    """

    model: str
    vectors: tuple[Path, ...] = ()
    kind: Asked = "auto"
    max_tokens: int | None = 192
    backend: str = "torch"
    max_bad: float = 0.05
    are_given: bool = False


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

    def encode_papers(self, papers: Sequence[Paper], /) -> "NDArray[np.float32]":
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

    def encode_papers(self, papers: Sequence[Paper]) -> "NDArray[np.float32]":
        """As for `PaperEncoder`."""
        return self._encoder.encode([paper_text(paper) for paper in papers])


OpenEncoder = Callable[[DenseOptions], PaperEncoder]
"""Opens the encoder that some options name: a function of a module, or a method of a class."""


class Encoding:
    """An open encoder, and where it is used. Pickled, it is a note how to open the same encoder elsewhere.

    Args:
        options: Name the encoder.
        open_encoder: Opens it; errors are its own.
        parallelism: Where papers are encoded. By default here: an encoder uses all processors, or the GPU.
    """

    def __init__(
        self, options: DenseOptions, open_encoder: OpenEncoder = TextEncoder.open, parallelism: Parallelism = HERE
    ) -> None:
        self.encoder = open_encoder(options)
        self.parallelism = parallelism
        self.gpus = int(ENCODERS[options.backend].on_gpu)
        # Processes of one machine share its processors; Ray sees to that by itself.
        processes = parallelism if isinstance(parallelism, int) else available_processors()
        threads = max(1, available_processors() // processes)
        self._elsewhere = _Elsewhere(options, open_encoder, self.encoder.identity, threads)

    def __reduce__(self) -> Any:
        return _Elsewhere, tuple(self._elsewhere)


class _Elsewhere(NamedTuple):
    """How another process opens an encoder: its identity here, and the threads it may use there."""

    options: DenseOptions
    open_encoder: OpenEncoder
    identity: str
    threads: int

    @property
    def encoder(self) -> PaperEncoder:
        """The encoder, opened with the first part and kept for all others; a ModelError if it has other weights."""
        return _opened(self)


@functools.lru_cache(maxsize=1)
def _opened(elsewhere: _Elsewhere) -> PaperEncoder:
    options, open_encoder, identity, threads = elsewhere
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # before torch is imported
    encoder = open_encoder(options)
    if encoder.identity != identity:
        raise ModelError(
            f"the model {options.model!r} on {platform.node()} is another one than here",
            "Install the same model on all machines.",
        )
    return encoder


def paper_text(paper: Paper) -> str:
    """The text of a paper that is encoded: its title, and its abstract if it has one."""
    if not paper.abstract:
        return paper.title
    return f"{paper.title}. {paper.abstract}" if paper.title else paper.abstract


def name_of(paper: Paper) -> bytes:
    """The name of the vector of a paper's text."""
    return digest_of_text(paper_text(paper))


def has_text(paper: Paper) -> bool:
    """Whether a paper gets a vector."""
    return bool(paper.title or paper.abstract)


def encode_papers(
    cache: VectorCache,
    key: str,
    papers: Iterable[Paper],
    whole: int,
    encoding: Encoding,
    on_progress: Progress,
) -> None:
    """Encodes those of some papers whose vectors the cache lacks.

    Args:
        cache: Where the vectors are kept, part by part.
        key: What makes them.
        papers: The papers; those without a text are left out.
        whole: How many there are, about.
        encoding: The encoder.
        on_progress: Called as the work goes on.
    """
    done = 0

    def missing() -> Iterator[list[Paper]]:
        nonlocal done
        waiting: list[Paper] = []
        for part in in_parts(filter(has_text, papers), _PART):
            known = cache.get(key, map(name_of, part))
            lacking = [paper for paper in part if name_of(paper) not in known]
            done += len(part) - len(lacking)
            waiting += lacking
            while len(waiting) >= _PART:
                yield _by_length(waiting[:_PART])
                waiting = waiting[_PART:]
        if waiting:
            yield _by_length(waiting)

    work = functools.partial(_encoded, encoding)
    with contextlib.closing(outcomes_of(work, missing(), encoding.parallelism, gpus=encoding.gpus)) as outcomes:
        for _, (names, vectors) in outcomes:
            cache.put(key, names, vectors)
            done += len(names)
            on_progress("encoding", min(done, whole), whole)


def _by_length(papers: list[Paper]) -> list[Paper]:
    """Texts of similar length are encoded together."""
    return sorted(papers, key=lambda paper: -len(paper_text(paper)))


def _encoded(encoding: Encoding | _Elsewhere, papers: Sequence[Paper]) -> "tuple[list[bytes], NDArray[np.float16]]":
    """The names and the vectors of the papers of a part, (papers, dimension)."""
    import numpy as np

    return [*map(name_of, papers)], encoding.encoder.encode_papers(papers).astype(np.float16)
