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
from citerec.cli.console import note, say, show_numbers
from citerec.cli.learning import recipe_of, seeds_of, tell
from citerec.cli.main import UsageError
from citerec.cli.options import index_of
from citerec.confidence import Calibration
from citerec.discourse.classifier import TaggerManifest
from citerec.evaluation.tables import OverSeeds
from citerec.files.progress import progress_bar
from citerec.index.manifest import DENSE, generation_of, trained_of
from citerec.index.vectors import has_vectors
from citerec.records import EVENTS
from citerec.rerank.ltr import FEATURES, LtrManifest
from citerec.retrieve.base import RETRIEVERS
from citerec.systems import choose, default_retrieval
from citerec.train.encoders import (
    METRIC,
    EncoderOptions,
    RerankerOptions,
    StaticOptions,
    train_encoder,
    train_reranker,
    train_static,
)
from citerec.train.groups import Choice
from citerec.train.ranking import (
    FOR_EVERYONE,
    LtrOptions,
    Source,
    TunedFusion,
    train_confidence,
    train_ltr,
    tune_fusion,
    write_recipe,
)
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
    hyper: learning.Hyper = learning.Hyper(),
) -> None:
    """Train a cross-encoder, which reads a sentence and a candidate together.

    It learns to tell the cited paper from others that the index finds for the sentence, with the
    citing paper and everything newer left out. The weight of its score against that of the search is
    tuned on dev, and kept with the model. A learning rate of 1e-5 suits models of BERT's size; small ones such
    as MiniLM need 1e-4.

    Example: citerec train reranker --contexts train.jsonl --index indexes/acl --base all-MiniLM-L6-v2
    -c learning_rate=1e-4 -c max_tokens=128
    """
    settings = hyper.settings(Choice, RerankerOptions, learning_rate=1e-5)
    place, options = out or trained_of(source.place, "cross-encoder"), settings.of(RerankerOptions, base=base)
    tell(place, hyper.train(train_reranker, settings, source.of(settings), place, options, recipe_of(system)))


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
    with progress_bar() as on_progress:
        tuned = tune_fusion(
            contexts, index_of(index), system=system, metric=metric, limit=limit, on_progress=on_progress
        )
    _tell_fusion(tuned)
    if out is not None:
        write_recipe(tuned, out)
        note(f"Use it: citerec recommend … --system {out}")


def confidence(
    *,
    contexts: _Contexts,
    chosen: options.Searching = options.Searching(),
    limit: options.Count = 5000,
) -> None:
    """Calibrate how sure a system is of its answers, for `recommend --min-confidence`.

    It learns from the scores of the first ten papers how probable it is that the first is right, and
    that one of the ten is. Give contexts that the system did not learn from: a few hundred at least.

    Example: citerec train confidence --contexts dev.jsonl --index indexes/acm --system hybrid

    Args:
        limit: Contexts to learn from, at most; a sample.
    """
    place = index_of(chosen.index)
    _, name, recipe = choose(place, chosen.system, chosen.changes())
    with progress_bar() as on_progress:
        made = train_confidence(Choice(contexts, limit=limit), place, name, recipe, on_progress)
    _tell_calibration(place, made)


def dense(
    *,
    source: learning.FromContexts,
    system: learning.Finder = None,
    out: learning.Out,
    base: learning.Base = "sentence-transformers/all-MiniLM-L6-v2",
    hyper: learning.Hyper = learning.Hyper(),
) -> None:
    """Train an encoder, for `citerec index encode --model`.

    It learns to bring a sentence near the papers that it cites, and away from those that the other
    sentences cite and from others that the index finds for it.

    Example: citerec train dense --contexts train.jsonl --index indexes/acl --out models/encoder
    """
    settings = hyper.settings(Choice, EncoderOptions, learning_rate=2e-5)
    options = settings.of(EncoderOptions, base=base)
    tell(out, hyper.train(train_encoder, settings, source.of(settings), out, options, recipe_of(system)), METRIC)


