"""How diagnostic sets look in a terminal."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from citerec.cli.console import contexts
from citerec.records import MARKER

if TYPE_CHECKING:
    from citerec.diagnostics.sets import DiagnosticSet, FamilyOfSet, Sampling, SetManifest

_BAR_WIDTH = 24
_NOT_TOLD = Text("these data do not tell", style="dim")


def show_sets(console: Console, sets: "Mapping[Path, SetManifest | str]") -> None:
    """All sets: one line a family, by its id."""
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("id", style="bold", no_wrap=True)
    table.add_column("contexts", justify="right")
    table.add_column("classes", overflow="fold")
    for path, manifest in sets.items():
        if isinstance(manifest, str):
            table.add_row(path.name, "", Text(manifest, style="red"))
            continue
        for name, family in manifest.families.items():
            shown = sum(family.classes.values())
            table.add_row(f"{manifest.name}/{name}", f"{shown:,}", _classes(family) if shown else _NOT_TOLD)
    console.print(table)
    console.print("\nMeasure a system on one:  citerec eval --diagnostic demo/location")
    console.print("Look at one:              citerec diagnostics show demo/location")


def show_set(console: Console, found: "DiagnosticSet", identifier: str) -> None:
    """One set: where it comes from, its bounds, its families."""
    manifest = found.manifest
    console.print(f"[bold]{escape(manifest.name)}[/]  {contexts(manifest.contexts)} of {escape(manifest.source)}")
    facts = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    fingerprint = f", fingerprint {manifest.corpus_fingerprint}" if manifest.corpus_fingerprint else ""
    facts.add_row("corpus", f"{manifest.corpus_papers:,} papers{fingerprint}")
    facts.add_row("strata", f"version {manifest.strata}, by citerec {manifest.citerec}")
    facts.add_row("parts of speech", manifest.spacy_model or "not told: no spaCy model")
    bounds = manifest.bounds
    if bounds.length:
        facts.add_row(
            "medium length",
            f"{bounds.length.low:.1f} to {bounds.length.high:.1f} words "
            f"(mean {bounds.length.mean:.1f} ± {bounds.length.deviation:.1f}, "
            f"{bounds.length.outliers} outliers left out)",
        )
    if bounds.field:
        line = "less than 3 % of this corpus" if bounds.field.decided_by == "corpus" else "the benchmark's list"
        facts.add_row("low-resource fields", f"{len(bounds.field.low_resource)} ({line})")
    console.print(facts)
    if manifest.sampling:
        show_sampling(console, manifest.sampling)
    show_families(console, manifest)
    console.print(f"\nA family with examples:  citerec diagnostics show {escape(identifier)}/location")


def show_family(console: Console, found: "DiagnosticSet", name: str, identifier: str) -> None:
    """One family of a set: its conditions, its classes, a context of each."""
    from citerec.diagnostics.families import title_of
    from citerec.diagnostics.label import FEW
    from citerec.diagnostics.sets import examples

    family = found.manifest.families[name]
    title = title_of(name)
    console.print(f"[bold]{escape(identifier)}[/]  {title}")
    console.print(f"held constant: {'; '.join(family.conditions) or 'nothing'}\n", style="dim")
    shown = examples(found.contexts, name)
    if not any(family.classes.values()):
        console.print("No context has a class: the data do not tell.")
    most = max(family.classes.values(), default=0) or 1
    for label, n in family.classes.items():
        line = Text(f"{label:<24}", style="bold").append(f"{n:>6,}  ", "not bold")
        line.append("█" * max(round(_BAR_WIDTH * n / most), 1 if n else 0), "cyan")
        if n < FEW:
            line.append(f"  few: n < {FEW}", "yellow")
        console.print(line)
        if label in shown:
            before, _, after = shown[label].text.partition(MARKER)
            console.print(Text("  ").append(before, "italic").append(MARKER, "bold yellow").append(after, "italic"))


def show_labelled(console: Console, place: Path, manifest: "SetManifest", *, is_default_place: bool) -> None:
    """What became of a file of contexts."""
    console.print(f"[bold]{escape(str(place))}[/]  {contexts(manifest.contexts)} labelled", soft_wrap=True)
    show_families(console, manifest)
    identifier = manifest.name if is_default_place else str(place)
    console.print(f"\nMeasure a system on it:  citerec eval --set {escape(identifier)}", soft_wrap=True)


def show_sampling(console: Console, sampling: "Sampling") -> None:
    """The funnel, and how full the cells are."""
    from citerec.diagnostics.build.record import FUNNEL

    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(justify="right", style="cyan", no_wrap=True)
    table.add_column()
    for step, count in sampling.funnel.items():
        table.add_row(f"{count:,}", FUNNEL.get(step, step))
    console.print()
    console.print(table)
    cells = sampling.cells
    console.print(
        f"\nOf {cells['wanted']:,} classes of cells (field × years × citation count) {cells['full']:,} are full, "
        f"{cells['partly']:,} hold fewer than were wanted, {cells['empty']:,} hold nothing: cells.csv says why."
    )


def show_families(console: Console, manifest: "SetManifest") -> None:
    """The families of a set: contexts, classes, what is held constant."""
    from citerec.diagnostics.label import FEW

    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("\nfamily", style="bold", no_wrap=True)
    table.add_column("\ncontexts", justify="right")
    table.add_column("\nclasses", overflow="fold")
    table.add_column("held\nconstant", overflow="fold", style="dim", max_width=30)
    few = 0
    for name, family in manifest.families.items():
        total = sum(family.classes.values())
        few += sum(n < FEW for n in family.classes.values()) if total else 0
        classes = _classes(family) if total else _NOT_TOLD
        table.add_row(name, f"{total:,}", classes, "; ".join(family.conditions))
    console.print()
    console.print(table)
    if few:
        console.print(f"* {few} classes have fewer than {FEW} contexts: too few to say much of them.", style="yellow")


def _classes(family: "FamilyOfSet") -> Text:
    from citerec.diagnostics.label import FEW

    text = Text()
    for number, (label, n) in enumerate(family.classes.items()):
        text.append(", " if number else "").append(label).append(f" {n:,}", "cyan")
        if n < FEW:
            text.append("*", "yellow")
    return text
