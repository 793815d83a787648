from pathlib import Path

import pytest

from citerec.corpus.base import find_shards
from citerec.errors import SourceError
from tests.conftest import s2ag_paper, write_lines


def test_files_are_recognised_by_ending_and_content(tmp_path: Path) -> None:
    texts = {
        "a.ris": "TY  - GEN\nTI  - t\n",
        "b.json": '{"items": [{"id": 1, "type": "book", "title": "t"}]}',
        "c.json": '[{"hello": 1}]',
        "d.json": '{"paper_id": 1, "title": "t"}\n',
        "e.gz": '\n[\n{"type": "book", "title": "t"}\n]',
        "f.bib": "@book{a, title={t}}",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    write_lines(tmp_path / "g.gz", [s2ag_paper(1, "t")], compress=True)
    formats = {shard.path.name: shard.format for shard in find_shards([tmp_path])}
    known = {"a.ris": "ris", "b.json": "csl", "d.json": "jsonl", "e.gz": "csl", "f.bib": "bibtex"}
    assert formats == {**known, "g.gz": "s2ag-papers"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "holds nothing that citerec reads"),
        (lambda path: path.write_text('{"hello": 1}\n'), "no format that citerec recognises"),
        (lambda path: path.write_text(""), "no format that citerec recognises"),
    ],
)
def test_what_cannot_be_read_is_an_error(tmp_path: Path, make: object, message: str) -> None:
    path = tmp_path / "thing"
    make(path)  # type: ignore[operator]
    with pytest.raises(SourceError, match=message):
        find_shards([path])
