"""Vectors of papers made here: chunk by chunk, each kept once it is done; texts encoded before are not again."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from citerec.corpus.store import PaperStore, SearchableText
from citerec.groundwork.progress import Progress
from citerec.groundwork.resume import Journal
from citerec.retrieve.dense.files import ArrayWriter, mapped
from citerec.retrieve.dense.listing import list_papers, paper_text
from citerec.retrieve.dense.vectors import Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Two minutes of work on a slow processor is what a kill may cost; fewer texts find fewer others of like length.
_CHUNK = 4096
_PART = 512


class TextEncoder(Protocol):
    """Turns texts into vectors: `citerec.models.encoder.Encoder`."""

    @property
    def dimension(self) -> int:
        """Of its vectors."""

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """The vectors of some texts, (texts, dimension), each of length one."""


def encode_papers(
    folder: Path,
    store: PaperStore,
    encoder: TextEncoder,
    previous: Vectors | None,
    papers: int,
    journal: Journal,
    on_progress: Progress,
) -> int:
    """Writes ids and vectors of all papers with a text; returns how many papers have none.

    Goes on after the last chunk that the journal notes. `previous` holds vectors of the same model: those of unchanged
    texts are copied.
    """
    if journal.get("left_out") is None:
        journal.note(left_out=list_papers(folder, store, _has_text, papers, on_progress))
    ids, digests = mapped(folder / "ids.npy"), mapped(folder / "digests.npy")
    done = int(journal.get("rows") or 0)
    after = ids[done - 1].decode() if done else ""
    with ArrayWriter(folder / "vectors.npy", "<f2", (encoder.dimension,), done) as vectors:
        for chunk in _chunks(filter(_has_text, store.searchable_texts(after))):
            rows = slice(vectors.rows, vectors.rows + len(chunk))
            made = _Chunk(chunk, digests[rows], encoder)
            for told in made.fill(previous):
                on_progress("encoding", rows.start + told, len(ids))
            vectors.append(made.vectors)
            vectors.commit()
            journal.note(rows=vectors.rows)
    return int(journal.get("left_out"))


class _Chunk:
    """The vectors of some papers that follow one another."""

    def __init__(self, papers: Sequence[SearchableText], digests: "NDArray[np.uint64]", encoder: TextEncoder) -> None:
        import numpy as np

        self._papers, self._digests, self._encoder = papers, digests, encoder
        self.vectors = np.empty((len(papers), encoder.dimension), dtype=np.float16)

    def fill(self, previous: Vectors | None) -> Iterator[int]:
        """Makes them all; yields how many are there."""
        todo = list(range(len(self._papers))) if previous is None else self._taken_over(previous)
        texts = [paper_text(self._papers[position]) for position in todo]
        order = sorted(range(len(todo)), key=lambda at: (-len(texts[at]), at))
        done = len(self._papers) - len(todo)
        for begin in range(0, len(order), _PART):
            part = order[begin : begin + _PART]
            self.vectors[[todo[at] for at in part]] = self._encoder.encode([texts[at] for at in part])
            done += len(part)
            yield done
        yield done

    def _taken_over(self, previous: Vectors) -> list[int]:
        """Copies what was encoded before; returns the positions of the rest."""
        import numpy as np

        rows = previous.rows([paper.paper_id for paper in self._papers])
        same = rows >= 0
        same[same] = previous.digests[rows[same]] == self._digests[same]
        self.vectors[same] = previous.values[rows[same]]
        return np.flatnonzero(~same).tolist()


def _has_text(paper: SearchableText) -> bool:
    return bool(paper.title or paper.abstract)


def _chunks(papers: Iterable[SearchableText]) -> Iterator[list[SearchableText]]:
    remaining = iter(papers)
    while chunk := list(itertools.islice(remaining, _CHUNK)):
        yield chunk
