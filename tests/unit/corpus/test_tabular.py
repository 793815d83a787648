import contextlib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from citerec.corpus.reading import BadRecord
from citerec.corpus.tabular import read_csv
from citerec.errors import SourceError
from citerec.records import Paper
from tests.growth import assert_linear


def test_csv_with_quoted_line_breaks_and_lists(tmp_path: Path) -> None:
    (path := tmp_path / "papers.csv").write_text(
        "paper_id,title,year,authors,fields_of_study,external_ids\n"
        'a,"A title,\nin two \ufffd lines",2001.0,Ada Lovelace;Bob Son,Biology; Art,DOI:10.1/x\n'
        "b,Short\n,No id,2000,,,\nc,,,,,\n",
        encoding="utf-8",
    )
    first, *bad = read_csv(path)
    more = {"fields_of_study": ("Biology", "Art"), "external_ids": {"DOI": "10.1/x"}}
    authors = ("Ada Lovelace", "Bob Son")
    assert first.record == Paper("a", "A title, in two \ufffd lines", year=2001, authors=authors, **more)
    reasons = ("2 cells where the header has 6", "paper_id is missing", "neither title nor abstract")
    for line, number, reason in zip(bad, (4, 5, 6), reasons, strict=True):
        assert isinstance(line.record, BadRecord) and (line.number, reason in line.record.reason) == (number, True)


def test_a_bad_row_costs_itself_and_a_quote_that_nobody_closes_the_file(tmp_path: Path) -> None:
    (path := tmp_path / "papers.csv").write_text(
        'paper_id,title\n1,one\n2,"t"wo\n3,three,more\n4,"four\nin two"\n', encoding="utf-8"
    )
    assert [line.number for line in read_csv(path) if isinstance(line.record, BadRecord)] == [3, 4]
    rows = [f"{n},Title {n}\n" for n in range(1, 101)]
    rows[40] = '41,"Title 41\n'
    path.write_text("paper_id,title\n" + "".join(rows), encoding="utf-8")
    with pytest.raises(SourceError, match=r"line 42: not CSV.*Close the quote"):
        list(read_csv(path))


@given(st.lists(st.text(alphabet='1,"a \n\r\x1b\0é', max_size=12), max_size=12), st.booleans())
def test_no_line_of_a_csv_is_lost(tmp_path_factory: pytest.TempPathFactory, texts: list[str], ends: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    body = "\n".join(texts) + "\n" * ends
    path.write_bytes(b"paper_id,title\n" + body.encode())
    rows = [number for number, line in enumerate(body.split("\n"), 2) if line.strip()]
    try:
        found = [line.number for line in read_csv(path)]
    except SourceError:  # a quote that is not closed
        assert '"' in body
        return
    assert set(found) <= set(rows) and len(set(found)) == len(found)
    assert found == rows or '"' in body


@pytest.mark.parametrize("line", ['1,"x\n', 'x","c\n', '1,"a""\n', '"\n', '1,"""\n'])
def test_time_grows_as_the_file_does(tmp_path: Path, line: str) -> None:
    def read(text: str) -> None:
        (path := tmp_path / "papers.csv").write_text(text, encoding="utf-8")
        with contextlib.suppress(SourceError):  # a quote that is not closed
            assert sum(1 for _ in read_csv(path)) > 0

    assert_linear(read, lambda times: "paper_id,title\n" + line * times, 8000)


@pytest.mark.parametrize("header", ['paper_id,"title\n1,one\n', 'paper_id,"ti"tle\n', "id,title\n1,x\n"])
def test_a_header_that_is_no_csv_is_one_line(tmp_path: Path, header: str) -> None:
    (path := tmp_path / "papers.csv").write_text(header, encoding="utf-8")
    with pytest.raises(SourceError, match="no column paper_id" if header[0] == "i" else "the header is not CSV"):
        list(read_csv(path))
