"""Drafts and TLDRs in a terminal and as JSON."""

from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from citerec.cli.console import output, print_entries
from citerec.cli.tables import about, tldr_line
from citerec.records import json_id

if TYPE_CHECKING:
    from citerec.generate.citation import CitationText
    from citerec.generate.tldr import Tldr


def show_draft(draft: "CitationText", *, sentence: str = "", form: str | None = "bibtex") -> None:
    """Shows a draft: its sentence, the text, the papers that the numbers refer to, and their entries in a form."""
    console = output()
    if sentence:
        console.print(Text(f"\n{sentence}", "italic"))
    console.print(Text.assemble("\n", *_parts(draft), f"  — {draft.prediction.writer}\n"), soft_wrap=False)
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(style="bold yellow", no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for number, paper in enumerate(draft.papers):
        lines = Text.assemble((paper.title or "(untitled)", "bold"), "\n", about(paper))
        table.add_row(f"[{number}]", lines.append("  no abstract", "yellow") if paper in draft.without_text else lines)
    console.print(table)
    if form:
        click.echo()
        print_entries(draft.papers, form)


def _parts(draft: "CitationText") -> list[Any]:
    """The sentences, each with the papers that it is based on but does not cite itself."""
    from citerec.generate.check import marked_sentence, placed
    from citerec.generate.mentions import mentions

    sources = draft.prediction.task.sources
    parts: list[Any] = []
    for gap, sentence in placed(draft.prediction):
        parts.append(gap)  # keeps paragraphs
        if sentence is None:
            break
        parts.append((marked_sentence(sentence, sources), "red" if sentence.unknown else ""))
        cited = {number for mention in mentions(sentence.text, sources) for number in mention.sources}
        silent = [number for number in sentence.attributions if number not in cited]
        if silent:
            parts.append((f" ‹from {', '.join(map(str, silent))}›", "dim"))
        if not sentence.attributions and not sentence.unknown:
            parts.append((" ‹from none of the papers›", "yellow"))
        if sentence.unsupported:
            parts.append((f" ‹little of it is in {', '.join(map(str, sentence.unsupported))}›", "yellow"))
    return parts


def show_tldrs(tldrs: "list[Tldr]") -> None:
    """Shows TLDRs, each under the title of its paper."""
    console = output()
    for tldr in tldrs:
        console.print(Text.assemble((tldr.paper.title or "(untitled)", "bold"), "\n", about(tldr.paper)))
        console.print(tldr_line(tldr))
        console.print()


def tldr_json(tldr: "Tldr") -> dict[str, Any]:
    """A TLDR as a JSON object; `origin` is `corpus`, or the name of the writer."""
    return {
        "paper_id": json_id(tldr.paper.paper_id),
        "title": tldr.paper.title,
        "tldr": tldr.text,
        "origin": tldr.origin if tldr.text is not None else None,
    }
