"""Output of the commands: answers and notes."""

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.evaluation.rendering import Column, Table, left, right, show
from citerec.files.text import printable
from citerec.records import Paper

if TYPE_CHECKING:
    from rich.console import Console


_OTHER_CONTROLS = re.compile(rb"\x7f|\xc2[\x80-\x9f]")


def output() -> "Console":
    """The console for answers. Without a terminal, lines are 100 characters wide."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100)


def say(line: str) -> None:
    """Prints a line of an answer without markup."""
    output().print(line, markup=False, soft_wrap=True)


def write(content: bytes) -> None:
    """Writes bytes to standard output, after what was printed there."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def ask(question: str) -> str:
    """A line of standard input in answer to a question on standard error; EOFError at its end."""
    from rich.console import Console

    return Console(stderr=True, highlight=False).input(question, markup=False).strip()


def confirm(question: str, *, default: bool) -> bool:
    """Whether the answer to a question is yes; an empty one is the default."""
    from rich.console import Console
    from rich.prompt import Confirm

    return Confirm.ask(question, console=Console(stderr=True, highlight=False), default=default)


def note(line: str, style: str = "") -> None:
    """Prints a line without markup to standard error, so that answers can be piped."""
    from rich.console import Console

    Console(stderr=True, highlight=False, soft_wrap=True).print(line, markup=False, style=style)


def print_json(value: Any) -> None:
    """Prints a value as indented JSON."""
    import orjson

    write(json_bytes(value, orjson.OPT_INDENT_2) + b"\n")


def json_bytes(value: Any, option: int = 0) -> bytes:
    """A value as JSON, in which no control character stands unescaped."""
    import orjson

    # orjson escapes those of ASCII; a terminal may obey the others too.
    return _OTHER_CONTROLS.sub(lambda match: rb"\u%04x" % ord(match[0].decode()), orjson.dumps(value, option=option))


def give(
    form: str,
    out: Path | None,
    *,
    json: Callable[[], Any],
    table: Callable[[], object],
    papers: Callable[[], Iterable[Paper]] | None = None,
    **others: Callable[[], object],
) -> None:
    """Gives an answer in the form that is asked for, on standard output or in a file.

    Args:
        form: The value of `--format`: `table`, `json`, a form of bibliography, or another.
        out: The value of `--out`.
        json: Makes the value that is given as JSON.
        table: Prints the answer for people.
        papers: The papers of a bibliography.
        others: By form what prints it.

    Raises:
        BuildError: The file cannot be written.
    """
    with _written_to(out):
        if form == "json":
            print_json(json())
        elif form in others:
            others[form]()
        elif form != "table" and papers:
            print_entries(papers(), form)
        else:
            table()


@contextlib.contextmanager
def _written_to(path: Path | None) -> Iterator[None]:
    """Lets what is printed within be written to a file, whole or not at all; None for standard output."""
    if path is None:
        yield
        return
    from citerec.files.writing import write_failures, writing_file

    with (
        write_failures(path, "Give another --out, or make room."),
        writing_file(path) as partial,
        partial.open("w", encoding="utf-8", newline="") as file,
        contextlib.redirect_stdout(file),
    ):
        yield
    note(f"{path} written.")


def print_entries(papers: Iterable[Paper], form: str) -> None:
    """Prints papers as a bibliography in the form `bibtex`, `csl` or `ris`, each once."""
    from citerec.corpus.base import entries_of

    entries = entries_of({paper.paper_id: paper for paper in papers}.values(), form)
    if form == "csl":
        print_json(entries)
        return
    text = "\n\n".join(entries)
    # As bytes: in a pipe an author's own entry is printed unchanged, with its line ends.
    write((printable(text) if sys.stdout.isatty() else text).encode() + b"\n")


def show_counts(counts: Mapping[str, int]) -> None:
    """Prints counts, each followed by its name."""
    rows = [[count, name] for name, count in counts.items()]
    show(output(), Table([*right("", format=",", style="name"), *left("")], rows, headed=False))


def show_numbers(heading: str, rows: Mapping[str, Mapping[str, Any]], format: str = ".3f") -> None:
    """Prints a table of numbers by the names of rows and columns; whole numbers and texts stay as they are."""

    def column(name: str, value: object) -> Column:
        if isinstance(value, str):
            return left(name)[0]
        return right(name, format="," if isinstance(value, int) else format)[0]

    columns = [column(name, value) for name, value in next(iter(rows.values())).items()]
    show(output(), Table([*left(heading), *columns], [[name, *row.values()] for name, row in rows.items()]))


def note_set_aside(done: Any) -> None:
    """Prints how many parts of full texts could not be used: `bad` and `faults`, listed in `quarantine`."""
    if done.quarantine:
        note(
            f"Set aside: {done.bad:,} lines that are not full texts, {done.faults:,} annotations that do not fit their "
            f"text. See {done.quarantine}"
        )


def size_in_words(count: float) -> str:
    """A number of bytes, such as 1.2 MB."""
    from rich.filesize import decimal

    return decimal(round(count))
