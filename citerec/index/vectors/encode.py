"""Encoding papers part by part: a part is encoded wholly in one place, and any of them may come first."""

import contextlib
import functools
import hashlib
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from citerec.errors import ModelError
from citerec.files.parallel import HERE, Parallelism, available_processors, outcomes_of
from citerec.files.parts import in_parts
from citerec.files.progress import Progress
from citerec.index.vectors.cache import VectorCache
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
        vectors: Vectors that were made elsewhere by that model, in place of encoding: docs/retrieval.md.
        kind: How they are searched: `exact` by numpy, or the kind of a FAISS index; `auto` chooses by their number.
        max_tokens: How many tokens of a text are read; None for the number that the model's authors set.
        max_bad: Share of unusable given vectors, 0 to 1, above which the work stops.
        given: A folder of vectors of which some were given by the same model. These are used again, beside `vectors`;
            if there are none of these, other papers are encoded, if the model is there and makes such vectors.
    """

    model: str
    vectors: tuple[Path, ...] = ()
    kind: Asked = "auto"
    max_tokens: int | None = 192
    backend: str = "torch"
    max_bad: float = 0.05
    given: Path | None = None


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


def paper_text(paper: Paper) -> str:
    """The text of a paper that is encoded: its title, and its abstract if it has one."""
    if not paper.abstract:
        return paper.title
    return f"{paper.title}. {paper.abstract}" if paper.title else paper.abstract


def name_of(paper: Paper) -> bytes:
    """The name of the vector of a paper's text: 16 bytes of its BLAKE2 digest."""
    return hashlib.blake2b(paper_text(paper).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def has_text(paper: Paper) -> bool:
    """Whether a paper gets a vector."""
    return bool(paper.title or paper.abstract)


def encode_papers(
    cache: VectorCache,
    papers: Iterable[Paper],
    whole: int,
    encoder: PaperEncoder,
    options: DenseOptions,
    open_encoder: OpenEncoder,
    parallelism: Parallelism,
    on_progress: Progress,
) -> None:
    """Encodes those of some papers whose vectors the cache lacks.

    Args:
        cache: Where the vectors are kept, part by part.
        papers: The papers; those without a text are left out.
        whole: How many there are, about.
        encoder: The encoder, open.
        options: Name the encoder.
        open_encoder: Opens it in other processes.
        parallelism: Where papers are encoded: here, where an encoder uses all processors or the GPU, or elsewhere.
        on_progress: Called as the work goes on.
    """
    done = 0

    def lacking() -> Iterator[Paper]:
        nonlocal done
        for part in in_parts(filter(has_text, papers), _PART):
            by_name = {name_of(paper): paper for paper in part}  # equal texts have one vector
            known = cache.get(by_name)
            lacking = [paper for name, paper in by_name.items() if name not in known]
            done += len(part) - len(lacking)
            yield from lacking

    opened: Callable[[], PaperEncoder] = lambda: encoder  # noqa: E731
    if parallelism != HERE:
        opened = functools.partial(_opened, options, open_encoder, encoder.identity, threads_for(parallelism))
    # Texts of similar length are encoded together.
    parts = (sorted(part, key=lambda one: -len(paper_text(one))) for part in in_parts(lacking(), _PART))
    work, gpus = functools.partial(_encoded, opened), int(ENCODERS[options.backend].on_gpu)
    with contextlib.closing(outcomes_of(work, parts, parallelism, gpus=gpus)) as outcomes:
        for _, (names, vectors) in outcomes:
            cache.put(names, vectors)
            done += len(names)
            on_progress("encoding", min(done, whole), whole)


def threads_for(parallelism: Parallelism) -> int:
    """How many threads each process has: those of one machine share its processors. Ray sees to that by itself."""
    processes = parallelism if isinstance(parallelism, int) else available_processors()
    return max(1, available_processors() // processes)


@functools.lru_cache(maxsize=1)
def _opened(options: DenseOptions, open_encoder: OpenEncoder, identity: str, threads: int) -> PaperEncoder:
    """The encoder in another process, kept for all parts; a ModelError if it is not the one with an identity."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # before torch is imported
    encoder = open_encoder(options)
    if encoder.identity != identity:
        raise ModelError(
            f"the model {options.model!r} on {platform.node()} is another one than here",
            "Install the same model on all machines.",
        )
    return encoder


def _encoded(opened: Callable[[], PaperEncoder], papers: Sequence[Paper]) -> "tuple[list[bytes], NDArray[np.float16]]":
    """The names and the vectors of the papers of a part, (papers, dimension)."""
    import numpy as np

    return [*map(name_of, papers)], opened().encode_papers(papers).astype(np.float16)
