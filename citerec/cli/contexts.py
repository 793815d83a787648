"""`citerec contexts`: citing sentences from full texts, and files of them in parts."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import Share, notes, output
from citerec.cli.console import contexts as in_words

_PATH = click.Path(path_type=Path)


@click.group(epilog="Example: citerec contexts extract s2orc --out contexts.jsonl")
def contexts() -> None:
    """Citing sentences: taken from full texts, and split for training and measuring."""


class _Size(click.FloatRange):
    """A share of the citing papers, below 1, or a number of contexts."""

    def __init__(self) -> None:
        super().__init__(0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share or the number."""
        size = float(super().convert(value, param, ctx))
        if not (size < 1 or size.is_integer()):
            self.fail(f"{value!r} is neither a share such as 0.1 nor a number of contexts such as 500.", param, ctx)
        return size


@contexts.command(epilog="Example: citerec contexts split contexts.jsonl --dev 0.1 --test 0.1 --out split")
@click.argument("file", type=_PATH)
@click.option("--out", required=True, type=_PATH, metavar="FOLDER", help="Where to write the parts.")
@click.option(
    "--dev",
    type=_Size(),
    metavar="SHARE|NUMBER",
    default=0.1,
    show_default=True,
    help="Contexts to tune on: a share of the citing papers, or a number of contexts.",
)
@click.option(
    "--test",
    type=_Size(),
    metavar="SHARE|NUMBER",
    default=0.1,
    show_default=True,
    help="Contexts to measure on, likewise.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Another one makes other parts.")
def split(file: Path, out: Path, dev: float, test: float, seed: int) -> None:
    """Split FILE, JSON Lines of contexts, into train.jsonl, dev.jsonl and test.jsonl.

    No citing paper is in two of them, so that what is trained on one can be measured on another. The
    same file and seed give the same parts.
    """
    from dataclasses import astuple

    from rich.table import Table

    from citerec.contexts.hold_out import split_contexts

    counts = split_contexts(file, out, dev=dev, test=test, seed=seed)
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim")
    table.add_column("file", style="bold")
    for name in ("contexts", "citing papers", "without one"):
        table.add_column(name, justify="right")
    for part, count in counts.items():
        if count.contexts:
            table.add_row(str(out / f"{part}.jsonl"), *(f"{number:,}" for number in astuple(count)))
    output().print(table)


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
    for outcome, count in extracted.outcomes.items():
        table.add_row(f"{count:,}", outcome)
    output().print(table)
    if extracted.quarantine:
        notes().print(
            f"Set aside: {extracted.bad:,} lines that are no full text, {extracted.faults:,} annotations that do not "
            f"fit their text. See {extracted.quarantine}",
            markup=False,
        )
