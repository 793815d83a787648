"""`citerec train tagger`: taggers of citation intents, and of the roles of sentences in related work."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import note, output, say
from citerec.cli.learning import learning_rate, pop, schedule_of, schedule_options, trained
from citerec.cli.options import PATH, number, path_option, share, with_options
from citerec.evaluation.rendering import Table, left, right, show

if TYPE_CHECKING:
    from citerec.discourse.base import TaggerManifest


@click.command(epilog="Example: citerec train tagger scicite/train.txt --dev scicite/dev.txt --out taggers/scicite")
@click.argument("train_file", type=PATH)
@path_option(
    "--dev",
    help="Labelled sentences to measure on; an encoder keeps its best weights there. It does not learn from them.",
)
@share(
    "--dev-share",
    0.15,
    "Without --dev: share of the paragraphs to hold out and measure on, from the end of the file. 0: learn from all.",
)
@path_option("--out", required=True, help="The tagger to make, or to replace: a folder.")
@click.option(
    "--model",
    default="linear",
    metavar="linear|NAME",
    help="linear, or an encoder to start from, a folder or a name: allenai/scibert_scivocab_uncased.",
)
@click.option("--scheme", metavar="NAME", help="Name of the scheme.  [default: recognised by the labels]")
@number("--batch", 16, "Sentences per step (encoder).")
@learning_rate(2e-5, "Peak learning rate (encoder).")
@click.option(
    "--max-tokens",
    type=click.IntRange(16, 8192),
    default=256,
    help="Tokens of a sentence and its neighbours, at most (encoder).",
)
@with_options(schedule_options(epochs=3, evaluations=6))
def tagger(train_file: Path, out: Path, device: str | None, **options: Any) -> None:
    """Train a tagger of citing sentences on TRAIN_FILE.

    TRAIN_FILE is from SciCite or ACL-ARC (citation intents) or from CORWA (sentences of related work);
    its lines show which. The linear tagger needs no other model and takes seconds; the options of the
    schedule and the device are for encoders.
    Prints macro-F1, accuracy and the scores of each label on dev, and keeps them in the folder.
    """
    from citerec.train.tagger import TaggedChoice, TaggerOptions, train_tagger

    choice = TaggedChoice(train_file, **pop(options, "dev", "dev_share"))
    schedule = schedule_of(options)
    manifest = trained(train_tagger, choice, out, TaggerOptions(**options), schedule, device=device)
    _show(out, manifest)


def _show(out: Path, manifest: "TaggerManifest") -> None:

    learnt = f"{out} trained on {manifest.training['sentences']:,} sentences"
    if not manifest.dev:
        say(f"{learnt}, {manifest.scheme}; nothing was held out.")
        return
    dev, labels = manifest.dev, manifest.dev["labels"]
    say(
        f"{learnt}, {manifest.scheme}: macro-F1 {dev['macro_f1']:.3f}, accuracy {dev['accuracy']:.3f} on "
        f"{sum(scores['n'] for scores in labels.values()):,} dev sentences ({manifest.training['dev']})."
    )
    columns = [*left("label"), *right("precision", "recall", "F1", format=".3f"), *right("n", format=",")]
    rows = [[label, *(scores[name] for name in ("precision", "recall", "f1", "n"))] for label, scores in labels.items()]
    show(output(), Table(columns, rows))
    if repeated := dev["repeated"]:
        without = dev.get("macro_f1 without repeated")
        rest = "" if without is None else f"; without them macro-F1 is {without:.3f}"
        file, paragraphs = manifest.training["train"], manifest.training["dev_paragraphs"]
        note(f"{repeated:,} of {paragraphs:,} dev paragraphs are in {file} too{rest}.")
