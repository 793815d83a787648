"""`citerec contexts`: extracts citing sentences from full texts, and splits files of them."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import note_set_aside, output, say, show_counts
from citerec.cli.options import (
    ADDRESS,
    PATH,
    Option,
    address_option,
    on,
    path_option,
    reading,
    seed,
    with_options,
    work_option,
    working,
)
from citerec.evaluation.rendering import Column, Table, right, show
from citerec.files.text import counted


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


def _size(name: str, help: str) -> Option:
    return click.option(name, type=_Size(), metavar="SHARE|NUMBER", default=0.1, help=help)


@contexts.command(epilog="Example: citerec contexts split contexts.jsonl --dev 0.1 --test 0.1 --out split")
@click.argument("file", type=PATH)
@path_option("--out", required=True, metavar="FOLDER", help="Where to write the parts.")
@_size("--dev", "Contexts to tune on: a share of the citing papers, or a number of contexts.")
@_size("--test", "Contexts to measure on: a share or a number, as for --dev.")
@seed
def split(file: Path, out: Path, dev: float, test: float, seed: int) -> None:
    """Split FILE, JSON Lines of contexts, into train.jsonl, dev.jsonl and test.jsonl.

    No citing paper is in two of them, so that a system trained on one can be measured on another. The
    same file and seed give the same parts.
    """
    from dataclasses import astuple

    from citerec.contexts.hold_out import split_contexts

    counts = split_contexts(file, out, dev=dev, test=test, seed=seed)
    columns = [Column("file", style="strong"), *right("contexts", "citing papers", "without one", format=",")]
    rows = [[str(out / f"{part}.jsonl"), *astuple(count)] for part, count in counts.items() if count.contexts]
    show(output(), Table(columns, rows))


@contexts.command(epilog="Example: citerec contexts extract ../shared/data/acm/s2orc --out contexts.jsonl")
@click.argument("sources", nargs=-1, required=True, type=ADDRESS)
@address_option("--out", required=True, help="The file to write, JSON Lines.")
@click.option(
    "--single/--groups",
    default=True,
    help="Sentences with exactly one citation of one paper, or a context for each citation, with all papers that "
    "share its marker.",
)
@with_options(reading("unreadable texts"))
@on
@work_option
def extract(
    sources: tuple[Path, ...],
    out: Path,
    single: bool,
    split: str,
    workers: int | None,
    on: str | None,
    **options: Any,
) -> None:
    """Extract contexts from the full texts of SOURCES: usable sentences with <REF> for a citation.

    A source is a folder of S2ORC shards, v1 or v2, or one shard; also at an address such as
    s3://bucket/s2orc. Repeat the command to resume an interrupted run, with another --on too.
    """
    from citerec.contexts.extract import Rules
    from citerec.contexts.extract_shards import extract_shards

    with working(on, workers) as (parallelism, on_progress):
        extracted = extract_shards(
            sources,
            out,
            Rules(single=single, split=split),
            workers=parallelism,
            **options,
            on_progress=lambda done, whole: on_progress("reading", done, whole),
        )
    seen = f"{extracted.texts:,} texts, {extracted.sentences:,} sentences that cite"
    say(f"{out}: {counted(extracted.contexts, 'context')} of {seen}.")
    show_counts(extracted.outcomes)
    note_set_aside(extracted)
