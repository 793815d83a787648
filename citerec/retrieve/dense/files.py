"""Arrays on disk that grow row by row, and are memory-mapped for reading: plain `.npy` files."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from citerec.errors import IndexUnusableError
from citerec.files.parts import in_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

_PART = 1 << 16


class ArrayWriter:
    """Writes a `.npy` file row by row. Its first `rows` rows are kept; those that it does not have yet are zero."""

    def __init__(self, path: Path, dtype: "DTypeLike", row: tuple[int, ...] = (), rows: int = 0) -> None:
        import numpy as np

        self.dtype, self._row = np.dtype(dtype), row
        self.rows = rows
        if rows:
            path.touch()
        self._file: BinaryIO = path.open("r+b" if rows else "wb")
        self._write_header()
        self._file.truncate(self._file.tell() + rows * self.dtype.itemsize * int(np.prod(row, dtype=np.int64)))
        self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.commit()
        self._file.close()

    def append(self, values: "NDArray[Any]") -> None:
        """Adds rows."""
        import numpy as np

        rows = np.ascontiguousarray(values, dtype=self.dtype)
        self._file.write(rows.data.cast("B") if rows.size else b"")
        self.rows += len(rows)

    def put(self, begin: int, values: "NDArray[Any]") -> None:
        """Writes over rows, from `begin` on."""
        import numpy as np

        rows = np.ascontiguousarray(values, dtype=self.dtype)
        self._file.seek(begin * rows[0].nbytes - self.rows * rows[0].nbytes, os.SEEK_END)
        self._file.write(rows.data.cast("B"))
        self._file.seek(0, os.SEEK_END)

    def commit(self) -> None:
        """Forces the added rows to the disk."""
        self._write_header()
        self._file.seek(0, os.SEEK_END)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _write_header(self) -> None:
        from numpy.lib import format as npy

        # numpy leaves room in the header for any number of rows, so its length does not change.
        header = {
            "descr": npy.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (self.rows, *self._row),
        }
        self._file.seek(0)
        npy.write_array_header_1_0(self._file, header)


def mapped(path: Path) -> "NDArray[Any]":
    """An array of a `.npy` file, memory-mapped; raises IndexUnusableError if it is missing, truncated or damaged."""
    import numpy as np

    try:
        # A plain array over the map: np.memmap makes each access slower.
        array: NDArray[Any] = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        # numpy cannot map an empty array.
        if isinstance(error, ValueError) and "empty" in str(error):
            return np.load(path, allow_pickle=False)  # type: ignore[no-any-return]
        raise IndexUnusableError(
            f"{path} cannot be read ({error})".replace("\n", " "), "Make the vectors again: citerec index encode"
        ) from error
    return array


def write_ids(lines: Path, path: Path) -> None:
    """Writes ids, one per line and sorted by their bytes, as a `.npy` array as wide as the longest of them."""
    import numpy as np

    with lines.open("rb") as file:
        width = max((len(line) - 1 for line in file), default=1)
    with lines.open("rb") as file, ArrayWriter(path, f"S{width}") as writer:
        for part in in_parts(file, _PART):
            writer.append(np.array([line[:-1] for line in part], dtype=f"S{width}"))


class Splice:
    """What taking ids out of a sorted array and putting others in does to arrays that have a row for each id.

    Args:
        sorted_ids: The ids before, (rows,).
        taken: Ids that are taken out if they are there, in order.
        put: Ids that are put in, in order; those that are there before are among `taken`.
    """

    def __init__(self, sorted_ids: "NDArray[np.bytes_]", taken: Sequence[str], put: Sequence[str]) -> None:
        import numpy as np

        self.keys: NDArray[np.bytes_] = np.array([paper_id.encode() for paper_id in put] or [b""], np.bytes_)[
            : len(put)
        ]
        before = rows_of(sorted_ids, put)
        self._again = _found(before)
        at = np.where(before >= 0, before, np.searchsorted(sorted_ids, self.keys))
        self._of_rows = _Rows(len(sorted_ids), _found(rows_of(sorted_ids, taken)), at)

    def moved(self, rows: "NDArray[Any]") -> "NDArray[np.int64]":
        """The new rows of the ids of some rows; -1 for those that are no longer there, and for -1."""
        import numpy as np

        rows, at, gone = rows.astype(np.int64), self._of_rows.at, self._of_rows.gone
        moved = rows - np.searchsorted(gone, rows) + np.searchsorted(at, rows, side="right")
        stays = (rows >= 0) & ~np.isin(rows, gone)
        return np.where(np.isin(rows, self._again), moved - 1, np.where(stays, moved, -1))

    def stays(self) -> "NDArray[np.bool_]":
        """Which of the rows before stay, (rows,)."""
        import numpy as np

        stays = np.ones(self._of_rows.whole, bool)
        stays[self._of_rows.gone] = False
        return stays

    def placed(self) -> "NDArray[np.int64]":
        """The rows of the ids that are put in, (put,)."""
        import numpy as np

        at, gone = self._of_rows.at, self._of_rows.gone
        return at - np.searchsorted(gone, at) + np.arange(len(at))

    def parts(self, old: "NDArray[Any]", new: "NDArray[Any]") -> "Iterator[NDArray[Any]]":
        """The rows of an array afterwards, in parts: the old ones that stay, and the new ones, (put, …), between."""
        return self._of_rows.parts(old, new)

    def write(self, path: Path, old: "NDArray[Any]", new: "NDArray[Any]") -> None:
        """Writes the `parts` of an array into a file; ids become as wide as they need."""
        self._of_rows.write(path, old, new)

    def within(self, begins: "NDArray[np.int64]", counts: "NDArray[np.int64]") -> "_Rows":
        """The same for arrays that have several rows for each id, (begins[-1], …).

        Args:
            begins: Where the rows of each id begin, and the last end, (ids + 1,).
            counts: How many rows each id that is put in has, (put,).
        """
        import numpy as np

        gone, at = self._of_rows.gone, self._of_rows.at
        of_gone = [np.arange(begin, end) for begin, end in zip(begins[gone], begins[gone + 1], strict=True)]
        rows = np.concatenate([*of_gone, np.zeros(0, np.int64)])
        return _Rows(int(begins[-1]), rows, np.repeat(begins[at], counts))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that are taken out of `whole` rows, and the rows before which others are put in, each in order."""

    whole: int
    gone: "NDArray[np.int64]"
    at: "NDArray[np.int64]"

    def parts(self, old: "NDArray[Any]", new: "NDArray[Any]") -> "Iterator[NDArray[Any]]":
        import numpy as np

        for begin in range(0, max(1, self.whole), _PART):
            end = begin + _PART
            first, last = np.searchsorted(self.at, [begin, end if end < self.whole else self.whole + 1])
            stays = np.ones(len(old[begin:end]), bool)
            stays[self.gone[slice(*np.searchsorted(self.gone, [begin, end]))] - begin] = False
            places = self.at[first:last] - begin
            part = np.insert(old[begin:end].astype(new.dtype), places, new[first:last], axis=0)
            yield part[np.insert(stays, places, True)]

    def write(self, path: Path, old: "NDArray[Any]", new: "NDArray[Any]") -> None:
        import numpy as np

        dtype = np.promote_types(old.dtype, new.dtype) if old.dtype.kind == "S" else old.dtype
        with ArrayWriter(path, dtype, old.shape[1:]) as writer:
            for part in self.parts(old, new.astype(dtype)):
                writer.append(part)


def _found(rows: "NDArray[np.int64]") -> "NDArray[np.int64]":
    return rows[rows >= 0]


def rows_of(sorted_ids: "NDArray[np.bytes_]", ids: Iterable[str]) -> "NDArray[np.int64]":
    """The rows of ids in a sorted array of ids; -1 for missing ones. A binary search, which does not load the array."""
    import numpy as np

    encoded = [paper_id.encode() for paper_id in ids]
    if not encoded or not len(sorted_ids):
        return np.full(len(encoded), -1, dtype=np.int64)
    width = sorted_ids.dtype.itemsize
    fits = np.array([len(key) <= width for key in encoded], dtype=bool)
    keys = np.array([key[:width] for key in encoded], dtype=f"S{width}")
    rows = np.searchsorted(sorted_ids, keys)
    found = fits & (sorted_ids[np.minimum(rows, len(sorted_ids) - 1)] == keys)
    return np.where(found & (rows < len(sorted_ids)), rows, -1).astype(np.int64)
