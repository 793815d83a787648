"""Columns of papers: what is written comes back, in parts or whole, and damage is found."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from citerec.contexts.topic import topic_of
from citerec.corpus.sqlite_store import SqliteStore
from citerec.corpus.store import rows_of
from citerec.errors import IndexUnusableError
from citerec.index import Index
from citerec.records import Context, Paper
from citerec.retrieve import columns
from citerec.retrieve.columns import COLUMNS, FILES, PaperColumns, columns_of, first_wrong, hash_of, write_columns
from citerec.retrieve.rows import PaperRows, written_columns
from citerec.retrieve.staging import LUCENE
from citerec.retrieve.verify import verify

PAPERS = [
    Paper("a", "BERT: The bert", year=2018, venue="ACL", authors=("Ada Lee", "Bo Lee", "Ada Lee"), citation_count=7),
    Paper("b"),
    Paper("c", "Trees and more trees", authors=(" ", "Cy"), citation_count=0),
]


def same(left: PaperColumns, right: PaperColumns) -> bool:
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in FILES)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    made = SqliteStore(tmp_path / "papers.sqlite")
    made.write(rows_of(PAPERS))
    return made


def test_what_columns_hold() -> None:
    made = columns_of(PAPERS)
    assert made.years.tolist() == [2018, -1, -1] and made.citation_counts.tolist() == [7, -1, 0]
    assert made.word_begins.tolist() == [0, 2, 2, 5] and made.name_words.tolist() == [1, 0, 0]
    assert made.words.tolist() == [hash_of(word) for word in ("bert", "the", "trees", "and", "more")]
    assert made.author_begins.tolist() == [0, 3, 3, 5]
    # What an author has in common with an earlier one does not count twice.
    assert made.authors[:3].tolist() == [[hash_of("Ada Lee"), hash_of("lee")], [hash_of("Bo Lee"), 0], [0, 0]]
    assert made.venues[0].tolist() == [hash_of("ACL"), hash_of("acl")]


def test_the_columns_of_some_papers_are_those_that_they_have_alone() -> None:
    for rows in ([2, 0], [1], [], [0, 0, 1, 2]):
        places = np.array(rows, np.int64)
        assert same(columns_of(PAPERS).of(places), columns_of([PAPERS[row] for row in rows]))


@pytest.mark.parametrize("part", [1, 2, 100])
def test_they_are_written_in_parts(
    store: SqliteStore, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_PART", part)
    write_columns(store, tmp_path)
    written = written_columns(tmp_path)
    assert written is not None and same(written, columns_of(PAPERS))
    assert first_wrong(written, store) is None
    write_columns(store, tmp_path)  # in place of those that are there
    assert same(PaperColumns.read(lambda name: np.load(tmp_path / COLUMNS / f"{name}.npy")), written)


def test_verify_finds_what_does_not_fit(demo_index: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(demo_index, index)
    assert verify(index) == []
    for name in FILES:
        path = index / LUCENE / COLUMNS / f"{name}.npy"
        values = np.load(path)
        for wrong in (values[::-1], np.concatenate([values, values])):
            np.save(path, wrong)
            (fault,) = verify(index)
            assert f"{name}.npy does not fit the papers" in fault
        np.save(path, values)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IndexUnusableError, match=f"{path.stem}.npy cannot be read"):
        PaperRows.open(index / LUCENE)
    shutil.rmtree(index / LUCENE / COLUMNS)
    assert verify(index) == []  # of an older version


def test_papers_that_are_added_have_columns(demo_index: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(demo_index, index)
    before = written_columns(demo_index / LUCENE)
    (tmp_path / "more.bib").write_text("@misc{new, title={Columns of papers}, year=2024, author={Lee, Ada}}")
    Index.open(index).add([tmp_path / "more.bib"])
    added = written_columns(index / LUCENE)
    assert before is not None and added is not None and len(added.years) == len(before.years) + 1
    row = PaperRows.open(index / LUCENE).rows(["new"])
    assert added.of(row).years.tolist() == [2024] and len(added.of(row).words) == 3
    assert same(before, written_columns(demo_index / LUCENE) or added)
    assert verify(index) == []


def test_words_of_a_topic_may_be_no_valid_text() -> None:
    topic = topic_of(Context(text="Half of a pair \ud83d <REF>."))
    assert hash_of(topic.text) != hash_of("")
