"""Encoding papers part by part: a part is encoded wholly in one place, and any of them may come first."""

import contextlib
import functools
import itertools
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from citerec.corpus.store import SearchableText
from citerec.errors import ModelError
from citerec.files.parallel import HERE, Parallelism, available_processors, outcomes_of
from citerec.files.progress import Progress
from citerec.files.resume import Journal
from citerec.models.encoder import ENCODERS, Encoder
from citerec.retrieve.dense.files import ArrayWriter, mapped
from citerec.retrieve.dense.kinds import Asked
from citerec.retrieve.dense.listing import Texts, list_papers, paper_text

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
"""Opens the encoder that some options name: a function of a module, or a method of a class."""


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


def encode_papers(
    folder: Path,
    texts: Texts,
    encoding: Encoding,
    previous: Encoded | None,
    papers: int,
    journal: Journal,
    on_progress: Progress,
) -> int:
    """Writes ids and vectors of some papers, if they have a text; returns how many have none.

    A part whose vectors are on the disk is noted in the journal, and not encoded again. `previous` holds vectors of the
    same model: those of unchanged texts are copied. All executors write the same bytes.
    """
    if journal.get("left_out") is None:
        journal.note(left_out=list_papers(folder, texts, has_text, papers, on_progress))
    dimension = encoding.encoder.dimension
    parts = _Parts(folder, texts, previous, dimension, journal)
    with ArrayWriter(folder / "vectors.npy", "<f2", (dimension,), parts.rows) as vectors:
        work = functools.partial(_vectors, encoding)
        made = outcomes_of(work, parts, encoding.parallelism, gpus=encoding.gpus)
        with contextlib.closing(made):
            for place, found in made:
                part = parts.take(place, found)
                vectors.put(part.begin, part.vectors)
                vectors.commit()
                parts.finish(part)
                on_progress("encoding", parts.done, parts.rows)
    return int(journal.get("left_out"))


def has_text(paper: SearchableText) -> bool:
    """Whether a paper gets a vector."""
    return bool(paper.title or paper.abstract)


def _vectors(encoding: Encoding | _Elsewhere, papers: Sequence[SearchableText]) -> "NDArray[np.float16]":
    """The vectors of the papers of a part, (papers, dimension)."""
    import numpy as np

    return encoding.encoder.encode_papers(papers).astype(np.float16) if papers else np.empty((0, 0), np.float16)


@dataclass(slots=True)
class _Part:
    """A part that is being encoded: `todo` are the positions of the papers to encode."""

    begin: int
    vectors: "NDArray[np.float16]"
    todo: list[int]


class _Parts(Sequence[list[SearchableText]]):
    """The parts that are not finished: for each its papers to encode, which are read when they are asked for.

    Attributes:
        rows: Papers of all parts.
        done: How many of them have a vector.
    """

    def __init__(self, folder: Path, texts: Texts, previous: Encoded | None, dimension: int, journal: Journal) -> None:
        self._ids, self._digests = mapped(folder / "ids.npy"), mapped(folder / "digests.npy")
        self._texts, self._previous, self._dimension, self._journal = texts, previous, dimension, journal
        first, ahead = journal.get("parts") or (0, [])
        self._first, self._ahead = int(first), set(map(int, ahead))
        self.rows = len(self._ids)
        self._begins = [
            begin
            for number, begin in enumerate(range(0, self.rows, _PART))
            if number >= self._first and number not in self._ahead
        ]
        self.done = self.rows - sum(min(_PART, self.rows - begin) for begin in self._begins)
        self._begun: dict[int, _Part] = {}
        self._reading: Iterator[SearchableText] = iter(())
        self._read = -1

    def __len__(self) -> int:
        return len(self._begins)

    def __getitem__(self, place: Any) -> Any:
        import numpy as np

        begin = self._begins[place]
        if begin != self._read:  # parts before it are finished: it does not follow on what was read last
            self._reading = filter(has_text, self._texts(self._ids[begin - 1].decode() if begin else ""))
        papers = list(itertools.islice(self._reading, _PART))
        self._read = begin + len(papers)
        part = _Part(begin, np.empty((len(papers), self._dimension), np.float16), list(range(len(papers))))
        if self._previous is not None:
            part.todo = self._taken_over(part, papers, self._previous)
        # Texts of similar length are encoded together.
        part.todo.sort(key=lambda position: (-len(paper_text(papers[position])), position))
        self._begun[place] = part
        self.done += len(papers) - len(part.todo)
        return [papers[position] for position in part.todo]

    def take(self, place: int, made: "NDArray[np.float16]") -> _Part:
        """Takes the vectors of a part; returns the part."""
        part = self._begun.pop(place)
        if len(made):
            part.vectors[part.todo] = made
        self.done += len(made)
        return part

    def finish(self, part: _Part) -> None:
        """Notes in the journal that a part is on the disk: the first that is not, and those after it that are."""
        self._ahead.add(part.begin // _PART)
        while self._first in self._ahead:
            self._ahead.remove(self._first)
            self._first += 1
        self._journal.note(parts=[self._first, sorted(self._ahead)])

    def _taken_over(self, part: _Part, papers: Sequence[SearchableText], previous: Encoded) -> list[int]:
        """Copies vectors that were encoded before; returns the positions of the rest."""
        import numpy as np

        rows = previous.rows([paper.paper_id for paper in papers])
        same = rows >= 0
        same[same] = previous.digests[rows[same]] == self._digests[part.begin : part.begin + len(papers)][same]
        part.vectors[same] = previous.values[rows[same]]
        return np.flatnonzero(~same).tolist()
