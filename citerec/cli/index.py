"""`citerec index`: building indexes and looking after them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import Share, notes, output, with_options
from citerec.places import INDEXES

if TYPE_CHECKING:
    from citerec.retrieve.index import BuildOptions
    from citerec.retrieve.manifest import Manifest

# Releases of Semantic Scholar have lost most of their rows before.
_SUSPICIOUS = 0.8
_FOLDER = click.Path(path_type=Path)
_FORMATS = ["s2ag-papers", "s2ag-abstracts", "s2ag-tldrs", "s2ag-citations", "bibtex", "jsonl", "csv"]
_build_options = [
    click.option(
        "--format",
        "format_name",
        type=click.Choice(_FORMATS),
        help="Format of the files, if not to be recognised.",
    ),
    click.option(
        "--max-bad",
        type=Share(),
        default=0.05,
        show_default=True,
        help="Share of unreadable records above which the work stops.",
    ),
    click.option("--workers", type=click.IntRange(1), help="Processes that read; one a processor if not said."),
]


@click.group(epilog="Example: citerec index build papers.bib --out indexes/mine")
def index() -> None:
    """Build an index of papers, add to it, look at it."""


@index.command(epilog="Example: citerec index build ../shared/data/acm --out indexes/acm")
@click.argument("sources", nargs=-1, required=True, type=_FOLDER)
@click.option("--out", required=True, type=_FOLDER, help="The index directory to make, or to replace.")
@with_options(_build_options)
def build(sources: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Read SOURCES and build an index of their papers.

    A source is a folder of Semantic Scholar shards (papers/, abstracts/, tldrs/, citations/; plain or
    gzip), a BibTeX file, JSON Lines or CSV. What stood at --out stays whole until the new index is
    ready. A build that was stopped goes on where it stopped when the command is given again.
    """
    from citerec.cli.progress import progress_bar
    from citerec.retrieve.index import build_index

    before = _papers_before(out)
    with progress_bar() as progress:
        manifest = build_index(sources, out, _options(options), progress)
    _tell(out, manifest, "built")
    if manifest.counts.papers < _SUSPICIOUS * before:
        notes().print(f"The index that stood there had {before:,} papers: are the sources complete?", markup=False)


@index.command(epilog="Example: citerec index add new.bib --index indexes/mine")
@click.argument("sources", nargs=-1, required=True, type=_FOLDER)
@click.option("--index", "index_path", type=_FOLDER, help="The index to add to; the only one if not said.")
@with_options(_build_options)
def add(sources: tuple[Path, ...], index_path: Path | None, **options: Any) -> None:
    """Add the papers of SOURCES to an index, or bring them up to date in it.

    Papers are matched by id; of two records the later one counts. The outcome is that of a build
    from all sources together.
    """
    from citerec.cli.progress import progress_bar
    from citerec.retrieve.index import add_to_index
    from citerec.retrieve.manifest import find_index

    path = find_index(index_path)
    with progress_bar() as progress:
        manifest = add_to_index(sources, path, _options(options), progress)
    _tell(path, manifest, "brought up to date")


@index.command(epilog="Example: citerec index info indexes/acm")
@click.argument("path", metavar="[INDEX]", required=False, type=_FOLDER)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def info(path: Path | None, as_json: bool) -> None:
    """Show what an index holds: counts, years, fields, venues, settings, size."""
    from citerec.retrieve.describe import describe
    from citerec.retrieve.manifest import find_index

    description = describe(find_index(path))
    if as_json:
        import orjson

        click.echo(orjson.dumps(description.to_json(), option=orjson.OPT_INDENT_2).decode())
        return
    from citerec.cli.tables import show_description

    show_description(output(), description)


@index.command(epilog="Example: citerec index verify indexes/acm")
@click.argument("path", metavar="[INDEX]", required=False, type=_FOLDER)
def verify(path: Path | None) -> None:
    """Check that store and Lucene agree, and that no file has been damaged."""
    from citerec.cli.progress import progress_bar
    from citerec.errors import CiterecError
    from citerec.retrieve.manifest import find_index
    from citerec.retrieve.verify import verify as faults_of

    found = find_index(path)
    with progress_bar() as progress:
        faults = faults_of(found, progress)
    if not faults:
        output().print(f"{found}: whole. Store, Lucene and manifest agree.", markup=False)
        return
    for fault in faults:
        notes().print(f"- {fault}", markup=False)
    raise CiterecError(
        f"{found} is damaged: {len(faults)} fault(s)", f"Build it again: citerec index build … --out {found}"
    )


@index.command("list", epilog="Example: citerec index list")
@click.argument("folder", default=INDEXES, type=_FOLDER)
def list_indexes(folder: Path) -> None:
    """List the indexes in FOLDER (by default indexes/)."""
    from citerec.cli.tables import show_list
    from citerec.retrieve.describe import list_indexes as listed

    if not folder.is_dir() and folder != INDEXES:
        raise click.BadParameter(f"there is no folder {folder}", param_hint="FOLDER")
    show_list(output(), folder, listed(folder))


def _papers_before(path: Path) -> int:
    from citerec.errors import IndexUnusableError
    from citerec.retrieve.manifest import Manifest

    try:
        return Manifest.read(path).counts.papers
    except IndexUnusableError:
        return 0


def _options(options: dict[str, Any]) -> "BuildOptions":
    from citerec.retrieve.index import BuildOptions

    return BuildOptions(**options)


def _tell(path: Path, manifest: "Manifest", done: str) -> None:
    counts = manifest.counts
    parts = [f"{counts.papers:,} papers", f"{counts.with_abstract:,} with an abstract"]
    if counts.with_tldr:
        parts.append(f"{counts.with_tldr:,} with a TLDR")
    if counts.citances:
        parts.append(f"{counts.citances:,} citing sentences of {counts.with_citances:,} papers")
    output().print(f"{path} {done}: {', '.join(parts)}.", markup=False)
    told = notes()
    if counts.duplicates:
        told.print(f"Ids that came again later: {counts.duplicates:,}. The last record counts.", markup=False)
    if counts.unmatched:
        told.print(f"Abstracts, TLDRs or citations of papers not in the index: {counts.unmatched:,}.", markup=False)
    if counts.bad:
        told.print(f"Records that could not be read: {counts.bad:,}. See {path / 'quarantine.jsonl'}", markup=False)
