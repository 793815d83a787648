"""Output of the commands: answers and notes in a terminal or a file."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.protocol import is_renderable
from rich.table import Table as RichTable
from rich.text import Text

from citerec.corpus.matching import edition_name
from citerec.errors import CiterecError
from citerec.files.text import counted, printable
from citerec.records import MARKER, Answer, Hit, Paper, why

if TYPE_CHECKING:  # tables of results take a while to import, which answers without a table need not wait for
    from citerec.drafts import Draft
    from citerec.evaluation.tables import Table
    from citerec.write.drafting import Tldr

_OTHER_CONTROLS = re.compile(rb"\x7f|\xc2[\x80-\x9f]")
_AUTHORS_SHOWN = 3
_SHOWN_WORDS = 8
_VERDICTS = {"sure": "bold green", "likely": "cyan", "weak": "dim"}
_QUOTED = 160
_SHOWN_REASONS = 5


def say(*parts: Any, whole: bool = False) -> None:
    """Prints the parts of an answer to standard output: lines without markup, tables, and what rich can print.

    Without a terminal, it is 100 characters wide.

    Args:
        parts: The parts; lines and styled lines are never wrapped, and bytes are printed as they are.
        whole: Whether tables are not wrapped in a pipe.
    """
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=100)
    for part in parts:
        if isinstance(part, bytes):
            write(part)
        elif is_renderable(part):
            console.print(part, markup=False, soft_wrap=isinstance(part, str | Text))
        else:
            from citerec.evaluation.tables import show

            show(console, part, whole=whole)


def write(content: bytes) -> None:
    """Writes bytes to standard output, after what was printed there."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def ask(question: str) -> str:
    """A line of standard input in answer to a question on standard error; EOFError at its end."""
    return Console(stderr=True, highlight=False).input(question, markup=False).strip()


def is_terminal() -> bool:
    """Whether a person sits before a screen on which a cursor can move."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def confirm(question: str, *, default: bool) -> bool:
    """Whether the answer to a question is yes; an empty one is the default."""
    from rich.prompt import Confirm

    return Confirm.ask(question, console=Console(stderr=True, highlight=False), default=default)


def note(line: str, style: str = "") -> None:
    """Prints a line without markup to standard error, so that answers can be piped."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(line, markup=False, style=style)


def note_missing(draft: "Draft") -> None:
    """Prints which files a draft takes in that are not there, if any: what they say is not read."""
    for path in draft.missing:
        note(f"{path} is not there: the draft takes it in, and what it says is not read.", style="yellow")


def end_of_check(path: Path, faults: Iterable[str], remedy: str) -> None:
    """Prints the faults that a check found, and raises a CiterecError if there are some."""
    if listed := list(faults):
        for fault in listed:
            note(f"- {fault}")
        raise CiterecError(f"{path} is damaged: {len(listed)} fault(s)", remedy)
    say(f"{path}: whole. All its files agree.")


def json_bytes(value: Any, *, indented: bool = False) -> bytes:
    """A value as lines of JSON, in which no control character stands unescaped."""
    import orjson

    text = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if indented else 0))
    # orjson escapes those of ASCII; a terminal may obey the others too.
    return _OTHER_CONTROLS.sub(lambda match: rb"\u%04x" % ord(match[0].decode()), text)


def give(
    form: str,
    out: Path | None,
    json: Any | Callable[[], Any],
    parts: Iterable[Any],
    *,
    papers: Iterable[Paper] = (),
    lines: Iterable[bytes] = (),
    whole: bool = False,
) -> None:
    """Gives an answer in the form that is asked for, on standard output or in a file.

    Args:
        form: The value of `--format`: `table`, `json`, a form of bibliography, or another, of `lines`.
        out: The value of `--out`.
        json: The answer for programs, or what makes it.
        parts: The answer for people, as `say` prints it.
        papers: The papers of a bibliography.
        lines: The lines of another form.
        whole: As of `say`.

    Raises:
        BuildError: The file cannot be written.
    """
    with _written_to(out):
        match form:
            case "table":
                say(*parts, whole=whole)
            case "json":
                write(json_bytes(json() if callable(json) else json, indented=True))
            case "bibtex" | "csl" | "ris":
                write(entries_in(papers, form))
            case _:
                for line in lines:
                    write(line)


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


def entries_in(papers: Iterable[Paper], form: str) -> bytes:
    """Papers as a bibliography in the form `bibtex`, `csl` or `ris`, each once."""
    from citerec.corpus.base import entries_of

    entries = entries_of({paper.paper_id: paper for paper in papers}.values(), form)
    if form == "csl":
        return json_bytes(entries, indented=True)
    text = "\n\n".join(entries)
    # As bytes: in a pipe an author's own entry is printed unchanged, with its line ends.
    return (printable(text) if sys.stdout.isatty() else text).encode() + b"\n"


def counts_table(counts: Mapping[str, int]) -> "Table":
    """Counts, each followed by its name."""
    from citerec.evaluation.tables import Table, left, right

    rows = [[count, name] for name, count in counts.items()]
    return Table([*right("", format=",", style="name"), *left("")], rows, headed=False)


def note_set_aside(bad: int, faults: int, quarantine: object) -> None:
    """Prints how many parts of full texts could not be used, if any, and which file lists them."""
    if bad or faults:
        note(
            f"Set aside: {bad:,} lines that are not full texts, {faults:,} annotations that do not fit their text. "
            f"See {quarantine}"
        )


def size_in_words(count: float) -> str:
    """A number of bytes, such as 1.2 MB."""
    from rich.filesize import decimal

    return decimal(round(count))


