"""How the building of a diagnostic set looks in a terminal."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from citerec.cli.console import contexts
from citerec.cli.diagnostics_tables import show_families, show_sampling

if TYPE_CHECKING:
    from citerec.diagnostics.sets import SetManifest


def show_built(console: Console, place: Path, manifest: "SetManifest", *, is_default_place: bool) -> None:
    """What became of papers and texts: the funnel, the classes, how full the cells are."""
    console.print(f"[bold]{escape(str(place))}[/]  {contexts(manifest.contexts)} chosen", soft_wrap=True)
    if manifest.sampling:
        show_sampling(console, manifest.sampling)
    show_families(console, manifest)
    identifier = manifest.name if is_default_place else str(place)
    console.print(f"\nWhat it is, with figures:  {place / 'DATASHEET.md'}", soft_wrap=True, markup=False)
    console.print(f"Look it through:           citerec diagnostics review {escape(identifier)}", soft_wrap=True)
    console.print("Its papers, to search:     citerec index build PAPERS --out indexes/NAME", soft_wrap=True)
    console.print(f"Measure a system on it:    citerec eval --set {escape(identifier)}", soft_wrap=True)
