"""`citerec train tldr`: a writer that picks and shortens one or two sentences of an abstract."""

from pathlib import Path

import click

from citerec.cli.console import say
from citerec.cli.options import path_option, seed
from citerec.files.progress import progress_bar


@click.command(
    epilog='Example: citerec train tldr --tasks scitldr/train.jsonl --out models/tldr --data "SciTLDR-A, train"'
)
@path_option("--tasks", required=True, help="Abstracts with TLDRs, JSON Lines, in SciTLDR's or CiteBench's format.")
@path_option("--out", required=True, help="The writer to make, or to replace: a folder.")
@click.option("--data", default="", metavar="TEXT", help="What the tasks are, and their licence: for the datasheet.")
@seed
def tldr(tasks: Path, out: Path, data: str, seed: int) -> None:
    """Train an extractive writer of TLDRs, for `citerec generate --writer trained --option model=FOLDER`.

    It learns which sentence of an abstract, which part of one, or which two, are most like its TLDR. It
    needs no other model, and about two minutes for SciTLDR.
    """
    from citerec.train.tldr import train_tldr

    with progress_bar() as on_progress:
        manifest = train_tldr(tasks, out, data=data, seed=seed, on_progress=on_progress)
    scores = manifest.scores
    say(
        f"{out} trained on {manifest.training['learnt_from']:,} abstracts: ROUGE-1 {scores['rouge1']:.1f} by "
        f"cross-validation, {scores['rouge1 of contribution']:.1f} without training."
    )
