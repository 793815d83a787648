"""Papers as numbers: the row of a paper is the rank of its id among all ids of the index, by their bytes.

A citing sentence has a row of its own: sentences are in order of cited paper, year, citing paper and position.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from citerec.corpus.store import PaperStore, SearchableCitance
from citerec.files.parts import in_parts
from citerec.files.writing import write_json
from citerec.index.arrays import mapped, rows_of, write_ids, writing_arrays
from citerec.index.columns import COLUMNS, FILES, LISTS, PaperColumns, columns_of, hash_of, owners_of, places_in
from citerec.records import Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from citerec.index.candidates import Rows

UNKNOWN_YEAR = 9999
"""Stands for an unknown year of a citing paper: later than all others, so nothing of it is known to be old enough."""

NAMES = "names.json"
"""The file with the different fields of study and venues of an index's papers, beside their columns."""

_LINES, _PART = "ids.txt", 1 << 13

_PAIRS = {"citing": ("<i4", ()), "citing_years": ("<i2", ()), "citing_digests": ("<u8", ())}
"""Arrays of `CitingPapers` and their types, with a number for each pair."""


@dataclass(frozen=True)
class CitingPapers:
    """Which papers cite each paper in sentences of the index, when, and in which sentences. Safe in several threads.

    A pair is a cited paper and one that cites it.

    Attributes:
        begins: Where the pairs of each row begin, (papers + 1,).
        rows: The rows of the citing papers, (pairs,); -1 for those that the index lacks.
        years: Their years, (pairs,); UNKNOWN_YEAR if unknown.
        digests: Hashes of their ids, (pairs,).
        sentence_begins: Where the sentences of each pair begin, (pairs + 1,).
        names: Their ids, bytes, (pairs,).
    """

    begins: "NDArray[np.int64]"
    rows: "NDArray[np.int32]"
    years: "NDArray[np.int16]"
    digests: "NDArray[np.uint64]"
    sentence_begins: "NDArray[np.int64]"
    names: "NDArray[np.bytes_]"

    def of(self, rows: "Rows", filters: Filters) -> "tuple[Rows, Rows]":
        """What may be known of the citing papers of some rows: places in `rows`, and rows of citing papers.

        Those that `known` leaves out are not among them. Both arrays are (pairs,); -1 stands for a citing paper that
        the index lacks.
        """
        places, pairs = self.pairs_of(rows, filters)
        return places, self.rows[pairs].astype("int64")

    def pairs_of(self, rows: "Rows", filters: Filters) -> "tuple[Rows, Rows]":
        """The pairs of some rows that may be known, in order: places in `rows`, and the pairs, (pairs,) each."""
        begins, pairs = places_in(self.begins, rows)
        known = self.known(filters, pairs)
        return owners_of(begins)[known], pairs[known]

    def known(self, filters: Filters, pairs: "Rows | slice" = slice(None)) -> "NDArray[np.bool_]":
        """Which of some pairs may be known, (pairs,): none of `citing_ids`, none newer than `as_of_year`.

        If there is such a year, none of an unknown year either.
        """
        import numpy as np

        known = np.ones(len(self.rows[pairs]), bool)
        if filters.as_of_year is not None:
            known &= self.years[pairs] <= filters.as_of_year
        if filters.citing_ids:
            known &= ~np.isin(self.digests[pairs], np.array([*map(hash_of, filters.citing_ids)], np.uint64))
        return known

    def sentence(self, row: int) -> tuple[str, int]:
        """The id of the citing paper of a sentence, and the position of the sentence among those of the pair."""
        import numpy as np

        pair = int(np.searchsorted(self.sentence_begins, row, "right")) - 1
        return self.names[pair].decode(), row - int(self.sentence_begins[pair])

    def sentence_row(self, row: int, citing_id: str, position: int) -> int:
        """The row of a sentence of a citing paper about the paper at a row; -1 if there is none."""
        import numpy as np

        begin, end = int(self.begins[row]), int(self.begins[row + 1])
        pairs = np.flatnonzero(self.names[begin:end] == citing_id.encode())
        return int(self.sentence_begins[begin + pairs[0]]) + position if len(pairs) else -1


