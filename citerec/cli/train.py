"""`citerec train`: rankers and encoders that learn from contexts, taggers and writers that learn from texts."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.commands import Commands
from citerec.cli.console import note, output, say
from citerec.cli.learning import (
    base,
    candidates_of,
    choice_of,
    contexts_dev_options,
    contexts_option,
    dev_options,
    learning_rate,
    limit_option,
    pop,
    recipe_of,
    schedule_of,
    schedule_options,
    seeds_of,
    seeds_option,
    tell_dev,
    tell_weighted,
    trained,
)
from citerec.cli.options import (
    PATH,
    Option,
    index_option,
    number,
    on,
    one_of,
    path_option,
    seed,
    settings_options,
    share,
    with_options,
    working,
)
from citerec.evaluation.rendering import Table, left, right, show
from citerec.files.progress import progress_bar
from citerec.records import EVENTS

if TYPE_CHECKING:
    from citerec.confidence import Calibration
    from citerec.discourse.base import TaggerManifest
    from citerec.rerank.ltr import LtrManifest
    from citerec.systems import Recipe
    from citerec.train.base import Schedule
    from citerec.train.fusion import TunedFusion

_SHOWN_FEATURES = 12
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
@number("--max-tokens", 512, "Tokens of a pair, at most.", least=16, most=8192)
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
    from citerec.train.fusion import tune_fusion, write_recipe

    with progress_bar() as on_progress:
        tuned = tune_fusion(contexts, index, **options, on_progress=on_progress)
    _show_fusion(tuned)
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
    from citerec.systems import Recipe, default_system
    from citerec.train.confidence import train_confidence

    name = system or default_system(index)
    with progress_bar() as on_progress:
        made = train_confidence(
            contexts, index, name, Recipe.load(name, assignments), **options, on_progress=on_progress
        )
    _show_calibration(index, made)


@train.command(epilog="Example: citerec train dense --contexts train.jsonl --index indexes/acl --out models/encoder")
@with_options(_what_to_learn_from)
@path_option("--out", required=True, help="The encoder to make, or to replace: a folder.")
@base("sentence-transformers/all-MiniLM-L6-v2", "an encoder")
@with_options(_negatives(1))
@number("--batch", 32, "Cited papers per step: each is a negative for the others.", least=2)
@learning_rate(2e-5, "Peak learning rate.")
@number("--max-tokens", None, "Tokens of a text.  [default: as many as the base reads]", least=8, most=8192)
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


@train.command(
    epilog="Example: citerec train ltr --index indexes/acl. With contexts: citerec train ltr --contexts train.jsonl "
    "--index indexes/acl"
)
@path_option(
    "--contexts",
    help="Contexts with cited papers, JSON Lines.  [default: the citing sentences of the index itself]",
)
@with_options(contexts_dev_options)
@index_option("The index whose candidates are ranked")
@click.option(
    "--also",
    "also",
    nargs=2,
    type=PATH,
    multiple=True,
    metavar="INDEX CONTEXTS",
    help="A further index with its contexts, for --portable. May be given several times.",
)
@click.option(
    "--portable", is_flag=True, help="Make a ranker for other indexes: it learns from what these may have too."
)
@path_option("--out", help="The ranker to make, or to replace.  [default: into the index itself]")
@click.option(
    "--system",
    metavar="NAME|FILE",
    help="The system that finds candidates.  [default: the best of the index that finds by words and vectors]",
)
@number("--limit", 8000, "Contexts to learn from, at most; sampled by the seed.")
@number("--rounds", 500, "Trees, at most.")
@number(
    "--workers",
    None,
    "Processes that search at once, each with the index open.  [default: 1; one for each processor with --on]",
)
@on
@seed
def ltr(
    index: Path,
    out: Path | None,
    *,
    also: tuple[tuple[Path, Path], ...],
    portable: bool,
    workers: int | None,
    on: str | None,
    **options: Any,
) -> None:
    """Train the ranker of `hybrid+ltr`: LambdaMART over every retriever's signals of a candidate.

    It learns from a file of contexts or, without one, from the citing sentences of the index. Leak rules apply: neither
    the citing paper's own sentences nor newer ones support a candidate. With --on, candidates are searched for
    on a cluster, whose machines need the index at the same path; the trees are learnt here.
    """
    from citerec.index.generations import generation_of, trained_of
    from citerec.index.manifest import DENSE
    from citerec.index.vectors.vectors import has_vectors
    from citerec.systems import default_retrieval
    from citerec.train.examples import OWN, own_contexts
    from citerec.train.groups import Choice
    from citerec.train.ltr import FOR_EVERYONE, LtrOptions, Source, train_ltr

    if also and not portable:
        raise click.UsageError("--also is for rankers that several indexes can use: add --portable")
    if portable and not out:
        raise click.UsageError("a portable ranker belongs to no index: give --out FOLDER")
    place = out or trained_of(index, "ltr")
    base = FOR_EVERYONE if portable else LtrOptions(rounds=options["rounds"])
    if options["system"] is None:
        # Without vectors, the system of the options says what is missing.
        knows_best = not portable and has_vectors(generation_of(index) / DENSE)
        options["system"] = default_retrieval(index) if knows_best else base.system
    ranker = replace(base, system=options["system"])
    further = [
        Source(folder, Choice(contexts, limit=options["limit"], seed=options["seed"])) for folder, contexts in also
    ]
    with working(on, workers, here=1) as (parallelism, on_progress), contextlib.ExitStack() as stack:
        name = None
        if options["contexts"] is None:
            options["contexts"] = stack.enter_context(own_contexts(index, options["limit"], options["seed"]))
            name = OWN
        sources = [Source(index, choice_of(options), name), *further]
        manifest = train_ltr(sources, place, ranker, on_progress, parallelism)
    _show_ranker(place, manifest)


@train.command(epilog="Example: citerec train tagger scicite/train.txt --dev scicite/dev.txt --out taggers/scicite")
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
@number("--max-tokens", 256, "Tokens of a sentence and its neighbours, at most (encoder).", least=16, most=8192)
@with_options(schedule_options(epochs=3, evaluations=6))
def tagger(train_file: Path, out: Path, device: str | None, **options: Any) -> None:
    """Train a tagger of citing sentences on TRAIN_FILE.

    TRAIN_FILE is from SciCite or ACL-ARC (citation intents) or from CORWA (sentences of related work);
    its lines show which. The linear tagger needs no other model and takes seconds; the options of the
    schedule and the device are for encoders.
    Prints macro-F1, accuracy and the scores of each label on dev, and keeps them in the folder.
    """
    from citerec.train.tagger import TaggerOptions, train_tagger

    schedule = schedule_of(options)
    manifest = trained(train_tagger, train_file, out, TaggerOptions(**options), schedule, device=device)
    _show_tagger(out, manifest)


def _show_tagger(out: Path, manifest: "TaggerManifest") -> None:

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


@train.command(
    epilog='Example: citerec train tldr --tasks scitldr/train.jsonl --out models/tldr --data "SciTLDR-A, train"'
)
@path_option("--tasks", required=True, help="Abstracts with TLDRs, JSON Lines, in SciTLDR's or CiteBench's format.")
@path_option("--out", required=True, help="The writer to make, or to replace: a folder.")
@click.option("--data", default="", metavar="TEXT", help="What the tasks are, and their licence: for the datasheet.")
@seed
def tldr(tasks: Path, out: Path, data: str, seed: int) -> None:
    """Train an extractive writer of TLDRs, for `citerec write --writer trained --option model=FOLDER`.

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


