"""Columns of papers: what is written comes back, in parts or whole."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

from citerec.corpus.store import SqliteStore, changes_of
from citerec.errors import IndexUnusableError
from citerec.index import columns
from citerec.index.columns import COLUMNS, PaperColumns, PaperRows, columns_of, write_rows
from citerec.index.words.analysis import hash_of
from citerec.records import Paper

PAPERS = [
    Paper("a", "BERT: The bert", year=2018, venue="ACL", authors=("Ada Lee", "Bo Lee", "Ada Lee"), citation_count=7),
    Paper("b"),
    Paper("c", "Trees and more trees", authors=(" ", "Cy"), citation_count=0),
]


def same(left: PaperColumns, right: PaperColumns) -> bool:
    return all(np.array_equal(array, vars(right)[name]) for name, array in vars(left).items())


def test_what_columns_hold() -> None:
    made = columns_of(PAPERS)
    assert made.years.tolist() == [2018, -1, -1] and made.citation_counts.tolist() == [7, -1, 0]
    assert made.word_begins.tolist() == [0, 2, 2, 5] and made.name_words.tolist() == [1, 0, 0]
    assert made.words.tolist() == [hash_of(word) for word in ("bert", "the", "trees", "and", "more")]
    assert made.author_begins.tolist() == [0, 3, 3, 5]
    # What an author has in common with an earlier one does not count twice.
    assert made.authors[:3].tolist() == [[hash_of("Ada Lee"), hash_of("lee")], [hash_of("Bo Lee"), 0], [0, 0]]
    assert made.venues[0].tolist() == [hash_of("ACL"), hash_of("acl")]
    for some in ([2, 0], [1], [], [0, 0, 1, 2]):
        assert same(made.of(np.array(some, np.int64)), columns_of([PAPERS[row] for row in some]))


@pytest.mark.parametrize("part", [1, 2, 100])
def test_they_are_written_in_parts(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_PART", part)
    with contextlib.closing(SqliteStore(tmp_path / "papers.sqlite")) as store:
        store.write(changes_of(PAPERS))
        write_rows(tmp_path / COLUMNS, store)
    opened = PaperRows.open(tmp_path)
    assert same(opened.columns, columns_of(PAPERS)) and opened.paper_ids(np.arange(3)) == ["a", "b", "c"]
    assert opened.citing is None
    (tmp_path / COLUMNS / "words.npy").write_bytes((tmp_path / COLUMNS / "words.npy").read_bytes()[:-1])
    with pytest.raises(IndexUnusableError, match=r"words.npy cannot be read .*Build the index again"):
        PaperRows.open(tmp_path)
