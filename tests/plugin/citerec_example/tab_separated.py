"""A format of another package: a line for each paper, with its id, title and year between tabs."""

from collections.abc import Iterator
from pathlib import Path

from citerec.corpus.base import Format
from citerec.corpus.reading import Line, RecordError, raw_lines, tried
from citerec.records import Paper


def read_tsv(path: Path) -> Iterator[Line]:
    """Yields the paper of each line."""
    for number, raw, bytes_read in raw_lines(path):
        yield Line(number, tried(lambda raw=raw: parse(raw.decode()), raw), bytes_read)


def parse(text: str) -> Paper:
    """The paper of a line; RecordError if it has not three cells."""
    cells = text.rstrip("\r\n").split("\t")
    if len(cells) != 3:
        raise RecordError(f"{len(cells)} cells where three should be")
    paper_id, title, year = cells
    return Paper(paper_id=paper_id, title=title, year=int(year))


TSV = Format("tsv", read_tsv, (".tsv",))
