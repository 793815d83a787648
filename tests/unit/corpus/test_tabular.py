from pathlib import Path

import pytest

from citerec.corpus.json_lines import BadRecord
from citerec.corpus.tabular import read_csv
from citerec.errors import SourceError
from citerec.records import Paper


def test_csv_with_quoted_line_breaks_and_lists(tmp_path: Path) -> None:
    path = tmp_path / "papers.csv"
    path.write_text(
        "paper_id,title,year,authors,fields_of_study,external_ids\n"
        'a,"A title,\nin two lines",2001,Ada Lovelace;Bob Son,Biology; Art,DOI:10.1/x\n'
        "b,Short\n"
        ",No id,2000,,,\n"
        "c,,,,,\n",
        encoding="utf-8",
    )
    lines = list(read_csv(path))
    assert lines[0].record == Paper(
        "a",
        "A title, in two lines",
        year=2001,
        authors=("Ada Lovelace", "Bob Son"),
        fields_of_study=("Biology", "Art"),
        external_ids={"DOI": "10.1/x"},
    )
    bad = [line for line in lines if isinstance(line.record, BadRecord)]
    assert [(line.number, line.record.reason) for line in bad if isinstance(line.record, BadRecord)] == [
        (4, "2 cells where the header has 6"),
        (5, "paper_id is missing"),
        (6, "neither title nor abstract: nothing to search"),
    ]


def test_a_csv_needs_a_column_for_the_id(tmp_path: Path) -> None:
    path = tmp_path / "papers.csv"
    path.write_text("id,title\n1,x\n", encoding="utf-8")
    with pytest.raises(SourceError, match="no column paper_id"):
        list(read_csv(path))


def test_a_quote_that_nobody_closes_is_no_cell(tmp_path: Path) -> None:
    path = tmp_path / "papers.csv"
    path.write_text('paper_id,title\n1,one\n2,"two\n' + "".join(f"{n},more\n" for n in range(3, 50)), encoding="utf-8")
    first, last = [line.record for line in read_csv(path)]
    assert isinstance(first, Paper)
    assert isinstance(last, BadRecord)
    assert last.reason.startswith("not CSV")


def test_whole_numbers_as_pandas_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "papers.csv"
    path.write_text("paper_id,title,year,citation_count\na,x \ufffd y,2005.0,\n", encoding="utf-8")
    (line,) = read_csv(path)
    assert line.record == Paper("a", "x \ufffd y", year=2005)
