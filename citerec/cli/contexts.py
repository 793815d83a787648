"""`citerec contexts`: citing sentences from full texts."""

from pathlib import Path

import click

from citerec.cli.console import Share, notes, output
from citerec.cli.console import contexts as in_words

_PATH = click.Path(path_type=Path)


@click.group(epilog="Example: citerec contexts extract s2orc --out contexts.jsonl")
def contexts() -> None:
    """Citing sentences, taken from full texts."""


@contexts.command(epilog="Example: citerec contexts extract ../shared/data/acm/s2orc --out contexts.jsonl")
@click.argument("sources", nargs=-1, required=True, type=_PATH)
@click.option("--out", required=True, type=_PATH, help="The file to write, JSON Lines.")
@click.option(
    "--single/--groups",
    default=True,
    help="Sentences with exactly one citation of one paper, or a context for each citation, with all papers that "
    "share its marker.  [default: single]",
)
@click.option(
    "--split",
    default="pysbd",
    show_default=True,
    metavar="pysbd|spacy|MODEL",
    help="What splits sentences where the source does not tell them.",
)
@click.option(
    "--max-bad",
    type=Share(),
    default=0.05,
    show_default=True,
    help="Share of unreadable texts above which the work stops.",
)
@click.option("--workers", type=click.IntRange(1), help="Processes that read; one a processor by default.")
def extract(
    sources: tuple[Path, ...], out: Path, single: bool, split: str, max_bad: float, workers: int | None
) -> None:
    """Take contexts from the full texts of SOURCES: usable sentences with <REF> where they cite.

    A source is a folder of S2ORC shards, v1 or v2, or one shard. What was stopped goes on when the
    command is given again.
    """
    from rich.table import Table

    from citerec.cli.progress import progress_bar
    from citerec.contexts.extract import Rules
    from citerec.contexts.extract_shards import extract_shards

    with progress_bar() as on_progress:
        extracted = extract_shards(
            sources,
            out,
            Rules(single=single, split=split),
            max_bad=max_bad,
            workers=workers,
            on_progress=lambda done, whole: on_progress("reading", done, whole),
        )
    seen = f"{extracted.texts:,} texts, {extracted.sentences:,} sentences that cite"
    output().print(f"{out}: {in_words(extracted.contexts)} of {seen}.", markup=False, soft_wrap=True)
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(justify="right", style="cyan", no_wrap=True)
    table.add_column()
    for fate, count in extracted.fates.items():
        table.add_row(f"{count:,}", fate)
    output().print(table)
    if extracted.quarantine:
        notes().print(
            f"Set aside: {extracted.bad:,} lines that are no full text, {extracted.faults:,} annotations that do not "
            f"fit their text. See {extracted.quarantine}",
            markup=False,
        )