@train.command(
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
    """Train a writer of citation texts, TLDRs or related work, for `citerec write --writer`.

    It starts from an encoder-decoder or a causal model, and learns to write the targets of the tasks. The folder keeps
    the settings for writing. Repeat the command to resume an interrupted run.
    """
    from citerec.evaluation.seeds import OverSeeds
    from citerec.train.writer import WriterOptions, train_seeds, train_writer

    choice = choice_of(options, "tasks")
    schedule, seeds = writer_schedule(options), seeds_of(options)
    to_write = WriterOptions(**options)
    if not seeds:
        manifest = trained(train_writer, choice, out, to_write, schedule, device=device)
        tell_dev(out, manifest, to_write.metric, f"{manifest.training['dev_tasks']:,} dev tasks")
        return
    manifests = trained(train_seeds, choice, out, to_write, schedule, seeds, device=device)
    for each_seed, each in manifests.items():
        tell_dev(out / f"seed-{each_seed}", each, to_write.metric, f"{each.training['dev_tasks']:,} dev tasks")
    found = OverSeeds.of(each.dev[to_write.metric] for each in manifests.values())
    around = "" if found.sd is None else f" ± {found.sd:.3f}"
    say(f"{out}: {to_write.metric} {found.mean:.3f}{around} over {found.n} seeds.")


def writer_schedule(options: dict[str, Any]) -> "Schedule":
    """The schedule that the options of `train writer` set, taken out of them."""
    return schedule_of(options, **pop(options, "decay", "optimizer", "warm_up"))


def _show_ranker(path: Path, manifest: "LtrManifest") -> None:
    """Shows a learnt ranker: its score on dev, and the gain of its features."""
    from citerec.rerank.features import FEATURES

    dev = manifest.dev
    say(
        f"{path}: {manifest.training['trees']} trees, learnt from {manifest.training['learnt_from']:,} contexts. "
        f"mrr@10 {dev['mrr@10 before']:.3f} → {dev['mrr@10']:.3f} on {dev['contexts']:,.0f} held out whose cited paper "
        "is among the candidates."
    )
    gains = sorted(manifest.gain.items(), key=lambda item: -item[1])[:_SHOWN_FEATURES]
    columns = [*left("feature"), *right("share of the gain", format=".1%"), *left("meaning")]
    show(output(), Table(columns, [[name, gain, FEATURES[name].meaning] for name, gain in gains]))


def _show_calibration(index: Path, made: "Calibration") -> None:
    """Shows a calibration: how well its probabilities fit contexts that they were not fitted on."""
    about = made.training
    left_out = f"; {about['left_out']:,} left out, which it learnt from" if about["left_out"] else ""
    say(f"{made.system} calibrated on {index}: {about['fitted_on']:,} contexts{left_out}.")
    names = ("ece", "highest ece", "ece of halves", "ece by chance", "brier")
    columns = [
        *left("each half by the other"),
        *right("right", "ECE", "highest", "of a half", "by chance", "Brier", format=".3f"),
    ]
    rows = [[EVENTS[event], one["right"], *map(one.__getitem__, names)] for event, one in made.measured.items()]
    show(output(), Table(columns, rows))


def _show_fusion(tuned: "TunedFusion") -> None:
    """Shows ways of fusing words and vectors, and the score of each."""
    from citerec.retrieve.base import RETRIEVERS

    rows = [
        *([f"{RETRIEVERS[name].label} alone", score] for name, score in tuned.alone.items()),
        [f"current: {_fusion(tuned.before.recipe)}", tuned.before.score],
        *([f"best {_fusion(tried.recipe)}", tried.score] for tried in tuned.tried),
    ]
    show(output(), Table([*left(f"{tuned.contexts:,} contexts"), *right(tuned.metric, format=".3f")], rows))


def _fusion(recipe: "Recipe") -> str:
    if recipe.fusion.method == "rrf":
        return f"rrf, fusion.k={recipe.fusion.k:g}"
    return "weighted, " + " ".join(f"retrievers.{name}={weight:g}" for name, weight in recipe.retrievers.items())
