"""`citerec train`: rankers and encoders that learn from contexts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import note, say
from citerec.cli.learning import base, dev_options, learning_rate, pop, schedule_of, schedule_options, tell_dev, trained
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

if TYPE_CHECKING:
    from citerec.train.groups import Choice


def _candidates_of(default: str, what: str) -> Option:
    return click.option("--system", default=default, metavar="NAME|FILE", help=what)


def _limit(default: int | None) -> Option:
    return number("--limit", default, "Contexts to learn from, at most; sampled by the seed.")


_contexts = path_option("--contexts", required=True, help="Contexts with cited papers, JSON Lines.")
_dev = dev_options("Contexts", "citing papers", 300)
_what_to_learn_from = [
    _contexts,
    *_dev,
    _limit(None),
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


@click.group(epilog="Example: citerec train ltr --contexts train.jsonl --index indexes/acl")
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
def reranker(index_path: Path | None, out: Path | None, system: str | None, device: str | None, **options: Any) -> None:
    """Train a cross-encoder, which reads a sentence and a candidate together.

    It learns to tell the cited paper from others that the index finds for the sentence, with the
    citing paper and everything newer left out. The weight of its score against that of the search is
    tuned on dev, and kept with the model.
    """
    from citerec.rerank.cross_encoder_text import TextOptions
    from citerec.retrieve.manifest import find_index
    from citerec.train.reranker import RerankerOptions, train_reranker

    text = TextOptions(**pop(options, "max_tokens", "citing", "citances", "marker", "rank_prior"))
    choice, schedule = _choice(options), schedule_of(options)
    index = find_index(index_path)
    place = out or index / "cross-encoder"
    arguments = (choice, index, place, RerankerOptions(text=text, **options), schedule, _settings(system))
    _tell_weighted(place, trained(train_reranker, *arguments, device=device))


@train.command(epilog="Example: citerec train ncn --contexts train.jsonl --index indexes/acl --preset port")
@_contexts
@with_options(_dev)
@_limit(None)
@index_option("The index to search for candidates, and whose titles are learned")
@_candidates_of("ncn", "The system that finds candidates.")
@path_option("--out", help="The network to make, or to replace.  [default: into the index itself]")
@one_of(
    "--preset",
    ["original", "port"],
    "Sizes of the authors' code or of its larger port; the following options change single ones.",
)
@number("--embedding", None, "Numbers of a word's vector.")
@number("--hidden", None, "Numbers of the decoder's state.")
@number("--filters", None, "Filters of each width.")
@number("--vocabulary", None, "Words of each vocabulary (texts, titles, authors), at most.")
@number("--depth", 256, "How many first hits are ranked on dev.", least=2)
@number("--batch", 64, "Cited papers per step.")
@learning_rate(1e-3, "Peak learning rate.")
@with_options(schedule_options(epochs=5, evaluations=5))
def ncn(index_path: Path | None, out: Path | None, system: str, device: str | None, **options: Any) -> None:
    """Train the network of `ncn`, which ranks candidates by how well it could write their titles.

    It learns to write the title of the cited paper after a sentence, word by word, and needs no
    negatives. The weight of its score against that of the search is tuned on dev, and kept with the
    network; so is whether long titles cost more.
    """
    from citerec.rerank.ncn.network import PRESETS
    from citerec.retrieve.manifest import find_index
    from citerec.train.ncn import NcnOptions, train_ncn

    changes = pop(options, "embedding", "hidden", "filters", "vocabulary")
    sizes = PRESETS[options.pop("preset")].model_copy(
        update={name: value for name, value in changes.items() if value is not None}
    )
    choice, schedule = _choice(options), schedule_of(options)
    index = find_index(index_path)
    place = out or index / "ncn"
    arguments = (choice, index, place, NcnOptions(sizes, **options), schedule, _settings(system))
    _tell_weighted(place, trained(train_ncn, *arguments, device=device))


@train.command(epilog="Example: citerec train fusion --contexts dev.jsonl --index indexes/acm --out fusion.toml")
@_contexts
@index_option("An index with vectors")
@path_option("--out", help="Write the best fusion as a recipe, for --system FILE.")
@_candidates_of("hybrid", "The system whose lists are fused: two or more.")
@click.option("--metric", default="recall@100", help="The metric to maximise.")
@_limit(1000)
@seed
def fusion(contexts: Path, index_path: Path | None, out: Path | None, **options: Any) -> None:
    """Tune the weights with which a system fuses its lists: words and vectors in `hybrid`.

    A grid search: weighted sums of scores, with weights in tenths, and reciprocal ranks with their constant.
    """
    from citerec.cli.tables import show_fusion
    from citerec.groundwork.progress_bar import progress_bar
    from citerec.retrieve.manifest import find_index
    from citerec.train.fusion import tune_fusion, write_recipe

    with progress_bar() as on_progress:
        tuned = tune_fusion(contexts, find_index(index_path), **options, on_progress=on_progress)
    show_fusion(tuned)
    if out is not None:
        write_recipe(tuned, out)
        note(f"Use it: citerec recommend … --system {out}")


@train.command(epilog="Example: citerec train confidence --contexts dev.jsonl --index indexes/acm --system hybrid")
@_contexts
@index_option("The index whose system is calibrated")
@with_options(settings_options)
@_limit(5000)
@number("--threads", 2, "Contexts searched at once.")
@seed
def confidence(
    contexts: Path, index_path: Path | None, system: str | None, assignments: tuple[str, ...], **options: Any
) -> None:
    """Calibrate how sure a system is of its answers, for `recommend --min-confidence`.

    It learns from the scores of the first ten papers how probable it is that the first is right, and
    that one of the ten is. Give contexts that the system did not learn from: a few hundred at least.
    """
    from citerec.cli.tables import show_calibration
    from citerec.groundwork.progress_bar import progress_bar
    from citerec.retrieve.manifest import find_index
    from citerec.systems import Recipe, default_system
    from citerec.train.confidence import train_confidence

    index = find_index(index_path)
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
def dense(index_path: Path | None, out: Path, system: str | None, device: str | None, **options: Any) -> None:
    """Train an encoder, for `citerec index encode --model`.

    It learns to bring a sentence near the papers that it cites, and away from those that the other
    sentences cite and from others that the index finds for it.
    """
    from citerec.retrieve.manifest import find_index
    from citerec.train.dense import METRIC, EncoderOptions, train_encoder

    choice, schedule = _choice(options), schedule_of(options, first=True)
    arguments = (choice, find_index(index_path), out, EncoderOptions(**options), schedule, _settings(system))
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
def static(index_path: Path | None, out: Path, device: str | None, **options: Any) -> None:
    """Train a static encoder, which needs no network: a text's vector is the mean of its tokens'.

    It learns the vectors of the index's papers, whatever model made them. It encodes queries for them
    (--set dense.queries=FOLDER), or papers and queries (citerec index encode --model FOLDER), on a machine
    that has no other model, and hundreds of times as fast.
    """
    from citerec.retrieve.manifest import find_index
    from citerec.train.static import StaticOptions, train_static

    schedule = schedule_of(options)
    manifest = trained(train_static, find_index(index_path), out, StaticOptions(**options), schedule, device=device)
    papers, found, cosine = manifest.training["papers"], manifest.dev["found"], manifest.dev["cosine"]
    say(f"{out} trained on {papers:,} papers: {found:.1%} of those held out found first, cosine {cosine:.3f}.")


@train.command(
    epilog="Example: citerec train hatten --contexts train.jsonl --index indexes/acl --words glove.6B.200d.txt "
    "--out models/hatten"
)
@_contexts
@with_options(_dev)
@_limit(None)
@index_option("The index with the cited papers")
@path_option("--out", required=True, help="The model to make, or to replace: a folder.")
@click.option(
    "--words",
    default="sentence-transformers/all-MiniLM-L6-v2",
    metavar="NAME|FILE",
    help="Word vectors, which stay as they are: a file in GloVe's text format, or an encoder for its token embeddings.",
)
@number("--vocabulary", 100_000, "Words of a file, at most: the most frequent of papers and contexts.")
@number("--width", None, "Numbers of a vector.  [default: as many as a word has]")
@number("--heads", 8, "Heads of each layer; they divide the width.")
@number("--feed-forward", 1024, "Width of the inner layers.")
@number("--max-words", 512, "The first words of a paragraph that are read.")
@number("--negatives", 3, "Hard negatives for each cited paper: drawn from the model's own first hits.")
@number("--candidates", 100, "How many first hits the negatives are drawn from.", least=2)
@number("--mine-every", 500, "Steps after which the hits are searched anew; 5,000 in the paper.")
@number("--pool", 200_000, "Papers of the index that are searched for them, at most, beside the cited ones.")
@click.option(
    "--alike/--no-alike",
    default=True,
    help="Whether a hit that shares as many words with the topic as the cited paper counts as relevant too.",
)
@click.option("--graded/--no-graded", default=True, help="Whether hard negatives are to be above easy ones.")
@number("--batch", 64, "Cited papers per step.")
@learning_rate(1e-4, "Peak learning rate.")
@with_options(schedule_options(epochs=5, evaluations=10))
def hatten(index_path: Path | None, out: Path, device: str | None, **options: Any) -> None:
    """Train a HAtten model, for `citerec index encode --retriever hatten --model`.

    A small encoder over frozen word vectors (Gu et al. 2022). It learns from hard negatives that it
    finds itself, with the citing paper and everything newer left out.
    """
    from citerec.retrieve.manifest import find_index
    from citerec.train.hatten import DECAY, METRIC, HattenOptions, train_hatten

    choice, schedule = _choice(options), schedule_of(options, first=True, decay=DECAY)
    arguments = (choice, find_index(index_path), out, HattenOptions(**options), schedule)
    manifest = trained(train_hatten, *arguments, device=device)
    tell_dev(out, manifest, METRIC, f"{manifest.training['dev_groups']:,} dev contexts")


@train.command(epilog="Example: citerec train citebart --contexts train.jsonl --index indexes/acl")
@_contexts
@with_options(_dev)
@_limit(None)
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
def citebart(index_path: Path | None, out: Path | None, device: str | None, **options: Any) -> None:
    """Train the encoder-decoder of `citebart`, which writes author and year of the cited paper.

    The sentence has a mask in place of the citation. Nothing is searched, and no negatives are
    needed.
    """
    from citerec.retrieve.manifest import find_index
    from citerec.train.citebart import METRIC, CiteBartOptions, train_citebart

    choice, schedule = _choice(options), schedule_of(options, first=True)
    index = find_index(index_path)
    place = out or index / "citebart"
    manifest = trained(train_citebart, choice, index, place, CiteBartOptions(**options), schedule, device=device)
    tell_dev(place, manifest, METRIC, f"{manifest.training['dev_groups']:,} dev contexts")


train.add_command(ltr)
train.add_command(tagger)
train.add_command(tldr)
train.add_command(transfer)
train.add_command(writer)


def _choice(options: dict[str, Any]) -> "Choice":
    from citerec.train.groups import Choice

    return Choice(
        options.pop("contexts"), seed=options["seed"], **pop(options, "dev", "dev_share", "dev_limit", "limit")
    )


def _tell_weighted(out: Path, manifest: Any) -> None:
    """Prints how well a reranker does on dev, after and before training, and the weight of its score."""
    before, after = manifest.dev["mrr@10 before"], manifest.dev["mrr@10"]
    say(
        f"{out} trained: mrr@10 {after:.3f} on {manifest.training['dev_groups']:,} dev contexts, {before:.3f} "
        f"without it; weight {manifest.weight:g}."
    )
    if not manifest.weight:
        note("It did not help: its weight is 0. More contexts or epochs, or other options, may help.")


def _settings(system: str | None) -> Any:
    from citerec.systems import Recipe

    return Recipe.load(system) if system else None
