"""Arrays on disk that grow row by row, and are memory-mapped for reading: plain `.npy` files."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from citerec.errors import IndexUnusableError
from citerec.files.parts import in_parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

_PART = 1 << 16


class ArrayWriter:
    """Writes a `.npy` file row by row."""

    def __init__(self, path: Path, dtype: "DTypeLike", row: tuple[int, ...] = ()) -> None:
        import numpy as np

        self.dtype, self._row = np.dtype(dtype), row
        self.rows = 0
        self._file: BinaryIO = path.open("wb")
        self._write_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(self, values: "NDArray[Any]") -> None:
        """Adds rows."""
        import numpy as np

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
        from numpy.lib import format as npy

        # numpy leaves room in the header for any number of rows, so its length does not change.
        header = {
            "descr": npy.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (self.rows, *self._row),
        }
        npy.write_array_header_1_0(self._file, header)


@contextlib.contextmanager
def writing_arrays(
    folder: Path, kinds: "Mapping[str, tuple[DTypeLike, tuple[int, ...]]]"
) -> Iterator[dict[str, ArrayWriter]]:
    """Writers of some arrays of a folder, by name: those of `NAME.npy`, with these types and shapes of rows."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(ArrayWriter(folder / f"{name}.npy", *kind)) for name, kind in kinds.items()}


def mapped(path: Path, remedy: str = "Build the index again: citerec index build …") -> "NDArray[Any]":
    """An array of a `.npy` file, memory-mapped; raises IndexUnusableError if it is missing, truncated or damaged."""
    import numpy as np

    try:
        # A plain array over the map: np.memmap makes each access slower.
        array: NDArray[Any] = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        # numpy cannot map an empty array.
        if isinstance(error, ValueError) and "empty" in str(error):
            return np.load(path, allow_pickle=False)  # type: ignore[no-any-return]
        raise IndexUnusableError(f"{path} cannot be read ({error})".replace("\n", " "), remedy) from error
    return array


def write_ids(lines: Path, path: Path) -> None:
    """Writes ids, one per line and sorted by their bytes, as a `.npy` array as wide as the longest of them."""
    import numpy as np

    with lines.open("rb") as file:
        width = max((len(line) - 1 for line in file), default=1)
    with lines.open("rb") as file, ArrayWriter(path, f"S{width}") as writer:
        for part in in_parts(file, _PART):
            writer.append(np.array([line[:-1] for line in part], dtype=f"S{width}"))


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
