"""Diagnostic sets in a terminal: sets, families, the result of a build."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from citerec.cli.console import show_counts
from citerec.evaluation.rendering import Cell, Column, Span, Table, left, marked, right, show
from citerec.files.places import DIAGNOSTICS
from citerec.files.text import counted
from citerec.records import MARKER

if TYPE_CHECKING:
    from citerec.diagnostics.sets import DiagnosticSet, FamilyOfSet, Sampling, SetManifest

_BAR_WIDTH = 24
_NOT_TOLD = marked("not known from these data", "faint")


def show_sets(console: Console, sets: "Mapping[Path, SetManifest | str]") -> None:
    """Shows all sets: one line per family, by its id."""
    table = Table([Column("id", style="strong", wrap=False), *right("contexts", format=","), *left("classes")])
    for path, manifest in sets.items():
        if isinstance(manifest, str):
            table.rows.append([path.name, "", marked(manifest, "worse")])
            continue
        for name, family in manifest.families.items():
            whole = sum(family.classes.values())
            table.rows.append([f"{manifest.name}/{name}", whole, _classes(family) if whole else _NOT_TOLD])
    show(console, table)
    console.print("\nMeasure a system on one:  citerec eval --diagnostic demo/location")
    console.print("Look at one:              citerec diagnostics show demo/location")


def show_set(console: Console, found: "DiagnosticSet", identifier: str) -> None:
    """Shows a set: where it comes from, its bounds, its families."""
    manifest = found.manifest
    console.print(
        f"[bold]{escape(manifest.name)}[/]  {counted(manifest.contexts, 'context')} of {escape(manifest.source)}"
    )
    fingerprint = f", fingerprint {manifest.corpus_fingerprint}" if manifest.corpus_fingerprint else ""
    facts = {
        "corpus": f"{manifest.corpus_papers:,} papers{fingerprint}",
        "strata": f"version {manifest.strata}, by citerec {manifest.citerec}",
        "parts of speech": manifest.spacy_model or "not labelled: no spaCy model",
    }
    bounds = manifest.bounds
    if bounds.length:
        facts["medium length"] = (
            f"{bounds.length.low:.1f} to {bounds.length.high:.1f} words "
            f"(mean {bounds.length.mean:.1f} ± {bounds.length.deviation:.1f}, "
            f"{bounds.length.outliers} outliers left out)"
        )
    if bounds.field:
        line = "less than 3 % of this corpus" if bounds.field.decided_by == "corpus" else "the benchmark's list"
        facts["low-resource fields"] = f"{len(bounds.field.low_resource)} ({line})"
    show(console, Table(left("", ""), list(facts.items()), headed=False))
    if manifest.sampling:
        show_sampling(console, manifest.sampling)
    show_families(console, manifest)
    console.print(f"\nA family with examples:  citerec diagnostics show {escape(identifier)}/location")


def show_family(console: Console, found: "DiagnosticSet", name: str, identifier: str) -> None:
    """Shows a family of a set: its conditions, its classes, a context of each."""
    from citerec.diagnostics.families import title_of
    from citerec.diagnostics.label import FEW
    from citerec.diagnostics.sets import examples

    family = found.manifest.families[name]
    title = title_of(name)
    console.print(f"[bold]{escape(identifier)}[/]  {title}")
    console.print(f"held constant: {'; '.join(family.conditions) or 'nothing'}\n", style="dim")
    shown = examples(found.contexts, name)
    if not any(family.classes.values()):
        console.print("No context has a class: the data do not have it.")
    most = max(family.classes.values(), default=0) or 1
    for label, n in family.classes.items():
        line = Text(f"{label:<24}", style="bold").append(f"{n:>6,}  ", "not bold")
        line.append("█" * max(round(_BAR_WIDTH * n / most), 1 if n else 0), "cyan")
        if n < FEW:
            line.append(f"  few: n < {FEW}", "yellow")
        console.print(line)
        if label in shown:
            before, _, after = shown[label].text.partition(MARKER)
            sentence = Text(before, "italic").append(MARKER, "bold yellow not italic").append(after)
            console.print(Padding(sentence, (0, 0, 0, 2)))


def show_made(console: Console, place: Path, manifest: "SetManifest") -> None:
    """Shows a set that was made: of papers and texts, or by labelling a file of contexts."""
    verb = "chosen" if manifest.sampling else "labelled"
    console.print(f"[bold]{escape(str(place))}[/]  {counted(manifest.contexts, 'context')} {verb}", soft_wrap=True)
    if manifest.sampling:
        show_sampling(console, manifest.sampling)
    show_families(console, manifest)
    identifier = manifest.name if place.parent == DIAGNOSTICS else str(place)
    if not manifest.sampling:
        console.print(f"\nMeasure a system on it:  citerec eval --set {escape(identifier)}", soft_wrap=True)
        return
    console.print(f"\nWhat it is, with figures:  {place / 'DATASHEET.md'}", soft_wrap=True, markup=False)
    console.print(f"Look it through:           citerec diagnostics review {escape(identifier)}", soft_wrap=True)
    console.print("Its papers, to search:     citerec index build PAPERS --out indexes/NAME", soft_wrap=True)
    console.print(f"Measure a system on it:    citerec eval --set {escape(identifier)}", soft_wrap=True)


def show_sampling(console: Console, sampling: "Sampling") -> None:
    """Shows the funnel, and how full the cells are."""
    from citerec.diagnostics.datasheet import FUNNEL

    console.print()
    show_counts({FUNNEL.get(step, step): count for step, count in sampling.funnel.items()})
    cells = sampling.cells
    console.print(
        f"\nOf {cells['wanted']:,} classes of cells (field × years × citation count) {cells['full']:,} are full, "
        f"{cells['partly']:,} hold fewer than were wanted, {cells['empty']:,} hold nothing: cells.csv says why."
    )


def show_families(console: Console, manifest: "SetManifest") -> None:
    """Shows the families of a set: contexts, classes, what is held constant."""
    from citerec.diagnostics.label import FEW

    table = Table(
        [
            Column("\nfamily", style="strong", wrap=False),
            *right("\ncontexts", format=","),
            *left("\nclasses"),
            Column("held\nconstant", style="faint", most=30),
        ]
    )
    few = 0
    for name, family in manifest.families.items():
        whole = sum(family.classes.values())
        few += sum(n < FEW for n in family.classes.values()) if whole else 0
        table.rows.append([name, whole, _classes(family) if whole else _NOT_TOLD, "; ".join(family.conditions)])
    console.print()
    show(console, table)
    if few:
        line = f"* {few} classes have fewer than {FEW} contexts: too few to say much about them."
        console.print(line, style="yellow")


def _classes(family: "FamilyOfSet") -> Cell:
    from citerec.diagnostics.label import FEW

    spans: list[Span] = []
    for label, n in family.classes.items():
        spans += [(", " if spans else "", ""), (label, ""), (f" {n:,}", "name"), ("*" if n < FEW else "", "warning")]
    return Cell(dict(family.classes), tuple(spans))
