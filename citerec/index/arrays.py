"""Arrays on disk that grow row by row, and are memory-mapped for reading: plain `.npy` files."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from citerec.errors import IndexUnusableError

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

Arrays = TypeVar("Arrays")


class ArrayWriter:
    """Writes a `.npy` file row by row."""

    def __init__(self, path: Path, dtype: DTypeLike, row: tuple[int, ...] = ()) -> None:
        self.dtype, self._row = np.dtype(dtype), row
        self.rows = 0
        self._file = path.open("wb")
        self._write_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(self, values: NDArray[Any]) -> None:
        """Adds rows."""
        rows = np.ascontiguousarray(values, dtype=self.dtype)
        self._file.write(rows.data.cast("B") if rows.size else b"")
        self.rows += len(rows)

    def close(self) -> None:
        """Forces the rows to the disk, and closes the file."""
        with self._file:
            self._file.seek(0)
            self._write_header()
            self._file.flush()
            os.fsync(self._file.fileno())

    def _write_header(self) -> None:
        # numpy leaves room in the header for any number of rows, so its length does not change.
        shape = (self.rows, *self._row)
        header = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(self._file, header)


@contextlib.contextmanager
def writing_arrays(folder: Path) -> Iterator[Callable[..., None]]:
    """Yields a function that adds rows to the arrays `NAME.npy` of a folder, by name: `append(NAME=rows, …)`."""
    with contextlib.ExitStack() as stack:
        writers: dict[str, ArrayWriter] = {}

        def append(**arrays: NDArray[Any]) -> None:
            for name, rows in arrays.items():
                if name not in writers:
                    writer = ArrayWriter(folder / f"{name}.npy", rows.dtype, rows.shape[1:])
                    writers[name] = stack.enter_context(writer)
                writers[name].append(rows)

        yield append


def mapped(path: Path, remedy: str = "Build the index again: citerec index build …") -> NDArray[Any]:
    """An array of a `.npy` file, memory-mapped; raises IndexUnusableError if it is missing, truncated or damaged."""
    try:
        # A plain array over the map: np.memmap makes each access slower.
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        if isinstance(error, ValueError) and "empty" in str(error):  # numpy cannot map an empty array
            return np.load(path, allow_pickle=False)  # type: ignore[no-any-return]
        raise IndexUnusableError(f"{path} cannot be read ({error})".replace("\n", " "), remedy) from error


def mapped_together(kind: type[Arrays], folder: Path) -> Arrays:
    """A dataclass of arrays from the files of a folder that have the names of its fields; errors as for `mapped`."""
    return kind(**{field.name: mapped(folder / f"{field.name}.npy") for field in fields(kind)})  # type: ignore[arg-type]


def rows_of(sorted_ids: NDArray[np.bytes_], ids: Iterable[str]) -> Rows:
    """The rows of ids in a sorted array of ids; -1 for missing ones. A binary search, which does not load the array."""
    encoded = [paper_id.encode() for paper_id in ids]
    if not encoded or not len(sorted_ids):
        return np.full(len(encoded), -1, dtype=np.int64)
    width = sorted_ids.dtype.itemsize
    fits = np.array([len(key) <= width for key in encoded], dtype=bool)
    keys = np.array([key[:width] for key in encoded], dtype=f"S{width}")
    rows = np.minimum(np.searchsorted(sorted_ids, keys), len(sorted_ids) - 1)
    return np.where(fits & (sorted_ids[rows] == keys), rows, -1)


def begins_of(lengths: Any) -> Rows:
    """Where lists of some lengths begin that lie one after the other, with the end of the last, (lists + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def owners_of(begins: Rows) -> Rows:
    """For each value of some lists the place of its list, (values,)."""
    return np.repeat(np.arange(len(begins) - 1), np.diff(begins))


def places_in(begins: Rows, rows: Rows) -> tuple[Rows, Rows]:
    """Where the values of some lists lie, list after list: where each list now begins, and their places, (values,)."""
    first = begins[rows]
    lengths = begins[rows + 1] - first
    now = begins_of(lengths)
    return now, np.arange(now[-1]) + np.repeat(first - now[:-1], lengths)
