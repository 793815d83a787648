"""Tables as data: what a terminal, HTML and CSV make of them."""

import csv
import html
import io
import re

import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from citerec.evaluation.page import to_html
from citerec.evaluation.tables import Cell, Column, Table, left, marked, right, show, to_csv

EVIL = "<script>alert('x')</script> & [red]\\d, \"quoted\""


@pytest.fixture
def table() -> Table:
    rows = [
        [Cell("bm25", (("", "system-3"), ("bm25", "strong"))), 1234, 0.5],
        [EVIL, None, Cell(0.25, (("0.250", ""), (" ▼", "worse")))],
    ]
    return Table([*left("system <b>"), *right("n", format=","), *right("recall", format=".3f")], rows, "Scores", ["*"])


def printed(table: Table, **options: object) -> str:
    console = Console(file=io.StringIO(), highlight=False, no_color=True, **options)  # type: ignore[arg-type]
    show(console, table, whole=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_terminal_shows_values_as_their_columns_say_and_no_markup(table: Table) -> None:
    text = printed(table, width=120)
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[0] == "Scores"
    assert lines[2].split() == ["bm25", "1,234", "0.500"]
    assert EVIL in lines[3]
    assert lines[3].split()[-3:] == ["–", "0.250", "▼"]
    assert lines[4] == "*"


def test_a_narrow_terminal_gets_intervals_below_figures_and_a_pipe_wide_lines() -> None:
    table = Table(
        [*left("a"), *right("peak memory")], [["words of a text", Cell(0.5, (("0.5", ""), (" [.4 .6]", "interval")))]]
    )
    shown = re.sub(r"\x1b\[\d+m", "", printed(table, width=20, force_terminal=True))
    assert [line.split() for line in shown.splitlines()] == [
        ["peak"],
        ["a", "memory"],
        ["words", "of", "a", "0.5"],
        ["text", "[.4", ".6]"],
    ]
    assert "0.5 [.4 .6]" in printed(table, width=5, force_terminal=False)


def test_html_escapes_whatever_stands_there(table: Table) -> None:
    page = to_html(table)
    shown = html.unescape(re.sub(r"<[^>]*>", "|", page))
    assert "<script" not in page
    assert EVIL in shown and "|system <b>|" in shown
    assert '<span class="key" style="background: var(--system-3)"></span><span class="strong">bm25</span>' in page
    assert '<td class="n">0.250<span class="worse"> ▼</span></td>' in page


def test_csv_has_values_and_nothing_where_there_is_none(table: Table) -> None:
    assert to_csv(Table(left("-a", "b"), [[-0.5, None], [marked("x", "warning"), 1]])) == "'-a,b\n-0.5,\nx,1\n"
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows == [["system <b>", "n", "recall"], ["bm25", "1234", "0.5"], [EVIL, "", "0.25"]]


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"))


@given(st.lists(CELLS | st.text("'=+-@\t1a", max_size=4), min_size=1, max_size=4))
def test_any_text_comes_back_from_csv_and_none_is_a_formula(texts: list[str]) -> None:
    written = to_csv(Table([Column(str(number)) for number in range(len(texts))], [texts]))
    (_, row) = csv.reader(io.StringIO(written, newline=""))
    assert [cell.removeprefix("'") if cell != text else cell for cell, text in zip(row, texts, strict=True)] == texts
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
