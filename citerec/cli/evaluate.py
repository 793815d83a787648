"""`citerec eval`, `eval-text` and `report`: measure systems class by class, and texts that systems wrote."""

import importlib
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from citerec.cli import options
from citerec.cli.console import give, note
from citerec.errors import UsageError
from citerec.evaluation import tables
from citerec.files.progress import progress_bar
from citerec.files.text import names_in

if TYPE_CHECKING:
    from citerec.evaluation.results import Results
    from citerec.evaluation.systems import System


@options.option_group
class Measuring:
    """How it is measured: arguments of `citerec.evaluate`.

    Attributes:
        index: The index to search.  [default: the one the set was made for, or the only one]
        metrics: recall, mrr, ndcg, map, hit_rate, precision, f1, hits and dcg with a cutoff, and r-precision.
        k: How many hits of each context count.  [default: 100]
        include_training_contexts: Also measure on contexts that a system learnt from or was tuned on, and on others of
            their citing papers.  [default: leave them out, for all systems]
        exclude_citing: Leave out the citing paper.
        as_of_year: Leave out everything newer than the citing paper.
    """

    index: Annotated[Path | None, Parameter(metavar="PATH")] = None
    metrics: Annotated[str, Parameter(metavar="LIST")] = "recall@10,mrr@10,ndcg@10"
    k: Annotated[int | None, Parameter(name="-k")] = None
    include_training_contexts: bool = False
    exclude_citing: Annotated[bool, Parameter(negative="--include-citing")] = True
    as_of_year: options.Switch = True
    seed: options.Seed = 0
    resamples: options.Resamples = 1000


def evaluate(
    *,
    identifiers: Annotated[tuple[str, ...], Parameter(name="--diagnostic", metavar="ID")] = (),
    set_name: Annotated[str | None, Parameter(name="--set", metavar="NAME")] = None,
    contexts: Path | None = None,
    qrels: options.File = None,
    tagger: options.IntentTagger = None,
    systems: Annotated[tuple[str, ...], Parameter(name="--system", metavar="NAME|FILE")] = (),
    runs: Annotated[tuple[str, ...], Parameter(name="--run", metavar="[NAME=]FILE")] = (),
    changes: options.Assigned = options.Assigned(),
    measuring: Measuring = Measuring(),
    workers: options.Count | None = None,
    on: options.On = None,
    out: options.OutFolder = None,
    form: options.Format = "table",
) -> None:
    """Measure systems class by class, with intervals, tests and cost.

    Without options, the default system of recommend is measured on every family of the demo set.
    Several systems and runs are measured together and compared; -c and --config change all systems. With --on, each
    machine of a cluster needs the index at the same path.

    Example: citerec eval --diagnostic location --system bm25 --out results/location

    Args:
        identifiers: A family (location) or a family of a set (demo/location); may be repeated.  [default: all]
        set_name: A diagnostic set, by name or folder.  [default: demo]
        contexts: A JSON Lines file of contexts, a folder of BEIR, or a collection of ir_datasets, irds:NAME; labelled
            on the spot.
        qrels: The relevant papers of queries in --contexts: those of TREC or BEIR, an id, a tab and a text a line.
        systems: A built-in system (citerec systems); any of them followed by +RERANKER; or a TOML file of settings; may
            be repeated.  [default: the best that the index supports]
        runs: A TREC run of any system, scored under the same rules; may be repeated.
        workers: Processes that answer contexts at once, on the same index.  [default: 1; one for each processor with
            --on]
        out: Write tables, runs, qrels and a page here (docs/formats.md#results).
    """
    from citerec.evaluation.evaluate import evaluate as measured, read_source

    options.refuse_without("--contexts", contexts, qrels=qrels, tagger=tagger)
    what, families = _what(identifiers, set_name, contexts)
    if contexts and qrels:
        from citerec.contexts.read import read_queries

        what = list(read_queries(contexts, qrels))
    if tagger:
        what = options.intents_of(read_source(what).contexts, tagger)
    named = _named(systems, runs, changes.changes())
    _check_place(out)
    with options.working(on, workers, here=1) as (parallelism, on_progress):
        results = measured(
            named or None,
            what,
            families=families,
            parallelism=parallelism,
            on_progress=on_progress,
            **asdict(measuring),
        )
    _write_and_show(results, out, form)


def report(
    folders: tuple[Path, ...],
    /,
    *,
    out: Annotated[Path | None, Parameter(name=("--out", "-o"), metavar="FILE")] = None,
    form: options.Format = "table",
) -> None:
    """Show results of eval side by side, and compare their systems.

    FOLDERS are those that eval wrote with --out. With one folder, its results are shown again.

    Example: citerec report results/bm25 results/mine

    Args:
        folders: Folders of results.
        out: Write a page of HTML here.
    """
    from citerec.evaluation.page import write_page
    from citerec.evaluation.results import Results, merge

    if out is not None and out.suffix not in (".html", ".htm"):
        raise UsageError(f"--out {out} is not a page: give a name such as both.html")
    same_names = len({folder.name for folder in folders}) < len(folders)
    parts = {os.fspath(folder) if same_names else folder.resolve().name: Results.read(folder) for folder in folders}
    results = merge(parts) if len(parts) > 1 else next(iter(parts.values()))
    if out is not None:  # first: the reader of the output may close it (`| head`)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_page(results, out)
    _write_and_show(results, None, form)
    if out is not None:
        note(f"{out}: the same as a page to read.")


