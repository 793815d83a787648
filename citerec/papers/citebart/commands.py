"""The commands of CiteBART: `train citebart`, entry points of `citerec.commands`."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.learning import (
    choice_of,
    contexts_dev_options,
    contexts_option,
    learning_rate,
    limit_option,
    schedule_of,
    schedule_options,
    tell_dev,
    trained,
)
from citerec.cli.options import index_option, number, path_option, with_options


@click.command(epilog="Example: citerec train citebart --contexts train.jsonl --index indexes/acl")
@contexts_option
@with_options(contexts_dev_options)
@limit_option(None)
@index_option("The index with the cited papers")
@path_option("--out", help="The model to make, or to replace.  [default: into the index itself]")
@click.option(
    "--base",
    default="facebook/bart-base",
    metavar="NAME|FOLDER",
    show_default=True,
    help="The encoder-decoder to train.",
)
@number("--max-input-tokens", 350, "Tokens that are read, at most.", least=8)
@number("--batch", 16, "Cited papers per step.")
@learning_rate(2e-5, "Peak learning rate.")
@with_options(schedule_options(epochs=15, evaluations=15))
def citebart(index: Path, out: Path | None, device: str | None, **options: Any) -> None:
    """Train the encoder-decoder of `citebart`, which writes author and year of the cited paper.

    The sentence has a mask in place of the citation. Nothing is searched, and no negatives are
    needed.
    """
    from citerec.index.generations import trained_of
    from citerec.papers.citebart.train import METRIC, CiteBartOptions, train_citebart

    choice, schedule = choice_of(options), schedule_of(options, first=True)
    place = out or trained_of(index, "citebart")
    manifest = trained(train_citebart, choice, index, place, CiteBartOptions(**options), schedule, device=device)
    tell_dev(place, manifest, METRIC, f"{manifest.training['dev_groups']:,} dev contexts")
