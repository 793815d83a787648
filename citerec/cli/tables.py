"""Answers and indexes in a terminal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from citerec.cli.console import output, size_in_words
from citerec.evaluation.rendering import Table, left, right, show
from citerec.records import MARKER, Answer, Hit, Paper

if TYPE_CHECKING:
    from citerec.index.describe import Description
    from citerec.write.tldr import Tldr

_AUTHORS_SHOWN = 3
_BAR_WIDTH = 24
_LONGEST_NAME = 48
_SHOWN_WORDS = 8
_QUOTED = 160
_SHOWN_REASONS = 5
_TIMES = {1: "once", 2: "twice"}


@dataclass(frozen=True, slots=True)
class Remarks:
    """What is shown with a paper: `lines` below what its record says, and a `heading` above it."""

    lines: Sequence[Text] = ()
    heading: str = ""


def show_answer(
    answer: Answer,
    titles: Mapping[str, str],
    name: str | int | None = None,
    tldrs: "Mapping[str, Tldr] | None" = None,
    *,
    withheld: bool = False,
    remarks: Mapping[str, Remarks] | None = None,
) -> None:
    """Shows an answer: the sentence, then its papers with numbers from 1, and how sure the system is of them.

    Args:
        answer: The answer.
        titles: Titles of the papers whose citing sentences are quoted, by id.
        name: Name or number of the answer, if there are several.
        tldrs: TLDRs of the papers by id, if they are wanted.
        remarks: What else is shown with papers, by id.
        withheld: Whether an answer without hits had some, of which the system is not sure enough.
    """
    before, _, after = answer.context.text.partition(MARKER)
    sentence = Text(f"[{name}] " if name is not None else "", style="bold")
    sentence.append(before, style="not bold italic")
    if MARKER in answer.context.text:
        sentence.append(MARKER, style="bold yellow")
    sentence.append(after, style="not bold italic")
    console = output()
    console.print()
    console.print(sentence)
    sure = answer.confidence and f"sure that one of the first ten is right: {answer.confidence.among_ten:.0%}"
    if not answer.hits:
        why = f"nothing here fits well enough ({sure})" if withheld and sure else "no paper found"
        console.print(f"  {why}", style="dim")
        return
    # Not a table of values: each paper is a block of styled lines, some of them links.
    table = RichTable(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    table.add_column("#", justify="right", style="bold")
    table.add_column("paper", ratio=1, overflow="fold")
    table.add_column("score", justify="right")
    for number, hit in enumerate(answer.hits, 1):
        more = (remarks or {}).get(hit.paper.paper_id, Remarks())
        if more.heading:
            table.add_row("", Text(more.heading, style="dim"), "")
        table.add_row(str(number), Group(*_lines(hit, titles, tldrs or {}), *more.lines), f"{hit.score:.2f}")
    console.print(table)
    if answer.confidence and sure:
        best = min(range(len(answer.hits)), key=lambda place: answer.hits[place].rank)
        named = f"number {best + 1}, which the system ranks first," if best else "the first"
        console.print(f"  {sure}; that {named} is: {answer.confidence.first:.0%}", style="dim")


def _lines(hit: Hit, titles: Mapping[str, str], tldrs: "Mapping[str, Tldr]") -> list[Text]:
    paper = hit.paper
    title = Text(paper.title or "(untitled)", style="bold")
    if paper.external_ids.get("DOI"):
        title.stylize(f"link https://doi.org/{paper.external_ids['DOI']}")
    lines = [title, about(paper)]
    if hit.cited_before:
        often = _TIMES.get(hit.cited_before, f"{hit.cited_before} times")
        lines.append(Text("in your draft: ", style="green").append(f"you cite it already, {often}", "default"))
    if hit.also:
        lines.append(Text("also: ", style="green").append(also_named(hit), "default"))
    if tldr := tldrs.get(paper.paper_id):
        lines.append(tldr_line(tldr))
    if hit.citance:
        quoted = hit.citance.text if len(hit.citance.text) <= _QUOTED else hit.citance.text[:_QUOTED].rstrip() + "…"
        by = titles.get(hit.citance.citing_id) or hit.citance.citing_id
        lines.append(Text("cited so: ", style="green").append(f"“{quoted}”", "italic").append(f" — {by}", "dim"))
    if hit.matches:
        shown = ", ".join(
            f"{match.word} ({'+'.join(match.fields) or 'text'})" + (f" {match.score:.1f}" if match.score else "")
            for match in hit.matches[:_SHOWN_WORDS]
        )
        more = len(hit.matches) - _SHOWN_WORDS
        lines.append(
            Text("matched: ", style="green").append(shown + (f" and {more} more" if more > 0 else ""), "default")
        )
    for heading, way in (("lifted by: ", 1), ("held back by: ", -1)):
        reasons = [reason for reason in hit.reasons if round(way * reason.score, 2) > 0][:_SHOWN_REASONS]
        if reasons:
            shown = ", ".join(f"{reason.name} {reason.score:+.2f}" for reason in reasons)
            lines.append(Text(heading, style="green" if way > 0 else "yellow").append(shown, "default"))
    return lines


def also_named(hit: Hit) -> str:
    """The other editions of a hit, in words: "arXiv preprint 2018, 900000041"."""
    from citerec.corpus.matching import edition_name

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


def show_description(description: "Description") -> None:
    """Shows an index: its counts and its histograms."""
    manifest, counts, console = description.manifest, description.manifest.counts, output()
    console.print(Text(str(description.path), "bold").append(f"  {size_in_words(description.bytes)}", "not bold"))
    facts = {
        "papers": f"{counts.papers:,}",
        "  with abstract": _of(counts.with_abstract, counts.papers),
        "  with TLDR": _of(counts.with_tldr, counts.papers),
        "  with year": _of(counts.with_year, counts.papers),
        "  with citing sentences": f"{_of(counts.with_citances, counts.papers)}, {counts.citances:,} sentences",
        "set aside as unreadable": f"{counts.bad:,}",
        "overwritten (id came again)": f"{counts.duplicates:,}",
        "of papers not in the index": f"{counts.unmatched:,}",
        "sources": f"{len(manifest.sources)} files, {', '.join(sorted({s.format for s in manifest.sources}))}",
    }
    if vectors := description.vectors:
        facts["vectors"] = f"{_of(vectors.count, counts.papers)}, {size_in_words(description.vector_bytes)}"
        made = "given" if vectors.given else f"{vectors.max_tokens} tokens, {vectors.backend}"
        facts["  model"] = f"{vectors.model} ({vectors.dimension} numbers, {made})"
        kind = vectors.kind_of_search
        facts["  search"] = "exact" if kind == "exact" else f"FAISS {kind}"
    facts["engine"] = f"{manifest.engine} (citerec {manifest.citerec})"
    facts["abstract"] = "a field of its own too" if manifest.abstract_field else "searched with the title"
    if manifest.store:
        facts["store"] = manifest.store
    facts["fingerprint"] = manifest.fingerprint
    show(console, Table(left("", ""), list(facts.items()), headed=False))
    if description.years:
        console.print(f"\n[bold]years[/]  {min(description.years)}–{max(description.years)}")
        _show_bars(_spans(description.years))
    for heading, histogram in (("fields of study", description.fields), ("venues", description.venues)):
        if histogram:
            console.print(f"\n[bold]{heading}[/]")
            _show_bars(histogram)


def _spans(years: Mapping[int, int]) -> dict[str, int]:
    """Papers per five years; the oldest 1 % are counted together."""
    whole, older, oldest = sum(years.values()), 0, min(years)
    for year in sorted(years):
        older += years[year]
        if older > whole * 0.01:
            oldest = year - year % 5
            break
    spans = Counter[str]()
    for year in sorted(years):
        first = year - year % 5
        spans[f"before {oldest}" if first < oldest else f"{first}–{first + 4}"] += years[year]
    return spans


def _show_bars(histogram: Mapping[str, int]) -> None:
    most = max(histogram.values())
    rows = []
    for name, count in histogram.items():
        whole, part = divmod(round(count / most * _BAR_WIDTH * 8), 8)
        shown = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        rows.append([shown, count, "█" * whole + "▏▎▍▌▋▊▉"[part - 1] * (part > 0)])
    show(output(), Table([*left(""), *right("", format=","), *left("", style="name")], rows, headed=False))


def _of(count: int, whole: int) -> str:
    share = count / whole
    if count in (0, whole) or 0.005 <= share < 0.995:
        return f"{count:,} ({share:.0%})"
    return f"{count:,} ({'under 1%' if share < 0.5 else 'over 99%'})"
