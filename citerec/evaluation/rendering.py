"""Tables as data, shown in a terminal, as CSV or as HTML."""

import csv
import html
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

# Styles by meaning, for the terminal. HTML has a class of each name.
_STYLES = {
    "faint": "not bold dim",
    "strong": "bold",
    "better": "green",
    "worse": "red",
    "warning": "yellow",
    "name": "cyan",
    "oracle": "not bold italic",
    "interval": "not bold dim",
}
_BEGINNINGS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_CELL = 32_000  # spreadsheets silently cut cells after 32,767 characters
_WIDEST = 1000

Span = tuple[str, str]
"""A piece of text and its style: "", one of `faint`, `strong`, `better`, `worse`, `warning`, `name`, `oracle`,
`interval`, or `system-3`, which HTML shows as a dot in the colour of that number."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its value, for CSV, and its spans, as shown to people."""

    value: Any
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column."""

    heading: str
    align: Literal["left", "right"] = "left"  # numbers are right-aligned
    format: str = ""  # of numbers, as in Python's format strings
    style: str = ""  # of all its cells
    wrap: bool | None = None  # whether long cells are wrapped in a terminal; by default those that are left-aligned


@dataclass(frozen=True, slots=True)
class Table:
    """A table. A row holds cells, or plain values, which their column formats; None is shown as a dash.

    Unless it is `headed`, the names of its columns are not shown.
    """

    columns: Sequence[Column]
    rows: list[Any] = field(default_factory=list)
    title: str = ""
    footnotes: Sequence[str] = ()
    headed: bool = True


def left(*headings: str, **options: Any) -> list[Column]:
    """Columns of texts."""
    return [Column(heading, **options) for heading in headings]


def right(*headings: str, **options: Any) -> list[Column]:
    """Columns of numbers."""
    return [Column(heading, "right", **options) for heading in headings]


def marked(text: str, style: str) -> Cell:
    """A cell in a style."""
    return Cell(text, ((text, style),))


def spans_of(cell: Any, column: Column) -> tuple[Span, ...]:
    """The spans of a cell, as shown to people."""
    if isinstance(cell, Cell):
        return cell.spans
    if cell is None:
        return (("–", ""),)
    return ((cell if isinstance(cell, str) else format(cell, column.format), ""),)


def to_rich(table: Table, *, intervals: bool = True) -> "RichTable":
    """A table for a terminal. Its texts are not read as markup."""
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(box=None, padding=(0, 1), pad_edge=False, header_style="dim", show_header=table.headed)
    for column in table.columns:
        wraps = column.align == "left" if column.wrap is None else column.wrap
        style = _STYLES.get(column.style, "")
        made.add_column(Text(column.heading), justify=column.align, style=style, no_wrap=not wraps, overflow="fold")
    for row in table.rows:
        of_cells = (spans_of(cell, column) for cell, column in zip(row, table.columns, strict=True))
        shown = ([one for one in spans if intervals or one[1] != "interval"] for spans in of_cells)
        made.add_row(*(Text.assemble(*((text, _STYLES.get(style, "")) for text, style in spans)) for spans in shown))
    return made


def show(console: "Console", table: Table, *, whole: bool = False) -> None:
    """Prints a table.

    A `whole` one is not wrapped in a pipe, and loses its intervals in a terminal that is too narrow for it.
    """
    from rich.text import Text

    if table.title:
        console.print(Text(table.title, "bold"))
    made = to_rich(table)
    if whole:
        width = console.measure(made, options=console.options.update(max_width=_WIDEST)).maximum
        if not console.is_terminal:
            console.width = max(console.width, width)
        made = to_rich(table, intervals=width <= console.width)
    console.print(made)
    for note in table.footnotes:
        console.print(note, style="dim", markup=False)


def show_lines(console: "Console", lines: Iterable[Span], *, soft_wrap: bool = False) -> None:
    """Prints lines, each in its style."""
    for text, style in lines:
        console.print(text, style=_STYLES.get(style, ""), markup=False, soft_wrap=soft_wrap)


def to_html(table: Table) -> str:
    """A table as an element of a page."""
    classes = [' class="n"' * (column.align == "right") for column in table.columns]
    headings = [html.escape(column.heading) for column in table.columns]
    rows = [
        ["".join(map(_span, spans_of(cell, column))) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    parts = [f"<h3>{html.escape(table.title)}</h3>"] if table.title else []
    parts.append('<div class="scroll"><table>')
    for tag, row in [*[("th", headings)] * table.headed, *(("td", row) for row in rows)]:
        cells = (f"<{tag}{kind}>{text}</{tag}>" for kind, text in zip(classes, row, strict=True))
        parts.append(f"<tr>{''.join(cells)}</tr>")
    parts.append("</table></div>")
    parts += [f'<p class="faint">{html.escape(note)}</p>' for note in table.footnotes]
    return "\n".join(parts)


def _span(span: Span) -> str:
    text, style = html.escape(span[0]), span[1]
    if style.startswith("system-"):
        return f'<span class="key" style="background: var(--{style})"></span>{text}'
    return f'<span class="{style}">{text}</span>' if style and text.strip() else text


def to_csv(table: Table, *, spreadsheet: bool = False) -> str:
    """A table as CSV: unformatted values, empty for None.

    Spreadsheet programs run texts that look like formulas: such a text gets an apostrophe before it. They also cut long
    texts silently: `spreadsheet` cuts them with a mark.
    """
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\r\n" if spreadsheet else "\n")
    writer.writerow([_plain(column.heading, cut=spreadsheet) for column in table.columns])
    for row in table.rows:
        values = [cell.value if isinstance(cell, Cell) else cell for cell in row]
        writer.writerow([_plain(value, cut=spreadsheet) for value in values])
    return written.getvalue()


def _plain(value: Any, *, cut: bool) -> Any:
    if not isinstance(value, str):
        return value
    text = f"{value[:_LONGEST_CELL]} […]" if cut and len(value) > _LONGEST_CELL else value
    seems_formula = text.lstrip("'").startswith(_BEGINNINGS_OF_FORMULAS)
    return f"'{text}" if seems_formula else text


_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **dict.fromkeys("★▲▼", ""),
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "×": r"$\times$",
    "±": r"$\pm$",
    "↓": r"$\downarrow$",
    "†": r"$^{*}$",
}


def to_latex(table: Table) -> str:
    """A table as a `tabular` of LaTeX with the rules of booktabs.

    What has ★ is bold, intervals are small, † stands for ▲ and ▼, and * for †.
    """
    lines = [rf"\begin{{tabular}}{{{''.join(column.align[0] for column in table.columns)}}}", r"\toprule"]
    if table.headed:
        lines += [" & ".join(_latex([(column.heading, "")]) for column in table.columns) + r" \\", r"\midrule"]
    for row in table.rows:
        cells = (spans_of(cell, column) for cell, column in zip(row, table.columns, strict=True))
        lines.append(" & ".join(map(_latex, cells)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex(spans: Sequence[Span]) -> str:
    marks = "".join(text[:1] for text, _ in spans)
    parts = []
    for text, style in spans:
        if written := "".join(_LATEX.get(sign, sign) for sign in text).strip():
            is_best = "★" in marks and style != "interval"
            parts.append(
                rf"\textbf{{{written}}}" if is_best else rf"{{\small {written}}}" * (style == "interval") or written
            )
    return " ".join(parts) + r"$^{\dagger}$" * ("▲" in marks or "▼" in marks)