def eval_text(
    predictions: options.Predictions,
    /,
    *,
    tasks_file: options.References = None,
    preset: Annotated[str | None, Parameter(metavar="NAME")] = None,
    metrics: Annotated[str | None, Parameter(metavar="LIST")] = None,
    taggers: Annotated[tuple[str, ...], Parameter(name="--tagger", metavar="NAME=FOLDER")] = (),
    include_training_tasks: bool = False,
    tuning: options.Tuning = options.Tuning(),
    out: options.OutFolder = None,
    seed: options.Seed = 0,
    resamples: options.Resamples = 1000,
    form: options.Format = "table",
) -> None:
    """Measure texts that systems wrote, with intervals and tests.

    PREDICTIONS are JSON Lines as write batch makes them: tasks with a "prediction". Each writer is a
    system; so is each file that is given a name. Systems are compared on the tasks that all of them
    answered. How metrics are computed are settings (-c), such as stemming=true: docs/texts.md. So are other names
    for the labels of a published tagger, which may then be a name on the hub: labels.intent.LABEL_0=background.

    Example: citerec eval-text lead.jsonl lexrank.jsonl --metrics rouge,length --out results/texts

    Args:
        preset: Metrics and all their options as in a paper: citebench, citesum, scitldr or oarelatedwork. What is
            given besides wins, and is reported.
        metrics: Metrics with commas between them (docs/texts.md).  [default:
            rouge,citations,length,novelty,grounding,self-reference]
        taggers: Compare labels of sentences too: intent=FOLDER or corwa=FOLDER, made by train tagger; may be repeated.
        include_training_tasks: Measure on tasks too that a system learned from.  [default: leave them out, for all
            systems]
        out: Write tables and a page here (docs/formats.md#results).
    """
    from citerec.evaluation.texts import evaluate_texts, read_predictions
    from citerec.write.metrics import DEFAULT_METRICS, PRESETS, MetricOptions, open_metrics

    settings = tuning.settings(MetricOptions)
    chosen = settings.of(MetricOptions)
    folders = options.named_paths(taggers, "NAME=FOLDER")
    by_hand: dict[str, Any] = {"taggers": folders, **{name: getattr(chosen, name) for name in settings.overrides}}
    used = None
    if metrics is not None or preset is None:
        by_hand["names"] = [*(DEFAULT_METRICS if metrics is None else names_in(metrics)), *folders]
    if preset is not None:
        by_hand, used = PRESETS[preset].arguments(**by_hand), PRESETS[preset].used(**by_hand)
    _check_place(out)
    files = [options.named_file(value) for value in predictions]
    read = read_predictions(files, tasks_file, include_training_tasks=include_training_tasks)
    with progress_bar() as on_progress:
        on_progress("opening metrics", 0, 0)
        opened = open_metrics(**by_hand)
        results = evaluate_texts(read, *opened, seed=seed, resamples=resamples, preset=used, on_progress=on_progress)
    _write_and_show(results, out, form)


def _what(identifiers: tuple[str, ...], set_name: str | None, contexts: Path | None) -> tuple[Any, tuple[str, ...]]:
    """What to measure on, and the names of the families."""
    from citerec.diagnostics.families import FAMILIES
    from citerec.diagnostics.sets import DEFAULT_SET, parse_id

    parsed = [parse_id(identifier) for identifier in identifiers]
    families = tuple(family for _, family in parsed if family)
    sets = {name for name in (set_name, *(name for name, _ in parsed)) if name}
    if contexts is not None and sets:
        families_of_contexts = f"{min(sets)} is no family of contexts, which are {', '.join(FAMILIES)}"
        raise UsageError(f"give one of --set and --contexts: {families_of_contexts}")
    if len(sets) > 1:
        raise UsageError(f"one set at a time: {', '.join(sorted(sets))}")
    # A set and one of its families together mean the whole set.
    return contexts or min(sets, default=DEFAULT_SET), families if len(families) == len(parsed) else ()


def _named(systems: tuple[str, ...], runs: tuple[str, ...], settings: list[str]) -> "dict[str, System]":
    """The systems and runs, each with its name."""
    from citerec.evaluation.systems import name_of
    from citerec.retrieve.run import Run
    from citerec.systems import Recipe

    if settings and not systems:
        raise UsageError("-c and --config go with --system only: name the system whose settings change")
    named: dict[str, Any] = {}
    pairs: list[tuple[str, Any]] = [(name_of(one), one) for one in systems]
    pairs += [(name or path.name.partition(".")[0], path) for name, path in map(options.named_file, runs)]
    for name, one in pairs:
        if name in named:
            raise UsageError(f"two systems are called {name!r}: name a run with --run NAME=FILE")
        if isinstance(one, Path):
            named[name] = Run.from_trec(one, name)
        else:
            named[name] = Recipe.load(one, settings) if settings else one
    return named


def _check_place(out: Path | None) -> None:
    """Before hours of work: results may be written there, and the package that draws their page is installed."""
    from citerec.evaluation.results import RESULTS

    if out is not None:
        importlib.import_module("matplotlib")
        RESULTS.check_place(out)


def _write_and_show(results: "Results", out: Path | None, form: str) -> None:
    """Writes results to a folder, if one is given, and shows them."""
    try:  # write first: the reader of the output may close it (`| head`)
        if out is not None:
            results.write(out)
    finally:  # if writing fails, the results are still shown
        give(form, None, results.to_json, tables.results_parts(results), whole=True)
        for line in results.record.notes:
            note(line, "yellow")
    if out is not None:
        note(f"{out}: tables, meta.json, results.csv, scores.csv, and a page to read: {out}/report.html")
