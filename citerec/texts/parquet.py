"""Parquet files, such as those of data sets on the hub: one record per row, read in small batches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from citerec.corpus.json_lines import read_failures
from citerec.errors import SourceError
from citerec.files.rejected import FULL_TEXT_BYTES

_ROWS = 16  # a row may hold a dozen full texts


def is_parquet(path: Path) -> bool:
    """Whether a file begins like Parquet, regardless of its name; SourceError if it cannot be opened."""
    with read_failures(path), path.open("rb") as file:
        return file.read(4) == b"PAR1"


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file as JSON objects, in order; SourceError if it is damaged, or a row is too long."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with read_failures(path), pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_ROWS):
                if any(batch.slice(row, 1).nbytes > FULL_TEXT_BYTES for row in range(batch.num_rows)):
                    raise SourceError(f"{path} has a row of more than {FULL_TEXT_BYTES:,} bytes", "Leave it out.")
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        fault = str(error).splitlines()[0]
        raise SourceError(f"{path} is damaged: {fault}", "Download the file again.") from error
