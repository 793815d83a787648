"""`citerec train tagger`: citation intents, and what sentences do in related work."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import Share, notes, output, with_options
from citerec.cli.learning import how_long, say, schedule_of, taken

if TYPE_CHECKING:
    from rich.console import Console

    from citerec.discourse.base import TaggerManifest

_PATH = click.Path(path_type=Path)


@click.command(epilog="Example: citerec train tagger scicite/train.txt --dev scicite/dev.txt --out taggers/scicite")
@click.argument("train_file", type=_PATH)
@click.option(
    "--dev",
    type=_PATH,
    help="Labelled sentences to measure on; a classifier keeps what was best there. They are not learnt from.",
)
@click.option(
    "--dev-share",
    type=Share(),
    default=0.15,
    help="Without --dev: share of the paragraphs to hold out and measure on, the last of the file. 0: learn from all.",
)
@click.option("--out", required=True, type=_PATH, help="The tagger to make, or to replace: a folder.")
@click.option(
    "--model",
    default="linear",
    metavar="linear|NAME",
    help="linear, or an encoder to begin with, a folder or a name: allenai/scibert_scivocab_uncased.",
)
@click.option("--scheme", metavar="NAME", help="Name of the scheme.  [default: told by the labels]")
@click.option("--batch", type=click.IntRange(1), default=16, help="Sentences a step (encoder).")
@click.option(
    "--learning-rate", type=click.FloatRange(0, 1, min_open=True), default=2e-5, help="The highest (encoder)."
)
@click.option(
    "--max-tokens",
    type=click.IntRange(16, 8192),
    default=256,
    help="Tokens of a sentence and its neighbours, at most (encoder).",
)
@with_options(how_long(epochs=3, evaluations=6))
def tagger(train_file: Path, out: Path, device: str | None, **options: Any) -> None:
    """Train a tagger of citing sentences on TRAIN_FILE.

    TRAIN_FILE is of SciCite or ACL-ARC (citation intents) or of CORWA (sentences of related work);
    which one, its lines tell. The linear tagger needs no model from elsewhere and takes seconds;
    how long to train, and where, is for encoders.
    Prints macro-F1, accuracy and the scores of each label on dev, and keeps them in the folder.
    """
    from citerec.groundwork.progress_bar import progress_bar
    from citerec.train.tagger import TaggedChoice, TaggerOptions, train_tagger

    choice = TaggedChoice(train_file, **taken(options, "dev", "dev_share"))
    schedule = schedule_of(options)
    with progress_bar() as on_progress:
        manifest = train_tagger(
            choice, out, TaggerOptions(**options), schedule, device=device, on_progress=on_progress, note=say
        )
    _show(output(), out, manifest)


def _show(console: "Console", out: Path, manifest: "TaggerManifest") -> None:
    from rich.table import Table
    from rich.text import Text

    learnt = f"{out} trained on {manifest.training['sentences']:,} sentences"
    if not manifest.dev:
        console.print(f"{learnt}, {manifest.scheme}; nothing was held out.", markup=False, soft_wrap=True)
        return
    sentences = sum(scores["n"] for scores in manifest.dev["labels"].values())
    console.print(
        f"{learnt}, {manifest.scheme}: macro-F1 {manifest.dev['macro_f1']:.3f}, accuracy "
        f"{manifest.dev['accuracy']:.3f} on {sentences:,} dev sentences ({manifest.training['dev']}).",
        markup=False,
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("label")
    for name in ("precision", "recall", "F1", "n"):
        table.add_column(name, justify="right")
    for label, scores in manifest.dev["labels"].items():
        shares = [f"{scores[name]:.3f}" for name in ("precision", "recall", "f1")]
        table.add_row(Text(label), *shares, f"{scores['n']:,}")
    console.print(table)
    if repeated := manifest.dev["repeated"]:
        without = manifest.dev.get("macro_f1 without repeated")
        rest = "" if without is None else f"; without them macro-F1 is {without:.3f}"
        file, paragraphs = manifest.training["train"], manifest.training["dev_paragraphs"]
        notes().print(f"{repeated:,} of {paragraphs:,} dev paragraphs stand in {file} too{rest}.", markup=False)
