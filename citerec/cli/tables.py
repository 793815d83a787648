"""Answers in a terminal."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from citerec.cli.console import output
from citerec.corpus.matching import edition_name
from citerec.files.text import counted
from citerec.records import MARKER, Answer, Hit, Paper

if TYPE_CHECKING:
    from citerec.write.citation import Tldr

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
