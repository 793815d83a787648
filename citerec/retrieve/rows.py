"""Papers as numbers: the row of a paper is the rank of its id among all ids of the index, by their bytes."""

import contextlib
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from citerec.corpus.store import PaperStore
from citerec.errors import IndexUnusableError
from citerec.files.parts import in_parts
from citerec.records import Filters
from citerec.retrieve.columns import COLUMNS, PaperColumns
from citerec.retrieve.dense.files import ArrayWriter, mapped, rows_of, write_ids
from citerec.retrieve.dense.listing import text_digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.retrieve.candidates import Rows

ROWS = "rows"
"""The folder of the arrays, beside Lucene's folders."""

_PAIRS = {"citing": "<i4", "citing_years": "<i2", "citing_digests": "<u8"}
_CITING = {"citing_begins": "<i8", **_PAIRS}
"""Arrays of `CitingPapers` and their types; `_PAIRS` have a number for each pair."""
_UNKNOWN_YEAR = 9999  # later than every year: nothing of it is known to be old enough

_PART, _BATCH = 1 << 16, 1 << 12
_LINES = "ids.txt"


class CitingPapers:
    """Which papers cite each paper in sentences of the index, and when. Safe to use from several threads.

    Args:
        begins: Where the citing papers of each row begin, (papers + 1,).
        rows: Their rows, (pairs,); -1 for those that the index lacks.
        years: Their years, (pairs,); unknown ones are later than all others.
        digests: Digests of their names, (pairs,): `citing_name`.
    """

    def __init__(
        self,
        begins: "NDArray[np.int64]",
        rows: "NDArray[np.int32]",
        years: "NDArray[np.int16]",
        digests: "NDArray[np.uint64]",
    ) -> None:
        self._begins, self._rows, self._years, self._digests = begins, rows, years, digests

    def of(self, rows: "Rows", filters: Filters) -> "tuple[Rows, Rows]":
        """What may be known of the citing papers of some rows: places in `rows`, and rows of citing papers.

        Those that are newer than `filters.as_of_year`, or of an unknown year if one is given, are left out, and so is
        `filters.citing_ids`. Both arrays are (pairs,); -1 stands for a citing paper that the index lacks.
        """
        import numpy as np

        begins = self._begins[rows]
        counts = self._begins[rows + 1] - begins
        places = np.repeat(np.arange(len(rows)), counts)
        at = np.arange(len(places)) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
        known = np.ones(len(at), bool)
        if filters.as_of_year is not None:
            known &= self._years[at] <= filters.as_of_year
        if filters.citing_ids:
            known &= ~np.isin(self._digests[at], np.array([*map(text_digest, filters.citing_ids)], np.uint64))
        return places[known], self._rows[at[known]].astype(np.int64)


class PaperRows:
    """The ids of an index's papers, in order. Safe to use from several threads.

    Attributes:
        ids: The ids, bytes, (papers,); memory-mapped.
        has_abstract: Which papers have an abstract, (papers,); the same.
        citing: Who cites them; None for an index without citing sentences.
        columns: What is known of some of them, by row; None if nothing is at hand.
    """

    def __init__(
        self,
        ids: "NDArray[np.bytes_]",
        has_abstract: "NDArray[np.bool_]",
        citing: CitingPapers | None = None,
        columns: "Callable[[Rows], PaperColumns] | None" = None,
    ) -> None:
        self.ids = ids
        self.has_abstract = has_abstract
        self.citing = citing
        self.columns = columns

    @classmethod
    def open(cls, lucene: Path) -> "PaperRows":
        """The rows of an index, given its folder of Lucene's indexes.

        Raises:
            IndexUnusableError: They are missing or damaged.
        """
        has_citing = (lucene / ROWS / "citing_begins.npy").is_file()
        citing = CitingPapers(*(_opened(lucene, name) for name in _CITING)) if has_citing else None
        columns = written_columns(lucene)
        return cls(_opened(lucene, "ids"), _opened(lucene, "has_abstract"), citing, columns.of if columns else None)

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


def written_columns(lucene: Path) -> PaperColumns | None:
    """The columns of an index's papers; None if it was built before there were any.

    Raises:
        IndexUnusableError: They are damaged.
    """
    return PaperColumns.read(partial(_opened, lucene, folder=COLUMNS)) if (lucene / COLUMNS).is_dir() else None


def write_rows(store: PaperStore, lucene: Path) -> None:
    """Writes the rows of a store's papers, and those of Lucene's documents, beside Lucene's indexes."""
    import numpy as np

    folder = lucene / ROWS
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with (folder / _LINES).open("wb") as ids, ArrayWriter(folder / "has_abstract.npy", "?") as has_abstract:
        for part in in_parts(store.ids_and_abstracts(), _PART):
            ids.writelines(paper_id.encode() + b"\n" for paper_id, _ in part)
            has_abstract.append(np.array([flag for _, flag in part], bool))
    write_ids(folder / _LINES, folder / "ids.npy")
    (folder / _LINES).unlink()
    sorted_ids = mapped(folder / "ids.npy")
    _write_documents(lucene, sorted_ids)
    if (lucene / "citances").is_dir():
        of_pairs = (
            _citing(store, [key.decode() for key in sorted_ids[begin : begin + _BATCH].tolist()], sorted_ids)
            for begin in range(0, len(sorted_ids), _BATCH)
        )
        with contextlib.ExitStack() as stack:
            begins, *pairs = (
                stack.enter_context(ArrayWriter(folder / f"{name}.npy", kind)) for name, kind in _CITING.items()
            )
            begins.append(np.zeros(1, np.int64))
            for citing in of_pairs:
                begins.append(pairs[0].rows + np.cumsum(citing.counts))
                for writer, values in zip(pairs, citing.pairs, strict=True):
                    writer.append(values)


def _write_documents(lucene: Path, sorted_ids: "NDArray[np.bytes_]") -> None:
    """Writes the row of each of Lucene's documents."""
    from citerec.retrieve.lucene.documents import document_ids

    for name in ("papers", "citances"):
        if (lucene / name).is_dir():
            with ArrayWriter(lucene / ROWS / f"{name}.npy", "<i4") as rows:
                for ids_of_part in document_ids(lucene / name):
                    rows.append(rows_of(sorted_ids, ids_of_part))


class _Citing(NamedTuple):
    """How many papers cite each of some papers, (ids,), and the arrays of `_PAIRS`, (pairs,) each."""

    counts: "NDArray[np.int64]"
    pairs: "list[NDArray[Any]]"


def _citing(store: PaperStore, ids: Sequence[str], sorted_ids: "NDArray[np.bytes_]") -> _Citing:
    """Which papers cite some papers."""
    import numpy as np

    found = store.citing_papers(ids)
    citing = [one for paper_id in ids for one in found.get(paper_id, ())]
    counts = np.array([len(found.get(paper_id, ())) for paper_id in ids], np.int64)
    rows = rows_of(sorted_ids, [one.paper_id for one in citing])
    years = np.array([_UNKNOWN_YEAR if one.year is None else one.year for one in citing], np.int16)
    return _Citing(counts, [rows, years, np.array([text_digest(one.paper_id) for one in citing], np.uint64)])


def _opened(lucene: Path, name: str, folder: str = ROWS) -> "NDArray[Any]":
    path = lucene / folder / f"{name}.npy"
    try:
        return mapped(path)
    except IndexUnusableError as error:
        index = lucene.parent
        raise IndexUnusableError(
            error.message, f"Build the index again from its sources: citerec index build … --out {index}"
        ) from error