def parts_of(
    answer: Answer,
    titles: Mapping[str, str],
    name: object = None,
    tldrs: "Mapping[str, Tldr] | None" = None,
    *,
    remarks: Mapping[str, Sequence[Text]] | None = None,
    scores: bool = False,
) -> Iterator[Any]:
    """An answer for people: the sentence, its papers with numbers from 1, and how sure the system is of them.

    Args:
        answer: The answer.
        titles: Titles of the papers whose citing sentences are quoted, by id.
        name: Name or number of the answer, if there are several.
        tldrs: TLDRs of the papers by id, if they are wanted.
        remarks: Lines below what the record of a paper says, by its id.
        scores: Whether scores are shown, too, and what they are made of.
    """
    yield ""
    yield Group(Text(f"[{name}] " if name is not None else "", "bold").append(with_marker(answer.context.text)))
    sure = answer.confidence and f"one of the first ten is right with {answer.confidence.among_ten:.0%}"
    if not answer.hits:
        yield Text(f"  nothing here fits well enough ({sure})" if sure else "  no paper found", "dim")
        return
    if answer.nothing_fits:
        yield Text("  Nothing in this index seems to fit. These papers are the nearest.", "yellow")
    # Not a table of values: each paper is a block of styled lines, some of them links.
    table = RichTable(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    table.add_column("#", justify="right", style="bold")
    table.add_column("paper", ratio=1, overflow="fold")
    has_scores = scores or not answer.confidence
    for shown, heading in ((answer.confidence, ""), (has_scores, "score")):
        if shown:
            table.add_column(heading, justify="right")
    for number, hit in enumerate(answer.hits, 1):
        lines = Group(*_lines(hit, titles, tldrs or {}, scores), *(remarks or {}).get(hit.paper.paper_id, ()))
        verdict = [Text(hit.verdict, _VERDICTS[hit.verdict])] if hit.verdict else []
        table.add_row(str(number), lines, *verdict, *([f"{hit.score:.2f}"] if has_scores else []))
    yield table
    if answer.confidence and not answer.nothing_fits:
        first, among_ten = answer.confidence.first, answer.confidence.among_ten
        yield Text(f"  The first is right with {first:.0%}, one of the first ten with {among_ten:.0%}.", "dim")


def with_marker(text: str, style: str = "italic") -> Text:
    """A text in which the marker is seen at once."""
    before, marker, after = text.partition(MARKER)
    return Text.assemble((before, style), (marker, "bold yellow"), (after, style))


def _lines(hit: Hit, titles: Mapping[str, str], tldrs: "Mapping[str, Tldr]", scores: bool) -> Iterator[Text]:
    yield titled(hit.paper)
    if hit.cited_before:
        yield headed("in your draft", f"you cite it already, {counted(hit.cited_before, 'time')}")
    if hit.also:
        yield headed("also", "; ".join(f"{edition_name(paper)}, {paper.paper_id}" for paper in hit.also))
    if tldr := tldrs.get(hit.paper.paper_id):
        yield tldr_line(tldr)
    if hit.citance:
        quoted = hit.citance.text if len(hit.citance.text) <= _QUOTED else hit.citance.text[:_QUOTED].rstrip() + "…"
        by = titles.get(hit.citance.citing_id) or hit.citance.citing_id
        yield headed("cited so", f"“{quoted}”", "italic").append(f" — {by}", "dim")
    if told := why(hit):
        yield headed("why", "; ".join(told))
    if hit.matches and scores:
        shown = ", ".join(
            f"{match.word} ({'+'.join(match.fields) or 'text'})" + (f" {match.score:.1f}" if match.score else "")
            for match in hit.matches[:_SHOWN_WORDS]
        )
        more = len(hit.matches) - _SHOWN_WORDS
        yield headed("matched", shown + (f" and {more} more" if more > 0 else ""))
    for heading, way, colour in (("lifted by", 1, "green"), ("held back by", -1, "yellow")) if scores else ():
        reasons = [reason for reason in hit.reasons if round(way * reason.score, 2) > 0][:_SHOWN_REASONS]
        if reasons:
            shown = ", ".join(f"{reason.name} {reason.score:+.2f}" for reason in reasons)
            yield headed(heading, shown, of_heading=colour)


def headed(heading: str, text: str, style: str = "default", *, of_heading: str = "green") -> Text:
    """A line that begins with what it is."""
    return Text(f"{heading}: ", of_heading).append(text, style)


def tldr_line(tldr: "Tldr") -> Text:
    """A TLDR and where it comes from."""
    if tldr.text is None:
        return Text("no TLDR: it has no abstract", style="yellow")
    by = "of the corpus" if tldr.origin == "corpus" else f"from its abstract, by the writer {tldr.origin}"
    return Text.assemble(("TLDR: ", "green"), tldr.text, (f"  — {by}", "dim"))


def titled(paper: Paper) -> Text:
    """The title of a paper; and authors, venue, year, citations and id in a line below it."""
    title = Text(paper.title or "(untitled)", style="bold")
    if paper.external_ids.get("DOI"):
        title.stylize(f"link https://doi.org/{paper.external_ids['DOI']}")
    more = " et al." if len(paper.authors) > _AUTHORS_SHOWN else ""
    parts = [", ".join(paper.authors[:_AUTHORS_SHOWN]) + more, paper.venue or "", str(paper.year or "year unknown")]
    if paper.citation_count is not None:
        parts.append(f"{paper.citation_count:,} citations")
    return Text.assemble(title, "\n", (" · ".join(filter(None, parts)), "dim"), (f"  {paper.paper_id}", "cyan"))
