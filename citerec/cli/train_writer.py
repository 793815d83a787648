"""`citerec train writer`: a model that learns to write from tasks with targets."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import say
from citerec.cli.learning import (
    base,
    dev_options,
    learning_rate,
    pop,
    schedule_of,
    schedule_options,
    seeds_of,
    seeds_option,
    tell_dev,
    trained,
)
from citerec.cli.options import number, one_of, path_option, with_options

if TYPE_CHECKING:
    from citerec.train.loop import Schedule


@click.command(
    epilog="Example: citerec train writer --tasks train.jsonl --dev dev.jsonl --out models/led --base "
    "allenai/led-base-16384"
)
@path_option("--tasks", required=True, help="Tasks with targets, JSON Lines, in CiteBench's or SciTLDR's format.")
@with_options(dev_options("Tasks", "papers", 100))
@number("--limit", None, "Tasks to learn from, at most; sampled by the seed. Few-shot: 32 or 128.")
@path_option("--out", required=True, help="The writer to make, or to replace: a folder.")
@base("allenai/led-base-16384", "LED, BART, PEGASUS, PRIMERA, another encoder-decoder, or a causal model")
@one_of(
    "--writes",
    ["citation", "tldr", "related-work", "xsum", "gigaword"],
    "Kind of text, which sets its length and beams.",
)
@number("--batch", 16, "Targets per step.")
@learning_rate(
    5e-5, "Peak learning rate. 5e-5 suits LED (CiteBench), 2e-5 BART (CiteSum), 1e-5 PRIMERA (OARelatedWork)."
)
@number("--max-input-tokens", None, "Tokens it reads, at most.  [default: the model's recipe]", least=8)
@number("--max-target-tokens", None, "Tokens it writes, at most.  [default: the model's recipe]", least=8)
@one_of(
    "--value",
    ["rouge", "loss"],
    "Measure on dev: ROUGE of greedy predictions, or the loss, which is quicker.",
)
@one_of("--dev-metric", ["rougeL", "rouge1", "rouge2"], "The kind of ROUGE by which the best weights are chosen.")
@click.option(
    "--as-citations",
    is_flag=True,
    help="Learn 'This paper REF' for a leading 'We', and remove REF from texts: for bases that learnt from "
    "citation texts (CiteSum, few-shot).",
)
@click.option(
    "--preset",
    metavar="NAME",
    help="Write and read as the authors' code: citebench (LED without global attention), citesum (BART, greedy).",
)
@click.option("--lengthen", is_flag=True, help="Give LED, PRIMERA or MPT room for the lengths.")
@click.option("--query-separator", is_flag=True, help="Give PRIMERA the token <query-doc-sep>, as OARelatedWork.")
@one_of("--optimizer", ["adamw", "lion"], "Lion is that of Chen et al. 2023; it needs a lower learning rate.")
@click.option("--weight-decay", "decay", type=click.FloatRange(0, 1), default=0.01, help="Weight decay.")
@number("--warm-up", None, "Steps in which the learning rate rises.  [default: a tenth of all]", least=0)
@with_options(schedule_options(epochs=3, evaluations=6))
@seeds_option
def writer(out: Path, device: str | None, **options: Any) -> None:
    """Train a writer of citation texts, TLDRs or related work, for `citerec generate --writer`.

    It starts from an encoder-decoder or a causal model, and learns to write the targets of the tasks. The folder keeps
    the settings for writing. Repeat the command to resume an interrupted run.
    """
    from citerec.evaluation.seeds import OverSeeds
    from citerec.train.groups import Choice
    from citerec.train.writer import WriterOptions, train_seeds, train_writer

    chosen = pop(options, "dev", "dev_share", "dev_limit", "limit")
    choice = Choice(options.pop("tasks"), seed=options["seed"], **chosen)
    schedule, seeds = writer_schedule(options), seeds_of(options)
    to_write = WriterOptions(**options)
    if not seeds:
        manifest = trained(train_writer, choice, out, to_write, schedule, device=device)
        tell_dev(out, manifest, to_write.metric, f"{manifest.training['dev_tasks']:,} dev tasks")
        return
    manifests = trained(train_seeds, choice, out, to_write, schedule, seeds, device=device)
    for seed, each in manifests.items():
        tell_dev(out / f"seed-{seed}", each, to_write.metric, f"{each.training['dev_tasks']:,} dev tasks")
    found = OverSeeds.of(each.dev[to_write.metric] for each in manifests.values())
    around = "" if found.sd is None else f" ± {found.sd:.3f}"
    say(f"{out}: {to_write.metric} {found.mean:.3f}{around} over {found.n} seeds.")


def writer_schedule(options: dict[str, Any]) -> "Schedule":
    """The schedule that the options of `train writer` set, taken out of them."""
    return schedule_of(options, **pop(options, "decay", "optimizer", "warm_up"))