def static(
    *,
    index: options.IndexPath = None,
    out: learning.Out,
    base: learning.Base = "sentence-transformers/all-MiniLM-L6-v2",
    hyper: learning.Hyper = learning.Hyper(),
) -> None:
    """Train a static encoder, which needs no network: a text's vector is the mean of its tokens'.

    It learns the vectors of the index's papers, whatever model made them; of --base only the tokenizer is used. It
    encodes queries for them (-c dense.queries=FOLDER), or papers and queries (citerec index encode --model
    FOLDER), on a machine that has no other model, and hundreds of times as fast.

    Example: citerec train static --index indexes/acm --out models/static
    """
    settings = hyper.settings(StaticOptions, epochs=3, evaluations=5, learning_rate=3e-3)
    manifest = hyper.train(train_static, settings, [index_of(index)], out, settings.of(StaticOptions, base=base))
    papers, found, cosine = manifest.training["papers"], manifest.dev["found"], manifest.dev["cosine"]
    say(f"{out} trained on {papers:,} papers: {found:.1%} of those held out found first, cosine {cosine:.3f}.")


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
    defaults = asdict(FOR_EVERYONE) if portable else {}
    settings = tuning.settings(LtrOptions, Choice, own=("dev", "limit", "path", "portable", "system"), **defaults)
    if also and not portable:
        raise UsageError("--also is for rankers that several indexes can use: add --portable")
    if portable and not out:
        raise UsageError("a portable ranker belongs to no index: give --out FOLDER")
    path = index_of(index)
    place = out or trained_of(path, "ltr")
    # Without vectors, the system of the options says what is missing.
    if system is None and not portable and has_vectors(generation_of(path) / DENSE):
        system = default_retrieval(path)
    further = [Source(folder, settings.of(Choice, path=file, limit=limit)) for folder, file in also]
    sources = [Source(path, settings.of(Choice, path=contexts or path, dev=dev, limit=limit)), *further]
    with progress_bar() as on_progress:
        manifest = train_ltr(sources, place, settings.of(LtrOptions, system=system), on_progress)
    _tell_ranker(place, manifest)


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
    _tell_tagger(out, hyper.train(train_tagger, settings, [train_file], out, options))


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
        _train_extractive(tasks, out)
        return
    settings = hyper.settings(Choice, WriterOptions, **learning.WRITER_DEFAULTS)
    options = settings.of(WriterOptions, base=base or DEFAULT_BASE, writes=kind)
    arguments = (settings, [settings.of(Choice, path=tasks, dev=dev, limit=limit)], out, options)
    several = seeds_of(seeds)
    if not several:
        tell(out, hyper.train(train_writer, *arguments), options.dev_metric)
        return
    manifests = hyper.train(train_seeds, *arguments, several)
    for seed, manifest in manifests.items():
        tell(out / f"seed-{seed}", manifest, options.dev_metric)
    found = OverSeeds.of(each.dev[options.dev_metric] for each in manifests.values())
    around = "" if found.sd is None else f" ± {found.sd:.3f}"
    say(f"{out}: {options.dev_metric} {found.mean:.3f}{around} over {found.n} seeds.")


def _train_extractive(tasks: Path, out: Path) -> None:
    """Trains the extractive writer of TLDRs."""
    with progress_bar() as on_progress:
        manifest = train_tldr(tasks, out, on_progress=on_progress)
    scores = manifest.scores
    say(
        f"{out} trained on {manifest.training['learnt_from']:,} abstracts: ROUGE-1 {scores['rouge1']:.1f} by "
        f"cross-validation, {scores['rouge1 of contribution']:.1f} without training."
    )


def _tell_tagger(out: Path, manifest: TaggerManifest) -> None:
    """Says how well a tagger does on dev, label by label."""
    learnt = f"{out} trained on {manifest.training['sentences']:,} sentences, {manifest.scheme}"
    if not (dev := manifest.dev):
        say(f"{learnt}; nothing was held out.")
        return
    scores = f"macro-F1 {dev['macro_f1']:.3f}, accuracy {dev['accuracy']:.3f}"
    number = sum(label["n"] for label in dev["labels"].values())
    say(f"{learnt}: {scores} on {number:,} dev sentences ({manifest.training['dev']}).")
    show_numbers("label", dev["labels"])
    if repeated := dev["repeated"]:
        paragraphs = manifest.training["dev_paragraphs"]
        note(f"{repeated:,} of {paragraphs:,} dev paragraphs are in {manifest.training['train']} too.")


def _tell_ranker(path: Path, manifest: LtrManifest) -> None:
    """Says how well a learnt ranker does on dev, and what its features gain."""
    dev = manifest.dev
    say(
        f"{path}: {manifest.training['trees']} trees, learnt from {manifest.training['learnt_from']:,} contexts. "
        f"mrr@10 {dev['mrr@10 before']:.3f} → {dev['mrr@10']:.3f} on {dev['contexts']:,.0f} held out whose cited paper "
        "is among the candidates."
    )
    gains = sorted(manifest.gain.items(), key=lambda item: -item[1])[:_SHOWN_FEATURES]
    shown = {name: {"share of the gain": gain, "meaning": FEATURES[name].meaning} for name, gain in gains}
    show_numbers("feature", shown, ".1%")


def _tell_calibration(index: Path, made: Calibration) -> None:
    """Says how well the probabilities of a calibration fit contexts that they were not fitted on."""
    about = made.training
    left_out = f"; {about['left_out']:,} left out, which it learnt from" if about["left_out"] else ""
    say(f"{made.system} calibrated on {index}: {about['fitted_on']:,} contexts{left_out}.")
    names = ("right", "ece", "brier")
    rows = {EVENTS[event]: {name: one[name] for name in names} for event, one in made.measured.items()}
    show_numbers("each fifth by the others", rows)


def _tell_fusion(tuned: TunedFusion) -> None:
    """Shows ways of fusing words and vectors, and the score of each."""
    scores = {f"{RETRIEVERS[name].label} alone": score for name, score in tuned.alone.items()}
    weights = " ".join(f"retrievers.{name}={weight:g}" for name, weight in tuned.recipe.retrievers.items())
    scores |= {"as it is": tuned.before, f"best weights: {weights}": tuned.score}
    show_numbers(f"{tuned.contexts:,} contexts", {name: {tuned.metric: score} for name, score in scores.items()})
