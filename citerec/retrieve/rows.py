"""Papers as numbers: the row of a paper is the rank of its id among all ids of the index, by their bytes."""

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError
from citerec.retrieve.dense.files import ArrayWriter, mapped, rows_of, write_ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROWS = "rows"
"""The folder of the arrays, beside Lucene's folders."""

_PART = 1 << 16
_LINES = "ids.txt"


class PaperRows:
    """The ids of an index's papers, in order. Safe to use from several threads.

    Attributes:
        ids: The ids, bytes, (papers,); memory-mapped.
        has_abstract: Which papers have an abstract, (papers,); the same.
    """

    def __init__(self, ids: "NDArray[np.bytes_]", has_abstract: "NDArray[np.bool_]") -> None:
        self.ids = ids
        self.has_abstract = has_abstract

    @classmethod
    def open(cls, lucene: Path) -> "PaperRows":
        """The rows of an index, given its folder of Lucene's indexes.

        Raises:
            IndexUnusableError: They are missing or damaged.
        """
        return cls(_opened(lucene, "ids"), _opened(lucene, "has_abstract"))

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, paper_ids: Sequence[str]) -> "NDArray[np.int64]":
        """The rows of some papers; -1 for those that the index lacks."""
        return rows_of(self.ids, paper_ids)

    def paper_ids(self, rows: "NDArray[np.int64]") -> list[str]:
        """The ids of some rows."""
        return [key.decode() for key in self.ids[rows].tolist()]


def rows_of_documents(lucene: Path, name: str) -> "NDArray[np.int32]":
    """The papers' rows of the documents of one of Lucene's indexes, `papers` or `citances`, (documents,).

    Raises:
        IndexUnusableError: They are missing or damaged.
    """
    return _opened(lucene, name)


def write_rows(store: PaperStore, lucene: Path) -> None:
    """Writes the rows of a store's papers, and those of Lucene's documents, beside Lucene's indexes."""
    import numpy as np

    from citerec.retrieve.lucene.documents import document_ids

    folder = lucene / ROWS
    shutil.rmtree(folder, ignore_errors=True)  # an index that is added to has links: nothing is written into them
    folder.mkdir()
    papers = store.ids_and_abstracts()
    with (folder / _LINES).open("wb") as ids, ArrayWriter(folder / "has_abstract.npy", "?") as has_abstract:
        while part := list(itertools.islice(papers, _PART)):
            ids.writelines(paper_id.encode() + b"\n" for paper_id, _ in part)
            has_abstract.append(np.array([flag for _, flag in part], bool))
    write_ids(folder / _LINES, folder / "ids.npy")
    (folder / _LINES).unlink()
    sorted_ids = mapped(folder / "ids.npy")
    for name in ("papers", "citances"):
        if (lucene / name).is_dir():
            with ArrayWriter(folder / f"{name}.npy", "<i4") as rows:
                for ids_of_part in document_ids(lucene / name):
                    rows.append(rows_of(sorted_ids, ids_of_part))


def _opened(lucene: Path, name: str) -> "NDArray[Any]":
    path = lucene / ROWS / f"{name}.npy"
    try:
        return mapped(path)
    except IndexUnusableError as error:
        index = lucene.parent
        raise IndexUnusableError(
            error.message, f"Build the index again from its sources: citerec index build … --out {index}"
        ) from error
