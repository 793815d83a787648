"""`citerec train`: rankers and encoders that learn from contexts."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import Share, notes, output, with_options
from citerec.cli.learning import how_long, say, schedule_of, taken
from citerec.cli.train_tagger import tagger
from citerec.cli.train_writer import writer

if TYPE_CHECKING:
    from citerec.train.groups import Choice

_PATH = click.Path(path_type=Path)
# What the models at hand take well: BERT's size at 1e-5 (LCR), small ones more.
_RATE_OF_RERANKER = 1e-5
_RATE_OF_ENCODER = 2e-5

_contexts = [
    click.option("--contexts", required=True, type=_PATH, help="Contexts with cited papers, JSON Lines."),
    click.option(
        "--dev",
        type=_PATH,
        help="Contexts to measure on while training. Their citing papers are not learnt from. Results on them say "
        "nothing new afterwards.",
    ),
    click.option(
        "--dev-share",
        type=Share(),
        default=0.1,
        show_default=True,
        help="Without --dev: share of the citing papers that is held out to measure on.",
    ),
    click.option(
        "--dev-limit", type=click.IntRange(1), default=300, show_default=True, help="Contexts to measure on, at most."
    ),
]
_LIMIT = "Contexts to learn from, at most: drawn by the seed."
_what_to_learn_from = [
    *_contexts,
    click.option("--limit", type=click.IntRange(1), help=_LIMIT),
    click.option("--index", "index_path", type=_PATH, help="Where candidates come from; the only index by default."),
    click.option(
        "--system",
        metavar="NAME|FILE",
        help="How candidates are found: a recipe, or a system built in.  [default: what recommend does]",
    ),
]


def _negatives(default: int) -> Callable[[Any], Any]:
    return click.option(
        "--negatives",
        type=click.IntRange(1),
        default=default,
        show_default=True,
        help="Candidates not cited, a cited paper.",
    )


_candidates = click.option(
    "--candidates", type=click.IntRange(2), default=100, show_default=True, help="First hits to draw them from."
)
_how_long = how_long(epochs=1, evaluations=10)


@click.group(epilog="Example: citerec train ltr --contexts train.jsonl --index indexes/acl")
def train() -> None:
    """Train rankers, encoders and fusion on contexts with cited papers, writers and taggers on texts.

    A reranker or an encoder that was stopped goes on when the command is given again.
    """


@train.command(epilog="Example: citerec train ltr --contexts train.jsonl --index indexes/acl")
@with_options(_contexts)
@click.option("--index", "index_path", type=_PATH, help="Whose candidates are ranked; the only index by default.")
@click.option("--out", type=_PATH, help="The ranker to make, or to replace.  [default: into the index itself]")
@click.option("--system", default="hybrid", show_default=True, metavar="NAME|FILE", help="How candidates are found.")
@click.option("--limit", type=click.IntRange(1), default=8000, show_default=True, help=_LIMIT)
@click.option("--rounds", type=click.IntRange(1), default=500, show_default=True, help="Trees, at most.")
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True, help="Contexts answered at once.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all that is drawn.")
def ltr(index_path: Path | None, out: Path | None, **options: Any) -> None:
    """Train the ranker of `hybrid+ltr`: LambdaMART over what every retriever says of a candidate.

    Leak rules hold: neither the citing paper's own sentences nor what is newer speak for a candidate.
    """
    from citerec.cli.progress import progress_bar
    from citerec.cli.tables import show_ranker
    from citerec.retrieve.manifest import find_index
    from citerec.train.ltr import LtrOptions, train_ltr

    index = find_index(index_path)
    place = out or index / "ltr"
    with progress_bar() as on_progress:
        ranker = LtrOptions(options["system"], options["rounds"], threads=options["threads"])
        manifest = train_ltr(_choice(options), index, place, ranker, on_progress)
    show_ranker(output(), place, manifest)


@train.command(
    epilog="Example: citerec train reranker --contexts train.jsonl --index indexes/acl "
    "--base all-MiniLM-L6-v2 --learning-rate 1e-4 --max-tokens 128"
)
@with_options(_what_to_learn_from)
@click.option("--out", type=_PATH, help="The cross-encoder to make, or to replace.  [default: into the index itself]")
@click.option(
    "--base",
    default="allenai/scibert_scivocab_uncased",
    show_default=True,
    help="With what to begin: any encoder, a folder or a name.",
)
@click.option(
    "--loss",
    type=click.Choice(["softmax", "triplet"]),
    default="softmax",
    show_default=True,
    help="Over a cited paper and all its negatives at once, or one by one with a margin of 0.1.",
)
@_negatives(9)
@_candidates
@click.option("--depth", type=click.IntRange(2), default=50, show_default=True, help="First hits ranked anew on dev.")
@click.option("--batch", type=click.IntRange(1), default=8, show_default=True, help="Cited papers a step.")
@click.option(
    "--learning-rate",
    type=click.FloatRange(0, 1, min_open=True),
    default=_RATE_OF_RERANKER,
    show_default=True,
    help="The highest. It suits models of BERT's size; small ones such as MiniLM want 1e-4.",
)
@click.option(
    "--max-tokens", type=click.IntRange(16, 8192), default=512, show_default=True, help="Tokens of a pair, at most."
)
@click.option("--citing/--no-citing", default=True, help="Read the citing paper's title and abstract.  [default: on]")
@click.option(
    "--citances/--no-citances", default=True, help="Read what others wrote citing the candidate.  [default: on]"
)
@with_options(_how_long)
def reranker(index_path: Path | None, out: Path | None, system: str | None, device: str | None, **options: Any) -> None:
    """Train a cross-encoder, which reads a sentence and a candidate together.

    It learns to tell the cited paper from others that the index finds for the sentence, with the
    citing paper and all that is newer left out. What weight its score is worth beside that of the
    search is found on dev, and kept with the model.
    """
    from citerec.cli.progress import progress_bar
    from citerec.rerank.cross_encoder_text import TextOptions
    from citerec.retrieve.manifest import find_index
    from citerec.train.reranker import RerankerOptions, train_reranker

    text = TextOptions(**{name: options.pop(name) for name in ("max_tokens", "citing", "citances")})
    choice, schedule = _choice(options), schedule_of(options)
    index = find_index(index_path)
    place = out or index / "cross-encoder"
    with progress_bar() as on_progress:
        manifest = train_reranker(
            choice,
            index,
            place,
            RerankerOptions(text=text, **options),
            schedule,
            _settings(system),
            device=device,
            on_progress=on_progress,
            note=say,
        )
    before, after = manifest.dev["mrr@10 before"], manifest.dev["mrr@10"]
    output().print(
        f"{place} trained: mrr@10 {after:.3f} on {manifest.training['dev_groups']:,} dev contexts, {before:.3f} "
        f"without it; weight {manifest.weight:g}.",
        markup=False,
        soft_wrap=True,
    )
    if not manifest.weight:
        notes().print("It did not help: its weight is 0. More contexts or epochs, or another --base, may do better.")


@train.command(epilog="Example: citerec train fusion --contexts dev.jsonl --index indexes/acm --out fusion.toml")
@click.option("--contexts", required=True, type=_PATH, help="Contexts with cited papers, JSON Lines.")
@click.option("--index", "index_path", type=_PATH, help="An index with vectors; the only index by default.")
@click.option("--out", type=_PATH, help="Write the best as a recipe, for --system FILE.")
@click.option(
    "--system", default="hybrid", show_default=True, metavar="NAME|FILE", help="Whose lists are fused: two or more."
)
@click.option("--metric", default="recall@100", show_default=True, help="What is to be high.")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help=_LIMIT)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all that is drawn.")
def fusion(contexts: Path, index_path: Path | None, out: Path | None, **options: Any) -> None:
    """Look for the weights by which a system fuses its lists: words and vectors in `hybrid`.

    By grid, as ranx does it: weighted sums of scores, and reciprocal ranks with their constant.
    """
    from citerec.cli.progress import progress_bar
    from citerec.cli.tables import show_fusion
    from citerec.retrieve.manifest import find_index
    from citerec.train.fusion import tune_fusion, write_recipe

    with progress_bar() as on_progress:
        tuned = tune_fusion(contexts, find_index(index_path), **options, on_progress=on_progress)
    show_fusion(output(), tuned)
    if out is not None:
        write_recipe(tuned, out)
        notes().print(f"Use it: citerec recommend … --system {out}", markup=False)


@train.command(epilog="Example: citerec train dense --contexts train.jsonl --index indexes/acl --out models/encoder")
@with_options(_what_to_learn_from)
@click.option("--out", required=True, type=_PATH, help="The encoder to make, or to replace: a folder.")
@click.option(
    "--base",
    default="sentence-transformers/all-MiniLM-L6-v2",
    show_default=True,
    help="With what to begin: an encoder, a folder or a name.",
)
@_negatives(1)
@_candidates
@click.option(
    "--batch",
    type=click.IntRange(2),
    default=32,
    show_default=True,
    help="Cited papers a step: each is a negative to the others, so that more are better.",
)
@click.option(
    "--learning-rate",
    type=click.FloatRange(0, 1, min_open=True),
    default=_RATE_OF_ENCODER,
    show_default=True,
    help="The highest.",
)
@click.option("--max-tokens", type=click.IntRange(8, 8192), help="Tokens of a text; as many as the base reads.")
@with_options(_how_long)
def dense(index_path: Path | None, out: Path, system: str | None, device: str | None, **options: Any) -> None:
    """Train an encoder, for `citerec index encode --model`.

    It learns to bring a sentence near the papers that it cites, and away from those that the other
    sentences cite and from others that the index finds for it.
    """
    from citerec.cli.progress import progress_bar
    from citerec.retrieve.manifest import find_index
    from citerec.train.dense import METRIC, EncoderOptions, train_encoder

    choice, schedule = _choice(options), schedule_of(options, first=True)
    with progress_bar() as on_progress:
        manifest = train_encoder(
            choice,
            find_index(index_path),
            out,
            EncoderOptions(**options),
            schedule,
            _settings(system),
            device=device,
            on_progress=on_progress,
            note=say,
        )
    before, after = manifest.dev[f"{METRIC} before"], manifest.dev[METRIC]
    output().print(
        f"{out} trained: {METRIC} {after:.3f} on {manifest.training['dev_groups']:,} dev contexts, "
        f"{before:.3f} before.",
        markup=False,
        soft_wrap=True,
    )
    if not manifest.training["best_step"]:
        notes().print("It did not help: the model is the base. More contexts or epochs may do better.")


train.add_command(tagger)
train.add_command(writer)


def _choice(options: dict[str, Any]) -> "Choice":
    from citerec.train.groups import Choice

    chosen = taken(options, "dev", "dev_share", "dev_limit", "limit")
    return Choice(options.pop("contexts"), seed=options["seed"], **chosen)


def _settings(system: str | None) -> Any:
    from citerec.systems import Recipe

    return Recipe.load(system) if system else None