@dataclass(frozen=True)
class PaperRows:
    """The ids of an index's papers, in order. Safe to use from several threads.

    Attributes:
        ids: The ids, bytes, (papers,); memory-mapped.
        known: What is known of them, by row.
        citing: Who cites them; None for an index without citing sentences.
    """

    ids: "NDArray[np.bytes_]"
    known: PaperColumns
    citing: CitingPapers | None = None

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The rows of a generation of an index.

        Raises:
            IndexUnusableError: They are missing or damaged.
        """
        folder = folder / COLUMNS
        citing = None
        if (folder / "citing_begins.npy").is_file():
            names = ("citing_begins", *_PAIRS, "sentence_begins", "citing_ids")
            citing = CitingPapers(*(mapped(folder / f"{name}.npy") for name in names))
        return cls(mapped(folder / "ids.npy"), PaperColumns.read(folder), citing)

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, paper_ids: Sequence[str]) -> "NDArray[np.int64]":
        """The rows of some papers; -1 for those that the index lacks."""
        return rows_of(self.ids, paper_ids)

    def paper_ids(self, rows: "NDArray[np.int64]") -> list[str]:
        """The ids of some rows."""
        return [key.decode() for key in self.ids[rows].tolist()]


def write_rows(folder: Path, store: PaperStore) -> None:
    """Writes the ids and the columns of a store's papers into a folder, which is made; `PaperRows.open` reads them."""
    import numpy as np

    folder.mkdir()
    fields: set[str] = set()
    venues: set[str] = set()
    kinds = {**FILES, "digests": ("<u8", ())}
    with (folder / _LINES).open("wb") as ids, writing_arrays(folder, kinds) as arrays:
        for begins in LISTS:
            arrays[begins].append(np.zeros(1, np.int64))
        for part in in_parts(store.all_papers(), _PART):
            ids.writelines(paper.paper_id.encode() + b"\n" for paper in part)
            columns = columns_of(part)
            for name in FILES:
                values = getattr(columns, name)
                arrays[name].append(arrays[LISTS[name]].rows + values[1:] if name in LISTS else values)
            arrays["digests"].append(np.array([hash_of.__wrapped__(repr(paper)) for paper in part], np.uint64))
            fields.update(name for paper in part for name in paper.fields_of_study)
            venues.update(paper.venue for paper in part if paper.venue)
    write_ids(folder / _LINES, folder / "ids.npy")
    (folder / _LINES).unlink()
    names = {"fields": fields, "venues": venues}
    ordered = {kind: sorted(some, key=lambda name: (name.casefold(), name)) for kind, some in names.items()}
    write_json(folder / NAMES, ordered)


def sentences_of(store: PaperStore) -> Iterator[list[SearchableCitance]]:
    """The citing sentences about each paper of a store, in the order of their rows."""
    for _, about in itertools.groupby(store.searchable_citances(), lambda one: one.cited.paper_id):
        yield sorted(about, key=lambda one: (_year(one), one.citing_id.encode(), one.position))


def write_citing(folder: Path, about: Iterable[Sequence[SearchableCitance]]) -> None:
    """Writes who cites the papers of a folder's `ids.npy`: the arrays of `CitingPapers`.

    Args:
        folder: The folder of the columns.
        about: The sentences about each paper, as `sentences_of` has them.
    """
    import numpy as np

    ids = mapped(folder / "ids.npy")
    names: list[bytes] = []
    sentences = [0]  # of each pair
    counts, digests = np.zeros(len(ids) + 1, np.int64), np.zeros(len(ids), np.uint64)
    with writing_arrays(folder, _PAIRS) as pairs:
        for said in about:
            pairs_of = [list(group) for _, group in itertools.groupby(said, lambda one: one.citing_id)]
            citing = [pair[0].citing_id for pair in pairs_of]
            row = int(rows_of(ids, [said[0].cited.paper_id])[0])
            digests[row] = hash_of(repr([(one.citing_id, one.citing_year, one.text) for one in said]))
            counts[row + 1] = len(citing)
            names += map(str.encode, citing)
            sentences += map(len, pairs_of)
            pairs["citing"].append(rows_of(ids, citing))
            pairs["citing_years"].append(np.array([_year(pair[0]) for pair in pairs_of]))
            pairs["citing_digests"].append(np.array([*map(hash_of, citing)], np.uint64))
    np.save(folder / "citing_begins.npy", np.cumsum(counts))
    np.save(folder / "sentence_begins.npy", np.cumsum(sentences))
    np.save(folder / "citing_ids.npy", np.array(names, np.bytes_))
    np.save(folder / "sentence_digests.npy", digests)


def _year(sentence: SearchableCitance) -> int:
    return UNKNOWN_YEAR if sentence.citing_year is None else sentence.citing_year
