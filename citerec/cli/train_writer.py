"""`citerec train writer`: an encoder-decoder that learns to write from tasks with targets."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import Share, notes, output, with_options
from citerec.cli.learning import how_long, say, schedule_of, taken

_PATH = click.Path(path_type=Path)


@click.command(
    epilog="Example: citerec train writer --tasks train.jsonl --dev dev.jsonl --out models/led --base "
    "allenai/led-base-16384"
)
@click.option(
    "--tasks", required=True, type=_PATH, help="Tasks with targets, JSON Lines, in CiteBench's or SciTLDR's shape."
)
@click.option(
    "--dev",
    type=_PATH,
    help="Tasks to measure on while training. What they are about is not learnt from. Results on them say nothing new "
    "afterwards.",
)
@click.option(
    "--dev-share",
    type=Share(),
    default=0.1,
    show_default=True,
    help="Without --dev: share of the papers that is held out to measure on.",
)
@click.option(
    "--dev-limit", type=click.IntRange(1), default=100, show_default=True, help="Tasks to measure on, at most."
)
@click.option(
    "--limit", type=click.IntRange(1), help="Tasks to learn from, at most: drawn by the seed. Few-shot: 32 or 128."
)
@click.option("--out", required=True, type=_PATH, help="The writer to make, or to replace: a folder.")
@click.option(
    "--base",
    default="allenai/led-base-16384",
    show_default=True,
    help="With what to begin: LED, BART, PEGASUS, PRIMERA or another encoder-decoder, a folder or a name.",
)
@click.option(
    "--writes",
    type=click.Choice(["citation", "tldr", "related-work"]),
    default="citation",
    show_default=True,
    help="What it is to write: decides how long its texts are.",
)
@click.option("--batch", type=click.IntRange(1), default=16, show_default=True, help="Targets a step.")
@click.option(
    "--learning-rate",
    type=click.FloatRange(0, 1, min_open=True),
    default=5e-5,
    show_default=True,
    help="The highest. It suits LED (CiteBench); 2e-5 suits BART (CiteSum), 1e-5 PRIMERA (OARelatedWork).",
)
@click.option(
    "--max-input-tokens", type=click.IntRange(8), help="Tokens it reads, at most.  [default: the model's recipe]"
)
@click.option(
    "--max-target-tokens", type=click.IntRange(8), help="Tokens it writes, at most.  [default: the model's recipe]"
)
@click.option(
    "--value",
    type=click.Choice(["rouge", "loss"]),
    default="rouge",
    show_default=True,
    help="What decides on dev: ROUGE-L of what it writes greedily, or the loss, which is quicker.",
)
@click.option(
    "--as-citations",
    is_flag=True,
    help="Learn 'This paper REF' for a leading 'We', and take REF out of what is written: for bases that learnt from "
    "citation texts (CiteSum, few-shot).",
)
@with_options(how_long(epochs=3, evaluations=6))
def writer(out: Path, device: str | None, **options: Any) -> None:
    """Train a writer of citation texts, TLDRs or related work, for `citerec generate --writer`.

    It begins with an encoder-decoder and learns to write the targets of the tasks. The folder
    keeps how it is to write. What was stopped goes on when the command is given again.
    """
    from citerec.cli.progress import progress_bar
    from citerec.train.groups import Choice
    from citerec.train.writer import METRIC, WriterOptions, train_writer

    chosen = taken(options, "dev", "dev_share", "dev_limit", "limit")
    choice = Choice(options.pop("tasks"), seed=options["seed"], **chosen)
    schedule = schedule_of(options)
    with progress_bar() as on_progress:
        manifest = train_writer(
            choice,
            out,
            WriterOptions(**options),
            schedule,
            device=device,
            on_progress=on_progress,
            note=say,
        )
    name = "loss" if options["value"] == "loss" else METRIC
    output().print(
        f"{out} trained: {name} {manifest.dev[name]:.3f} on {manifest.training['dev_tasks']:,} dev tasks, "
        f"{manifest.dev[f'{name} before']:.3f} before.",
        markup=False,
        soft_wrap=True,
    )
    if not manifest.training["best_step"]:
        notes().print("It did not help: the writer is the base. More tasks or epochs may do better.")
