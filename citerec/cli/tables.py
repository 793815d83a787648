"""How answers and indexes look in a terminal."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from citerec.records import MARKER, Hit, Paper
from citerec.systems import all_settings

if TYPE_CHECKING:
    from citerec.generate.tldr import Tldr
    from citerec.recommend import Answer
    from citerec.rerank.ltr import LtrManifest
    from citerec.retrieve.describe import Description, Listed
    from citerec.systems import Recipe
    from citerec.train.fusion import TunedFusion

_AUTHORS_SHOWN = 3
_BAR_WIDTH = 24
_SHOWN_WORDS = 8
_QUOTED = 160
_SHOWN_FEATURES = 12
_SHOWN_REASONS = 5


def show_answer(
    console: Console,
    answer: "Answer",
    titles: Mapping[str, str],
    name: str | int | None = None,
    tldrs: "Mapping[str, Tldr] | None" = None,
) -> None:
    """One answer: the sentence, then its papers.

    Args:
        console: Where to.
        answer: The answer.
        titles: Titles of the papers whose citing sentences are quoted, by id.
        name: Name or number of the answer, where there are several.
        tldrs: TLDRs of the papers by id, where they were asked for.
    """
    before, _, after = answer.context.text.partition(MARKER)
    sentence = Text(f"[{name}] " if name is not None else "", style="bold")
    sentence.append(before, style="not bold italic")
    if MARKER in answer.context.text:
        sentence.append(MARKER, style="bold yellow")
    sentence.append(after, style="not bold italic")
    console.print()
    console.print(sentence)
    if not answer.hits:
        console.print("  no paper found", style="dim")
        return
    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    table.add_column("#", justify="right", style="bold")
    table.add_column("paper", ratio=1, overflow="fold")
    table.add_column("score", justify="right")
    for hit in answer.hits:
        table.add_row(str(hit.rank), Group(*_lines(hit, titles, tldrs or {})), f"{hit.score:.2f}")
    console.print(table)


def _lines(hit: Hit, titles: Mapping[str, str], tldrs: "Mapping[str, Tldr]") -> list[Text]:
    paper = hit.paper
    title = Text(paper.title or "(untitled)", style="bold")
    if paper.external_ids.get("DOI"):
        title.stylize(f"link https://doi.org/{paper.external_ids['DOI']}")
    lines = [title, about(paper)]
    if tldr := tldrs.get(paper.paper_id):
        lines.append(tldr_line(tldr))
    if hit.citance:
        quoted = hit.citance.text if len(hit.citance.text) <= _QUOTED else hit.citance.text[:_QUOTED].rstrip() + "…"
        by = titles.get(hit.citance.citing_id) or hit.citance.citing_id
        lines.append(Text("cited so: ", style="green").append(f"“{quoted}”", "italic").append(f" — {by}", "dim"))
    if hit.matches:
        shown = ", ".join(
            f"{match.word} ({'+'.join(match.fields) or 'text'}) {match.score:.1f}"
            for match in hit.matches[:_SHOWN_WORDS]
        )
        more = len(hit.matches) - _SHOWN_WORDS
        lines.append(
            Text("matched: ", style="green").append(shown + (f" and {more} more" if more > 0 else ""), "default")
        )
    for said, way in (("lifted by: ", 1), ("held back by: ", -1)):
        reasons = [reason for reason in hit.reasons if round(way * reason.score, 2) > 0][:_SHOWN_REASONS]
        if reasons:
            shown = ", ".join(f"{reason.name} {reason.score:+.2f}" for reason in reasons)
            lines.append(Text(said, style="green" if way > 0 else "yellow").append(shown, "default"))
    return lines


def tldr_line(tldr: "Tldr") -> Text:
    """A TLDR and where it comes from."""
    if tldr.text is None:
        return Text("no TLDR: it has no abstract", style="yellow")
    by = "of the corpus" if tldr.origin == "corpus" else f"from its abstract, by {tldr.origin}"
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


def show_description(console: Console, description: "Description") -> None:
    """An index: its counts, its histograms, its settings."""
    manifest, counts = description.manifest, description.manifest.counts
    console.print(f"[bold]{escape(str(description.path))}[/]  {_size(description.bytes)}")
    facts = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    facts.add_row("papers", f"{counts.papers:,}")
    facts.add_row("  with abstract", _of(counts.with_abstract, counts.papers))
    facts.add_row("  with TLDR", _of(counts.with_tldr, counts.papers))
    facts.add_row("  with year", _of(counts.with_year, counts.papers))
    facts.add_row(
        "  with citing sentences", _of(counts.with_citances, counts.papers) + f", {counts.citances:,} sentences"
    )
    facts.add_row("set aside as unreadable", f"{counts.bad:,}")
    facts.add_row("overwritten (id came again)", f"{counts.duplicates:,}")
    facts.add_row("of papers not in the index", f"{counts.unmatched:,}")
    facts.add_row(
        "sources", f"{len(manifest.sources)} files, {', '.join(sorted({s.format for s in manifest.sources}))}"
    )
    if vectors := description.vectors:
        facts.add_row("vectors", _of(vectors.count, counts.papers) + f", {_size(description.vector_bytes)}")
        made = "given" if vectors.given else f"{vectors.max_tokens} tokens, {vectors.backend}"
        facts.add_row("  model", escape(f"{vectors.model} ({vectors.dimension} numbers, {made})"))
        built = [f"{key} {value}" for key, value in vectors.faiss.build.items()]
        if vectors.faiss.kind != "flat":
            built.append(f"{'efSearch' if vectors.faiss.kind == 'hnsw' else 'nprobe'} {vectors.faiss.probe}")
            built.append(f"recall@100 {vectors.faiss.recall:.3f}")
        facts.add_row("  index", ", ".join([f"FAISS {vectors.faiss.faiss} {vectors.faiss.kind}", *built]))
    facts.add_row("analyzer", f"{manifest.analyzer} (Lucene {manifest.lucene}, citerec {manifest.citerec})")
    settings = ", ".join(f"{key} {default}" for key, (default, _) in all_settings().items())
    facts.add_row("default settings", settings)
    facts.add_row("fingerprint", manifest.fingerprint)
    console.print(facts)
    if description.years:
        console.print(f"\n[bold]years[/]  {min(description.years)}–{max(description.years)}")
        _show_bars(console, _spans(description.years))
    for heading, histogram in (("fields of study", description.fields), ("venues", description.venues)):
        if histogram:
            console.print(f"\n[bold]{heading}[/]")
            _show_bars(console, histogram)


def show_list(console: Console, folder: Path, found: "list[Listed]") -> None:
    """The indexes of a folder."""
    if not found:
        console.print(f"No index in {folder}/. Make one: citerec index build SOURCE… --out {folder}/NAME", markup=False)
        return
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("index")
    for name in ("papers", "with abstract", "citing sentences", "size"):
        table.add_column(name, justify="right")
    for item in found:
        if item.manifest is None:
            table.add_row(escape(str(item.path)), f"[red]{escape(item.fault or '')}[/]", "", "", _size(item.bytes))
            continue
        counts = item.manifest.counts
        table.add_row(
            escape(str(item.path)),
            f"{counts.papers:,}",
            f"{counts.with_abstract:,}",
            f"{counts.citances:,}",
            _size(item.bytes),
        )
    console.print(table)


def _spans(years: Mapping[int, int]) -> dict[str, int]:
    """Papers by five years; what is older than the bulk comes together."""
    whole = sum(years.values())
    older, oldest = 0, min(years)
    for year in sorted(years):
        if (older + years[year]) > whole * 0.01:
            oldest = year
            break
        older += years[year]
    spans: dict[str, int] = {f"before {oldest - oldest % 5}": 0}
    for year, count in sorted(years.items()):
        first = year - year % 5
        name = f"{first}–{first + 4}" if first >= oldest - oldest % 5 else next(iter(spans))
        spans[name] = spans.get(name, 0) + count
    return {name: count for name, count in spans.items() if count}


def _show_bars(console: Console, histogram: Mapping[str, int]) -> None:
    most = max(histogram.values())
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(max_width=48, overflow="ellipsis", no_wrap=True)
    table.add_column(justify="right")
    table.add_column()
    for name, count in histogram.items():
        whole, part = divmod(round(count / most * _BAR_WIDTH * 8), 8)
        table.add_row(
            escape(str(name)), f"{count:,}", Text("█" * whole + "▏▎▍▌▋▊▉"[part - 1] * (part > 0), style="blue")
        )
    console.print(table)


def _of(count: int, whole: int) -> str:
    share = f"{count / whole:.0%}" if count in (0, whole) or 0.005 <= count / whole < 0.995 else _almost(count / whole)
    return f"{count:,} ({share})"


def _almost(share: float) -> str:
    return "under 1%" if share < 0.5 else "over 99%"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def show_ranker(console: Console, path: Path, manifest: "LtrManifest") -> None:
    """A learnt ranker: how well it did where it stopped, and what its features are worth."""
    from citerec.rerank.features import FEATURES

    dev = manifest.dev
    console.print(
        f"{path}: {manifest.training['trees']} trees, learnt from {manifest.training['learnt_from']:,} contexts. "
        f"mrr@10 {dev['mrr@10 before']:.3f} → {dev['mrr@10']:.3f} on {dev['contexts']:,.0f} held out whose cited paper "
        "is among the candidates.",
        markup=False,
    )
    table = Table("feature", Column("share of the gain", justify="right"), "what it is", box=None)
    for name, gain in sorted(manifest.gain.items(), key=lambda item: -item[1])[:_SHOWN_FEATURES]:
        table.add_row(name, f"{gain:.1%}", FEATURES[name])
    console.print(table)


def show_fusion(console: Console, tuned: "TunedFusion") -> None:
    """Ways of fusing words and vectors, and what each reaches."""
    from citerec.retrieve.base import RETRIEVERS

    table = Table(Column(f"{tuned.contexts:,} contexts"), Column(tuned.metric, justify="right"), box=None)
    for name, score in tuned.alone.items():
        table.add_row(f"{RETRIEVERS[name].label} alone", f"{score:.3f}")
    table.add_row(f"as it is: {_fusion(tuned.before.recipe)}", f"{tuned.before.score:.3f}")
    for tried in tuned.tried:
        table.add_row(f"best {_fusion(tried.recipe)}", f"{tried.score:.3f}")
    console.print(table)


def _fusion(recipe: "Recipe") -> str:
    if recipe.fusion.method == "rrf":
        return f"rrf, fusion.k={recipe.fusion.k:g}"
    return "weighted, " + " ".join(f"retrievers.{name}={weight:g}" for name, weight in recipe.retrievers.items())
