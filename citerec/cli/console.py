"""Output of the commands: answers and notes in a terminal or a file."""

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from citerec.corpus.matching import edition_name
from citerec.evaluation.tables import Column, Table, left, right, show
from citerec.files.text import counted, printable
from citerec.records import MARKER, Answer, Hit, Paper

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


if TYPE_CHECKING:
    from citerec.write.drafting import Tldr

_AUTHORS_SHOWN = 3
_SHOWN_WORDS = 8
_QUOTED = 160
_SHOWN_REASONS = 5


def show_answer(
    answer: Answer,
    titles: Mapping[str, str],
    name: str | int | None = None,
    tldrs: "Mapping[str, Tldr] | None" = None,
    *,
    remarks: Mapping[str, Sequence[Text]] | None = None,
) -> None:
    """Shows an answer: the sentence, then its papers with numbers from 1, and how sure the system is of them.

    Args:
        answer: The answer.
        titles: Titles of the papers whose citing sentences are quoted, by id.
        name: Name or number of the answer, if there are several.
        tldrs: TLDRs of the papers by id, if they are wanted.
        remarks: Lines below what the record of a paper says, by its id.
    """
    console = output()
    console.print()
    console.print(Text(f"[{name}] " if name is not None else "", "bold"), with_marker(answer.context.text), sep="")
    sure = answer.confidence and f"sure that one of the first ten is right: {answer.confidence.among_ten:.0%}"
    if not answer.hits:
        why = f"nothing here fits well enough ({sure})" if sure else "no paper found"
        console.print(f"  {why}", style="dim")
        return
    # Not a table of values: each paper is a block of styled lines, some of them links.
    table = RichTable(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    table.add_column("#", justify="right", style="bold")
    table.add_column("paper", ratio=1, overflow="fold")
    table.add_column("score", justify="right")
    for number, hit in enumerate(answer.hits, 1):
        more = (remarks or {}).get(hit.paper.paper_id, ())
        table.add_row(str(number), Group(*_lines(hit, titles, tldrs or {}), *more), f"{hit.score:.2f}")
    console.print(table)
    if answer.confidence:
        console.print(f"  {sure}; that its first one is: {answer.confidence.first:.0%}", style="dim")


def with_marker(text: str, style: str = "italic") -> Text:
    """A text in which the marker is seen at once."""
    before, marker, after = text.partition(MARKER)
    return Text.assemble((before, style), (marker, "bold yellow"), (after, style))


def _lines(hit: Hit, titles: Mapping[str, str], tldrs: "Mapping[str, Tldr]") -> list[Text]:
    paper = hit.paper
    title = Text(paper.title or "(untitled)", style="bold")
    if paper.external_ids.get("DOI"):
        title.stylize(f"link https://doi.org/{paper.external_ids['DOI']}")
    lines = [title, about(paper)]
    if hit.cited_before:
        lines.append(headed("in your draft", f"you cite it already, {counted(hit.cited_before, 'time')}"))
    if hit.also:
        lines.append(headed("also", also_named(hit)))
    if tldr := tldrs.get(paper.paper_id):
        lines.append(tldr_line(tldr))
    if hit.citance:
        quoted = hit.citance.text if len(hit.citance.text) <= _QUOTED else hit.citance.text[:_QUOTED].rstrip() + "…"
        by = titles.get(hit.citance.citing_id) or hit.citance.citing_id
        lines.append(headed("cited so", f"“{quoted}”", "italic").append(f" — {by}", "dim"))
    if hit.matches:
        shown = ", ".join(
            f"{match.word} ({'+'.join(match.fields) or 'text'})" + (f" {match.score:.1f}" if match.score else "")
            for match in hit.matches[:_SHOWN_WORDS]
        )
        more = len(hit.matches) - _SHOWN_WORDS
        lines.append(headed("matched", shown + (f" and {more} more" if more > 0 else "")))
    for heading, way in (("lifted by", 1), ("held back by", -1)):
        reasons = [reason for reason in hit.reasons if round(way * reason.score, 2) > 0][:_SHOWN_REASONS]
        if reasons:
            shown = ", ".join(f"{reason.name} {reason.score:+.2f}" for reason in reasons)
            lines.append(headed(heading, shown, of_heading="green" if way > 0 else "yellow"))
    return lines


def headed(heading: str, text: str, style: str = "default", *, of_heading: str = "green") -> Text:
    """A line that begins with what it is."""
    return Text(f"{heading}: ", of_heading).append(text, style)


def also_named(hit: Hit) -> str:
    """The other editions of a hit, in words: "arXiv preprint 2018, 900000041"."""
    return "; ".join(f"{edition_name(paper)}, {paper.paper_id}" for paper in hit.also)


def tldr_line(tldr: "Tldr") -> Text:
    """A TLDR and where it comes from."""
    if tldr.text is None:
        return Text("no TLDR: it has no abstract", style="yellow")
    by = "of the corpus" if tldr.origin == "corpus" else f"from its abstract, by the writer {tldr.origin}"
    return Text.assemble(("TLDR: ", "green"), tldr.text, (f"  — {by}", "dim"))


def about(paper: Paper) -> Text:
    """Authors, venue, year, citations and id of a paper, in one line."""
    parts = [_authors(paper.authors), paper.venue or "", str(paper.year or "year unknown")]
    if paper.citation_count is not None:
        parts.append(f"{paper.citation_count:,} citations")
    return Text(" · ".join(part for part in parts if part), style="dim").append(f"  {paper.paper_id}", "cyan")


def _authors(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_AUTHORS_SHOWN])
    return f"{shown} et al." if len(names) > _AUTHORS_SHOWN else shown
