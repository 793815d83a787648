"""Tables as data, shown in a terminal, as CSV, HTML, or LaTeX."""

import csv
import html
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

# Styles by meaning, for the terminal. HTML has a class of each name.
_STYLES = {
    "faint": "not bold dim",
    "strong": "bold",
    "better": "green",
    "worse": "red",
    "warning": "yellow",
    "name": "cyan",
    "oracle": "not bold italic",
    "best": "",
}
_BEGINNINGS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_CELL = 32_000  # spreadsheets silently cut cells after 32,767 characters
_WIDEST = 1000

Span = tuple[str, str]
"""A piece of text and its style: "", one of `faint`, `strong`, `better`, `worse`, `warning`, `name`, `oracle`, `best`,
or `system-3`, which HTML shows as a dot in the colour of that number."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its value, for CSV, and its spans, as shown to people."""

    value: Any
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. Widths are in characters of a terminal."""

    heading: str
    align: Literal["left", "right"] = "left"  # numbers are right-aligned
    format: str = ""  # of numbers, as in Python's format strings
    style: str = ""  # of all its cells
    least: int = 0
    most: int = 0  # 0 for any width
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


def to_rich(table: Table) -> "RichTable":
    """A table for a terminal. Its texts are not read as markup."""
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(box=None, padding=(0, 1), pad_edge=False, header_style="dim", show_header=table.headed)
    rows = [
        [_text(spans_of(cell, column)) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows
    ]
    for number, column in enumerate(table.columns):
        wraps = column.align == "left" if column.wrap is None else column.wrap
        heading = Text(column.heading)
        moved = column.align == "right" and _line_up([heading, *(row[number] for row in rows)], column.least)
        made.add_column(
            heading,
            justify="left" if moved else column.align,
            style=_STYLES.get(column.style, ""),
            no_wrap=not wraps,
            overflow="fold",
            min_width=column.least or None,
            max_width=column.most or None,
        )
    for row in rows:
        made.add_row(*row)
    return made


def _line_up(texts: "Sequence[Text]", least: int) -> bool:
    """Aligns the heading and the cells of a column on the right, if some end in spaces, as numbers without a mark do.

    Rich would drop these spaces, so that numbers with a mark would stand further left than those without.

    Returns:
        Whether it was needed.
    """
    ends = {len(text.plain) - len(text.plain.rstrip(" ")) for text in texts[1:] if text.plain.strip()}
    if len(ends) < 2:
        return False
    width = max(least, *(text.cell_len for text in texts))
    for text in texts:
        text.pad_left(width - text.cell_len)
    return True


def _text(spans: Iterable[Span]) -> "Text":
    from rich.text import Text

    return Text.assemble(*((text, _STYLES.get(style, "")) for text, style in spans))


def show(console: "Console", table: Table, narrower: Callable[[], Table] | None = None) -> bool:
    """Prints a table, or a narrower one if the terminal is too narrow for it; returns whether the table fits.

    In a pipe every table fits.
    """
    from rich.text import Text

    if table.title:
        console.print(Text(table.title, "bold"))
    made = to_rich(table)
    width = console.measure(made, options=console.options.update(max_width=_WIDEST)).maximum
    if narrower and not console.is_terminal:
        console.width = max(console.width, width)
    fits = width <= console.width
    console.print(made if fits or not narrower else to_rich(narrower()))
    for note in table.footnotes:
        console.print(note, style="dim", markup=False)
    return fits


def show_lines(console: "Console", lines: Iterable[Span], *, soft_wrap: bool = False) -> None:
    """Prints lines, each in its style."""
    for text, style in lines:
        console.print(text, style=_STYLES.get(style, ""), markup=False, soft_wrap=soft_wrap)


def to_html(table: Table) -> str:
    """A table as an element of a page."""
    parts = [f"<h3>{html.escape(table.title)}</h3>"] if table.title else []
    parts.append('<div class="scroll"><table>')
    if table.headed:
        cells = (f"<th{_class(column)}>{html.escape(column.heading)}</th>" for column in table.columns)
        parts.append(f"<tr>{''.join(cells)}</tr>")
    for row in table.rows:
        spans = ((column, spans_of(cell, column)) for cell, column in zip(row, table.columns, strict=True))
        cells = (f"<td{_class(column)}>{''.join(map(_span, of_cell))}</td>" for column, of_cell in spans)
        parts.append(f"<tr>{''.join(cells)}</tr>")
    parts.append("</table></div>")
    parts += [f'<p class="faint">{html.escape(note)}</p>' for note in table.footnotes]
    return "\n".join(parts)


def _class(column: Column) -> str:
    return ' class="n"' if column.align == "right" else ""


def _span(span: Span) -> str:
    text, style = html.escape(span[0]), span[1]
    if style.startswith("system-"):
        return f'<span class="key" style="background: var(--{style})"></span>{text}'
    return f'<span class="{style}">{text}</span>' if style and text.strip() else text


_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "★": "", "–": "--",
    "×": r"$\times$", "±": r"$\pm$", "↓": r"$\downarrow$", "▲": r"$^{\dagger}$", "▼": r"$^{\dagger}$", "†": r"$^{*}$",
}  # fmt: skip


def to_latex(table: Table) -> str:
    """A table as a `tabular` of LaTeX with the rules of booktabs.

    What is best or marked is bold, what is faint small. † stands for ▲ and ▼, and * for †.
    """
    lines = [
        rf"\begin{{tabular}}{{{''.join('r' if one.align == 'right' else 'l' for one in table.columns)}}}",
        r"\toprule",
    ]
    if table.headed:
        lines += [" & ".join(_latex((one.heading, "")) for one in table.columns) + r" \\", r"\midrule"]
    for row in table.rows:
        cells = (spans_of(cell, column) for cell, column in zip(row, table.columns, strict=True))
        written = (" ".join(filter(None, map(_latex, spans))).replace(" $^", "$^") for spans in cells)
        lines.append(" & ".join(written) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex(span: Span) -> str:
    text, style = "".join(_LATEX.get(character, character) for character in span[0]).strip(), span[1]
    wrapped = {"best": rf"\textbf{{{text}}}", "faint": rf"{{\small {text}}}", "oracle": rf"\textit{{{text}}}"}
    return wrapped.get(style, text) if text else ""


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
    return f"'{text}" if _seems_formula(text) else text


def _seems_formula(text: str) -> bool:
    """Whether it is like a formula, with or without apostrophes before it."""
    return text.lstrip("'").startswith(_BEGINNINGS_OF_FORMULAS)
