"""`citerec train`: rankers and encoders that learn from contexts."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.commands import Commands
from citerec.cli.console import note, say
from citerec.cli.learning import (
    base,
    candidates_of,
    choice_of,
    contexts_dev_options,
    contexts_option,
    learning_rate,
    limit_option,
    pop,
    recipe_of,
    schedule_of,
    schedule_options,
    tell_dev,
    tell_weighted,
    trained,
)
from citerec.cli.options import (
    Option,
    index_option,
    number,
    one_of,
    path_option,
    seed,
    settings_options,
    share,
    with_options,
)
from citerec.cli.train_ltr import ltr
from citerec.cli.train_tagger import tagger
from citerec.cli.train_tldr import tldr
from citerec.cli.train_transfer import transfer
from citerec.cli.train_writer import writer
from citerec.files.progress import progress_bar

_what_to_learn_from = [
    contexts_option,
    *contexts_dev_options,
    limit_option(None),
    index_option("The index to search for candidates"),
    click.option(
        "--system",
        metavar="NAME|FILE",
        help="The system that finds candidates: a recipe or a built-in one.  [default: as recommend]",
    ),
]
_schedule = schedule_options(epochs=1, evaluations=10)


def _negatives(default: int) -> list[Option]:
    return [
        number("--negatives", default, "Negatives (candidates that are not cited) for each cited paper."),
        number("--candidates", 100, "How many first hits the negatives are sampled from.", least=2),
    ]


@click.group(
    cls=Commands, prefix="train.", epilog="Example: citerec train ltr --contexts train.jsonl --index indexes/acl"
)
def train() -> None:
    """Train rankers, encoders and fusion on contexts with cited papers, writers and taggers on texts.

    Repeat the command to resume the training of a reranker or an encoder.
    """


@train.command(
    epilog="Example: citerec train reranker --contexts train.jsonl --index indexes/acl "
    "--base all-MiniLM-L6-v2 --learning-rate 1e-4 --max-tokens 128"
)
@with_options(_what_to_learn_from)
@path_option("--out", help="The cross-encoder to make, or to replace.  [default: into the index itself]")
@base("allenai/scibert_scivocab_uncased", "any encoder")
@one_of(
    "--loss",
    ["softmax", "triplet"],
    "softmax: over a cited paper and all its negatives at once; triplet: one by one with a margin of 0.1.",
)
@with_options(_negatives(9))
@number("--depth", 50, "How many first hits are reranked on dev.", least=2)
@number("--batch", 8, "Cited papers per step.")
# What worked with known models: 1e-5 for those of BERT's size (LCR), more for small ones.
@learning_rate(1e-5, "Peak learning rate. 1e-5 suits models of BERT's size; small ones such as MiniLM need 1e-4.")
@click.option("--max-tokens", type=click.IntRange(16, 8192), default=512, help="Tokens of a pair, at most.")
@click.option("--citing/--no-citing", default=True, help="Read the citing paper's title and abstract.")
@click.option("--citances/--no-citances", default=True, help="Read a sentence of another paper citing the candidate.")
@click.option("--marker/--no-marker", default=False, help="Read the place of the citation, as a token of its own.")
@click.option("--rank-prior/--no-rank-prior", default=False, help="Read the candidate's rank too, as in DAVINCI.")
@with_options(_schedule)
def reranker(index: Path, out: Path | None, system: str | None, device: str | None, **options: Any) -> None:
    """Train a cross-encoder, which reads a sentence and a candidate together.

    It learns to tell the cited paper from others that the index finds for the sentence, with the
    citing paper and everything newer left out. The weight of its score against that of the search is
    tuned on dev, and kept with the model.
    """
    from citerec.index.generations import trained_of
    from citerec.rerank.cross_encoder_text import TextOptions
    from citerec.train.reranker import RerankerOptions, train_reranker

    text = TextOptions(**pop(options, "max_tokens", "citing", "citances", "marker", "rank_prior"))
    choice, schedule = choice_of(options), schedule_of(options)
    place = out or trained_of(index, "cross-encoder")
    arguments = (choice, index, place, RerankerOptions(text=text, **options), schedule, recipe_of(system))
    tell_weighted(place, trained(train_reranker, *arguments, device=device))


@train.command(epilog="Example: citerec train fusion --contexts dev.jsonl --index indexes/acm --out fusion.toml")
@contexts_option
@index_option("An index with vectors")
@path_option("--out", help="Write the best fusion as a recipe, for --system FILE.")
@candidates_of("hybrid", "The system whose lists are fused: two or more.")
@click.option("--metric", default="recall@100", help="The metric to maximise.")
@limit_option(1000)
@seed
def fusion(contexts: Path, index: Path, out: Path | None, **options: Any) -> None:
    """Tune the weights with which a system fuses its lists: words and vectors in `hybrid`.

    A grid search: weighted sums of scores, with weights in tenths, and reciprocal ranks with their constant.
    """
    from citerec.cli.tables import show_fusion
    from citerec.train.fusion import tune_fusion, write_recipe

    with progress_bar() as on_progress:
        tuned = tune_fusion(contexts, index, **options, on_progress=on_progress)
    show_fusion(tuned)
    if out is not None:
        write_recipe(tuned, out)
        note(f"Use it: citerec recommend … --system {out}")


@train.command(epilog="Example: citerec train confidence --contexts dev.jsonl --index indexes/acm --system hybrid")
@contexts_option
@index_option("The index whose system is calibrated")
@with_options(settings_options)
@limit_option(5000)
@seed
def confidence(contexts: Path, index: Path, system: str | None, assignments: tuple[str, ...], **options: Any) -> None:
    """Calibrate how sure a system is of its answers, for `recommend --min-confidence`.

    It learns from the scores of the first ten papers how probable it is that the first is right, and
    that one of the ten is. Give contexts that the system did not learn from: a few hundred at least.
    """
    from citerec.cli.tables import show_calibration
    from citerec.systems import Recipe, default_system
    from citerec.train.confidence import train_confidence

    name = system or default_system(index)
    with progress_bar() as on_progress:
        made = train_confidence(
            contexts, index, name, Recipe.load(name, assignments), **options, on_progress=on_progress
        )
    show_calibration(index, made)


@train.command(epilog="Example: citerec train dense --contexts train.jsonl --index indexes/acl --out models/encoder")
@with_options(_what_to_learn_from)
@path_option("--out", required=True, help="The encoder to make, or to replace: a folder.")
@base("sentence-transformers/all-MiniLM-L6-v2", "an encoder")
@with_options(_negatives(1))
@number("--batch", 32, "Cited papers per step: each is a negative for the others.", least=2)
@learning_rate(2e-5, "Peak learning rate.")
@click.option(
    "--max-tokens", type=click.IntRange(8, 8192), help="Tokens of a text.  [default: as many as the base reads]"
)
@with_options(_schedule)
def dense(index: Path, out: Path, system: str | None, device: str | None, **options: Any) -> None:
    """Train an encoder, for `citerec index encode --model`.

    It learns to bring a sentence near the papers that it cites, and away from those that the other
    sentences cite and from others that the index finds for it.
    """
    from citerec.train.dense import METRIC, EncoderOptions, train_encoder

    choice, schedule = choice_of(options), schedule_of(options)
    arguments = (choice, index, out, EncoderOptions(**options), schedule, recipe_of(system))
    manifest = trained(train_encoder, *arguments, device=device)
    tell_dev(out, manifest, METRIC, f"{manifest.training['dev_groups']:,} dev contexts")


@train.command(epilog="Example: citerec train static --index indexes/acm --out models/static")
@index_option("The index whose vectors are learnt")
@path_option("--out", required=True, help="The encoder to make, or to replace.")
@base("sentence-transformers/all-MiniLM-L6-v2", "only its tokenizer is used")
@number("--max-tokens", 192, "How many tokens of a paper are read.", least=8)
@share("--cut", 0.5, "Share of the papers of a step of which only a passage is read, as long as a query.")
@click.option(
    "--contrast",
    type=click.FloatRange(0),
    default=0.3,
    help="Weight of the loss that tells a paper from the others of its step.",
)
@number("--batch", 1024, "Papers of a step.", least=2)
@number("--limit", 500_000, "Papers to learn from, at most; sampled by the seed.", least=2)
@learning_rate(3e-3, "Peak learning rate.")
@with_options(schedule_options(epochs=3, evaluations=5))
def static(index: Path, out: Path, device: str | None, **options: Any) -> None:
    """Train a static encoder, which needs no network: a text's vector is the mean of its tokens'.

    It learns the vectors of the index's papers, whatever model made them. It encodes queries for them
    (--set dense.queries=FOLDER), or papers and queries (citerec index encode --model FOLDER), on a machine
    that has no other model, and hundreds of times as fast.
    """
    from citerec.train.static import StaticOptions, train_static

    schedule = schedule_of(options)
    manifest = trained(train_static, index, out, StaticOptions(**options), schedule, device=device)
    papers, found, cosine = manifest.training["papers"], manifest.dev["found"], manifest.dev["cosine"]
    say(f"{out} trained on {papers:,} papers: {found:.1%} of those held out found first, cosine {cosine:.3f}.")


train.add_command(ltr)
train.add_command(tagger)
train.add_command(tldr)
train.add_command(transfer)
train.add_command(writer)
