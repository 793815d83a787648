"""Train rankers, encoders, writers and taggers.

Repeat the command to resume a training that was stopped. --print-config shows all hyper-parameters; -c KEY=VALUE and
--config FILE change them.

Example: citerec train ltr --contexts train.jsonl --index indexes/acl
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from citerec.cli import learning, options
from citerec.cli.console import note, say
from citerec.errors import UsageError
from citerec.evaluation.tables import OverSeeds, Table, left, right, table_of
from citerec.files.progress import progress_bar
from citerec.files.writing import apart
from citerec.index.manifest import DENSE, find_index, generation_of, trained_of
from citerec.index.vectors import has_vectors
from citerec.models.encoder import BY_MODEL, BY_TITLES
from citerec.records import EVENTS
from citerec.rerank.cross_encoder import TextOptions
from citerec.rerank.ltr import FEATURES
from citerec.retrieve.base import RETRIEVERS
from citerec.retrieve.dense import QUERIES
from citerec.systems import choose, default_retrieval
from citerec.train import ranking
from citerec.train.confidence import train_confidence
from citerec.train.encoders import (
    METRIC,
    STATIC_SCHEDULE,
    EncoderOptions,
    RerankerOptions,
    StaticOptions,
    train_encoder,
    train_reranker,
    train_static,
)
from citerec.train.groups import Choice
from citerec.train.tagger import TaggerOptions, train_tagger
from citerec.train.writer import DEFAULT_BASE, WriterOptions, train_seeds, train_tldr, train_writer

_SHOWN_FEATURES = 12
_Contexts = Annotated[Path, Parameter(name="--contexts", help="Contexts with cited papers, JSON Lines.")]


def reranker(
    *,
    source: learning.FromContexts,
    system: learning.Finder = None,
    out: learning.OutOfIndex = None,
    base: learning.Base = "allenai/scibert_scivocab_uncased",
) -> None:
    """Train a cross-encoder, which reads a sentence and a candidate together.

    It learns to tell the cited paper from others that the index finds for the sentence, with the
    citing paper and everything newer left out. The weight of its score against that of the search is
    tuned on dev, and kept with the model. A learning rate of 1e-5 suits models of BERT's size; small ones such
    as MiniLM need 1e-4.

    Example: citerec train reranker --contexts train.jsonl --index indexes/acl --base all-MiniLM-L6-v2
    -c learning_rate=1e-4 -c max_tokens=128
    """
    settings = source.settings(Choice, RerankerOptions, TextOptions, own=("text",), learning_rate=1e-5)
    options = settings.of(RerankerOptions, base=base, text=settings.of(TextOptions))
    place = out or trained_of(source.place, "cross-encoder")
    learning.tell(place, source.learn(train_reranker, settings, place, options, system=learning.recipe_of(system)))


def fusion(
    *,
    contexts: _Contexts,
    index: options.IndexPath = None,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"))] = None,
    system: Annotated[str, Parameter(metavar="NAME|FILE")] = "hybrid",
    metric: str = "recall@100",
    limit: options.Count = 1000,
) -> None:
    """Tune the weights with which a system fuses its lists: words and vectors in `hybrid`.

    A grid search: weighted sums of scores, with weights in tenths.

    Example: citerec train fusion --contexts dev.jsonl --index indexes/acm --out fusion.toml

    Args:
        out: Write the best fusion as a recipe, for --system FILE.
        system: The system whose lists are fused: two or more.
        metric: The metric to maximise.
        limit: Contexts to learn from, at most; a sample.
    """
    if out is not None:
        apart(out, contexts)
    with progress_bar() as on_progress:
        tuned = ranking.tune_fusion(
            contexts, find_index(index), system=system, metric=metric, limit=limit, on_progress=on_progress
        )
    scores = {f"{RETRIEVERS[name].label} alone": score for name, score in tuned.alone.items()}
    weights = " ".join(f"retrievers.{name}={weight:g}" for name, weight in tuned.recipe.retrievers.items())
    scores |= {"as it is, but without feedback": tuned.before, f"best weights: {weights}": tuned.score}
    say(table_of([{f"{tuned.contexts:,} contexts": name, tuned.metric: score} for name, score in scores.items()]))
    if out is not None:
        ranking.write_recipe(tuned, out)
        note(f"Use it: citerec recommend … --system {out}")


def confidence(
    *, contexts: _Contexts, chosen: options.Searching = options.Searching(), limit: options.Count = 5000
) -> None:
    """Calibrate how sure a system is of its answers: its verdicts, and `recommend --min-confidence`.

    It learns from the scores of the first ten papers how probable it is that the first is right, and
    that one of the ten is. Give contexts that the system did not learn from: a few hundred at least.

    Example: citerec train confidence --contexts dev.jsonl --index indexes/acm --system hybrid

    Args:
        limit: Contexts to learn from, at most; a sample.
    """
    place = find_index(chosen.index)
    _, name, recipe = choose(place, chosen.system, chosen.changes())
    with progress_bar() as on_progress:
        choice = Choice(contexts, limit=limit)
        model = train_confidence(choice, place, name, recipe, on_progress)
    about, columns = model.training, [*left("each fifth by the others"), *right("right", "ece", "brier", format=".3f")]
    rows = [[EVENTS[event], one["right"], one["ece"], one["brier"]] for event, one in model.measured.items()]
    counts = f"{about['fitted_on']:,} contexts, {about['left_out']:,} others left out"
    say(f"{name} calibrated on {place}: {counts}.", Table(columns, rows))


def dense(
    *,
    source: learning.FromContexts,
    system: learning.Finder = None,
    out: learning.Out,
    base: learning.Base = "sentence-transformers/all-MiniLM-L6-v2",
) -> None:
    """Train an encoder, for `citerec index encode --model`.

    It learns to bring a sentence near the papers that it cites, and away from those that the other
    sentences cite and from others that the index finds for it.

    Example: citerec train dense --contexts train.jsonl --index indexes/acl --out models/encoder
    """
    settings = source.settings(Choice, EncoderOptions, learning_rate=2e-5)
    options = settings.of(EncoderOptions, base=base)
    learning.tell(out, source.learn(train_encoder, settings, out, options, system=learning.recipe_of(system)), METRIC)


def static(
    *,
    index: options.IndexPath = None,
    out: learning.OutOfIndex = None,
    base: learning.Base = "sentence-transformers/all-MiniLM-L6-v2",
    hyper: learning.Hyper = learning.Hyper(),
) -> None:
    """Train a static encoder, which needs no network: a text's vector is the mean of its tokens'.

    It learns the vectors of the index's papers, whatever model made them; of --base only the tokenizer is used. In
    the index itself it encodes queries for them, if titles find their papers nearly as well as by that model; named
    by -c dense.queries=FOLDER it always does; with citerec index encode --model FOLDER, papers and queries, on a
    machine that has no other model, and hundreds of times as fast.

    Example: citerec train static --index indexes/acm --out models/static
    """
    settings = hyper.settings(StaticOptions, **asdict(STATIC_SCHEDULE))
    path = find_index(index)
    place = out or trained_of(path, QUERIES)
    manifest = hyper.train(train_static, settings, [path], place, settings.of(StaticOptions, base=base))
    papers, dev = manifest.training["papers"], manifest.dev
    by_model = f" (by their model {dev[BY_MODEL]:.1%})" if BY_MODEL in dev else ""
    found = f"{dev[BY_TITLES]:.1%} of titles held out find their papers among the first ten{by_model}"
    say(f"{place} trained on {papers:,} papers: {found}.")


def ltr(
    *,
    contexts: Annotated[Path | None, Parameter(name="--contexts")] = None,
    dev: learning.Dev = None,
    limit: options.Count = 8000,
    index: options.IndexPath = None,
    also: tuple[tuple[Path, Path], ...] = (),
    portable: bool = False,
    out: learning.OutOfIndex = None,
    system: options.System = None,
    workers: options.Workers = None,
    tuning: options.Tuning = options.Tuning(),
) -> None:
    """Train the ranker of `hybrid+ltr`: LambdaMART over every retriever's signals of a candidate.

    It learns from a file of contexts or, without one, from the citing sentences of the index. Leak rules apply: neither
    the citing paper's own sentences nor newer ones support a candidate. Settings (-c): rounds,
    leaves, patience and others of the trees; dev_share, dev_limit, seed.

    Example: citerec train ltr --index indexes/acl. With contexts: citerec train ltr --contexts train.jsonl --index
    indexes/acl

    Args:
        contexts: Contexts with cited papers, JSON Lines.  [default: the citing sentences of the index itself]
        limit: Contexts to learn from, at most; a sample.
        also: A further index with its contexts, for --portable. May be given several times.
        portable: Make a ranker for other indexes: it learns from what these may have too.
        system: The system that finds candidates.  [default: the best of the index that finds by words and vectors]
    """
    defaults = asdict(ranking.PRETRAINED) if portable else {}
    own = ("dev", "limit", "path", "portable", "system")
    settings = tuning.settings(ranking.LtrOptions, Choice, own=own, **defaults)
    if also and not portable:
        raise UsageError("--also is for rankers that several indexes can use: add --portable")
    if portable and not out:
        raise UsageError("a portable ranker belongs to no index: give --out FOLDER")
    path = find_index(index)
    place = out or trained_of(path, "ltr")
    # Without vectors, the system of the options says what is missing.
    if system is None and not portable and has_vectors(generation_of(path) / DENSE):
        system = default_retrieval(path)
    further = [ranking.Source(folder, settings.of(Choice, path=file, limit=limit)) for folder, file in also]
    sources = [ranking.Source(path, settings.of(Choice, path=contexts or path, dev=dev, limit=limit)), *further]
    with progress_bar() as on_progress:
        how = settings.of(ranking.LtrOptions, system=system)
        manifest = ranking.train_ltr(sources, place, how, on_progress, workers)
    before, after = manifest.dev["mrr@10 before"], manifest.dev["mrr@10"]
    say(f"{place} trained on {manifest.training['trained_on']:,} contexts: mrr@10 {after:.3f}, {before:.3f} before.")
    gains = sorted(manifest.gain.items(), key=lambda item: -item[1])[:_SHOWN_FEATURES]
    rows = [{"feature": name, "share of the gain": one, "meaning": FEATURES[name].meaning} for name, one in gains]
    say(table_of(rows, ".1%"))


def tagger(
    train_file: Path,
    /,
    *,
    dev: learning.Dev = None,
    out: learning.Out,
    model: Annotated[str, Parameter(metavar="linear|NAME")] = "linear",
    hyper: learning.Hyper = learning.Hyper(),
) -> None:
    """Train a tagger of citing sentences on TRAIN_FILE.

    TRAIN_FILE is from SciCite or ACL-ARC (citation intents) or from CORWA (sentences of related work);
    its lines show which. The linear tagger needs no other model and takes seconds; hyper-parameters of the
    schedule and the device are for encoders.
    Prints macro-F1, accuracy and the scores of each label on dev, and keeps them in the folder.

    Example: citerec train tagger scicite/train.txt --dev scicite/dev.txt --out taggers/scicite

    Args:
        train_file: Labelled sentences.
        model: linear, or an encoder to start from, a folder or a name: allenai/scibert_scivocab_uncased.
    """
    settings = hyper.settings(TaggerOptions, epochs=3, evaluations=6, learning_rate=2e-5)
    options = settings.of(TaggerOptions, model=model, dev=dev)
    manifest = hyper.train(train_tagger, settings, [train_file], out, options)
    facts, scores = manifest.training, manifest.dev
    provenance = f"{out} trained on {facts['sentences']:,} sentences, {manifest.scheme}"
    if not scores:
        say(f"{provenance}; nothing was held out.")
        return
    dev_scores = f"macro-F1 {scores['macro_f1']:.3f}, accuracy {scores['accuracy']:.3f}"
    labels = [{"label": label, **row} for label, row in scores["labels"].items()]
    number = sum(row["n"] for row in labels)
    say(f"{provenance}: {dev_scores} on {number:,} dev sentences ({facts['dev']}).", table_of(labels))
    if repeated := scores["repeated"]:
        note(f"{repeated:,} of {facts['dev_paragraphs']:,} dev paragraphs are in {facts['train']} too.")


def writer(
    *,
    tasks: Path,
    kind: Literal["citation", "tldr", "related-work", "xsum", "gigaword"] = "citation",
    dev: learning.Dev = None,
    limit: learning.Limit = None,
    out: learning.Out,
    base: learning.Base = None,
    seeds: learning.Seeds = None,
    hyper: learning.Hyper = learning.Hyper(),
) -> None:
    """Train a writer of citation texts, TLDRs or related work, for `citerec write --writer`.

    It starts from an encoder-decoder or a causal model, and learns to write the targets of the tasks. Without a --base,
    a writer of TLDRs is extractive: it learns which sentence of an abstract, which part of one, or which two, are most
    like its TLDR, needs no other model, and is used by `--writer trained -c writer.model=FOLDER`. The folder keeps the
    settings for writing. A learning rate of 5e-5 suits LED (CiteBench), 2e-5 BART (CiteSum), 1e-5 PRIMERA
    (OARelatedWork).

    Example: citerec train writer --tasks train.jsonl --dev dev.jsonl --out models/led --base allenai/led-base-16384

    Extractive: citerec train writer --kind tldr --tasks scitldr/train.jsonl --out models/tldr

    Args:
        tasks: Tasks with targets, JSON Lines, in CiteBench's or SciTLDR's format.
        kind: Kind of text, which sets its length and beams.
        base: LED, BART, PEGASUS, PRIMERA, another encoder-decoder, or a causal model.  [default:
            allenai/led-base-16384; of TLDRs none]
    """
    if kind == "tldr" and base is None:
        with progress_bar() as on_progress:
            extractive = train_tldr(tasks, out, on_progress=on_progress)
        scores, number = extractive.scores, extractive.training["trained_on"]
        found = f"{scores['rouge1']:.1f} by cross-validation, {scores['rouge1 of contribution']:.1f} without training"
        say(f"{out} trained on {number:,} abstracts: ROUGE-1 {found}.")
        return
    settings = hyper.settings(Choice, WriterOptions, **learning.WRITER_DEFAULTS)
    options = settings.of(WriterOptions, base=base or DEFAULT_BASE, writes=kind)
    arguments = (settings, [settings.of(Choice, path=tasks, dev=dev, limit=limit)], out, options)
    if not (several := learning.seeds_of(seeds)):
        learning.tell(out, hyper.train(train_writer, *arguments), options.dev_metric)
        return
    manifests = hyper.train(train_seeds, *arguments, seeds=several)
    for seed, manifest in manifests.items():
        learning.tell(out / f"seed-{seed}", manifest, options.dev_metric)
    summary = OverSeeds.of(each.dev[options.dev_metric] for each in manifests.values())
    around = "" if summary.sd is None else f" ± {summary.sd:.3f}"
    say(f"{out}: {options.dev_metric} {summary.mean:.3f}{around} over {summary.n} seeds.")
