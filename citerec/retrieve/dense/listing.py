"""Lists papers that get a vector, with the attributes for filters: one pass over the store, before any encoding."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from citerec.corpus.store import SearchableText
from citerec.files.progress import Progress
from citerec.records import Paper
from citerec.retrieve.dense.files import ArrayWriter, write_ids

UNKNOWN = -1
"""Stands for an unknown year or count."""

COLUMNS = {"digests.npy": "<u8", "years.npy": "<i4", "citations.npy": "<i4"}
"""Arrays with a number per paper, beside `ids.npy`, and their types."""

Texts = Callable[[str], Iterator[SearchableText]]
"""The papers with an id above the given one, in order of id, as `PaperStore.searchable_texts` has them."""

_PART = 10_000


def paper_text(paper: SearchableText | Paper) -> str:
    """The text of a paper that is encoded: its title, and its abstract if it has one."""
    if not paper.abstract:
        return paper.title
    return f"{paper.title}. {paper.abstract}" if paper.title else paper.abstract


def text_digest(text: str) -> int:
    """Tells whether a text is still the one that was encoded: 8 bytes of its BLAKE2 digest."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def list_papers(
    folder: Path, texts: Texts, listed: Callable[[SearchableText], bool], papers: int, on_progress: Progress
) -> int:
    """Writes ids, digests of the texts, years and citation counts of those papers that are `listed`, in order of id.

    Returns how many were left out.
    """
    import numpy as np

    lines = folder / "ids.txt"
    left_out = 0
    with contextlib.ExitStack() as stack:
        ids = stack.enter_context(lines.open("wb"))
        columns = [stack.enter_context(ArrayWriter(folder / name, dtype)) for name, dtype in COLUMNS.items()]
        part: list[SearchableText] = []

        def write() -> None:
            ids.writelines(paper.paper_id.encode() + b"\n" for paper in part)
            values = (
                [text_digest(paper_text(paper)) for paper in part],
                [_known(paper.year) for paper in part],
                [_known(paper.citation_count) for paper in part],
            )
            for column, numbers in zip(columns, values, strict=True):
                column.append(np.array(numbers, dtype=column.dtype))
            part.clear()

        for seen, paper in enumerate(texts(""), 1):
            if listed(paper):
                part.append(paper)
            else:
                left_out += 1
            if seen % _PART == 0:
                write()
                on_progress("listing papers", seen, papers)
        write()
    write_ids(lines, folder / "ids.npy")
    lines.unlink()
    return left_out


def _known(number: int | None) -> int:
    return UNKNOWN if number is None else number
