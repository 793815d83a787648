"""`citerec eval-text`: measures systems that write, on the same tasks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from citerec.cli.options import (
    PartsOption,
    is_given,
    json_option,
    names_of,
    number,
    one_of,
    path_option,
    resamples,
    seed,
)
from citerec.files.progress import progress_bar

predictions_argument = click.argument("predictions", nargs=-1, required=True, metavar="[NAME=]PREDICTIONS…")
references_option = path_option(
    "--references", "tasks_file", metavar="FILE", help="Tasks of the predictions, matched by id."
)


def _metrics() -> dict[str, str]:
    from citerec.write.metrics.base import DEFAULT_METRICS, TAGGED_METRICS, TEXT_METRICS

    return {
        "metrics": ", ".join(name for name in TEXT_METRICS if name not in TAGGED_METRICS),
        "tagged": " and ".join(TAGGED_METRICS),
        "folders": " or ".join(f"{name}=FOLDER" for name in TAGGED_METRICS),
        "default": ",".join(DEFAULT_METRICS),
    }


@click.command(
    "eval-text", epilog="Example: citerec eval-text lead.jsonl lexrank.jsonl --metrics rouge,length --out results/texts"
)
@predictions_argument
@references_option
@click.option(
    "--preset",
    cls=PartsOption,
    parts=names_of("citerec.write.presets:PRESETS"),
    metavar="NAME",
    help="Metrics and all their options as in a paper: {names}. What is given besides wins, and is reported.",
)
@click.option(
    "--metrics",
    cls=PartsOption,
    parts=_metrics,
    metavar="LIST",
    help="{metrics}; with a tagger {tagged}.  [default: {default}]",
)
@click.option("--stemming/--no-stemming", default=False, help="ROUGE: stem words (Porter).")
@one_of("--rouge-l", ["sentence", "summary"], "ROUGE-L of the text as one sequence, or sentence by sentence.")
@one_of(
    "--over-references",
    ["best", "best-each", "mean", "first"],
    "With several targets: all values against the one with the highest ROUGE-1 (SciTLDR's way), each value "
    "against its own best, their mean, or the first one only.",
    variable="references",
)
@click.option("--bertscore-model", metavar="NAME", help="Model of BERTScore: a folder, or a name on the hub.")
@number("--bertscore-layer", None, "Layer of that model to compare.", metavar="N")
@click.option(
    "--bertscore-rescaled/--no-bertscore-rescaled",
    default=False,
    help="Rescale BERTScore by the package's baseline of the model.",
)
@click.option("--bartscore-model", metavar="NAME", help="Model of BARTScore: a folder, or a name on the hub.")
@one_of(
    "--bartscore-direction",
    ["faithfulness", "precision", "recall", "f"],
    "BARTScore: the likelihood of the text given the sources, of the text given the target, of the target given the "
    "text, or the mean of the last two.",
)
@one_of(
    "--cited-works",
    ["sources", "named"],
    "citations: sources count, and a citation of none is wrong; or all works that are named, also by title, in both "
    "texts (OARelatedWork's way).",
)
@one_of(
    "--intent-sentences",
    ["all", "citebench"],
    "Citation intents are given to all sentences, or to those that CiteBench labels.",
)
@one_of(
    "--discourse-mean",
    ["sentences", "datasets"],
    "Shares of labels over several data sets: of all sentences, or the mean of the data sets' shares.",
)
@click.option(
    "--tagger",
    "taggers",
    multiple=True,
    cls=PartsOption,
    parts=_metrics,
    metavar="NAME=FOLDER",
    help="Compare labels of sentences too: {folders}, made by train tagger; may be repeated.",
)
@click.option(
    "--labels",
    "renamed",
    multiple=True,
    metavar="NAME=LABEL:OURS,…",
    help="Other names for the labels of a published tagger, which may then be a name on the hub: "
    "intent=LABEL_0:background,LABEL_1:method; may be repeated.",
)
@click.option(
    "--include-training-tasks",
    is_flag=True,
    help="Measure on tasks too that a system learned from.  [default: leave them out, for all systems]",
)
@path_option("--out", metavar="FOLDER", help="Write tables, CSV and a page here.")
@seed
@resamples
@number("--workers", None, "Processes that compute ROUGE.  [default: one for each processor]", metavar="N")
@json_option
def eval_text(
    predictions: tuple[str, ...],
    tasks_file: Path | None,
    preset: str | None,
    metrics: str | None,
    taggers: tuple[str, ...],
    renamed: tuple[str, ...],
    include_training_tasks: bool,
    out: Path | None,
    seed: int,
    resamples: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure texts that systems wrote, with intervals and tests.

    PREDICTIONS are JSON Lines as write batch makes them: tasks with a "prediction". Each writer is a
    system; so is each file that is given a name. Systems are compared on the tasks that all of them
    answered.
    """
    from citerec.cli.results import write_and_show
    from citerec.evaluation.predictions import read_predictions
    from citerec.evaluation.results import RESULTS
    from citerec.evaluation.texts import evaluate_texts
    from citerec.write.metrics.base import DEFAULT_METRICS, open_metrics
    from citerec.write.presets import PRESETS

    folders = dict(map(_tagger, taggers))
    options |= {"taggers": folders, "labels": dict(_labels(value, folders) for value in renamed)}
    used = None
    if metrics is not None or preset is None:
        names = DEFAULT_METRICS if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()]
        options["names"] = [*names, *folders]
    if preset is not None:
        given = ("names", "taggers", "labels")
        by_hand = {name: value for name, value in options.items() if name in given or is_given(name)}
        options, used = PRESETS[preset].arguments(**by_hand), PRESETS[preset].used(**by_hand)
    if out is not None:
        RESULTS.check_place(out)
    files = [named_file(value) for value in predictions]
    read = read_predictions(files, tasks_file, include_training_tasks=include_training_tasks)
    with progress_bar() as on_progress:
        on_progress("opening metrics", 0, 0)
        opened = open_metrics(**options)
        results = evaluate_texts(read, *opened, seed=seed, resamples=resamples, preset=used, on_progress=on_progress)
    write_and_show(results, out, as_json=as_json)


def named_file(value: str) -> tuple[str | None, Path]:
    """The name given to a file, or None, and the file."""
    name, separator, path = value.partition("=")
    return (name, Path(path)) if separator and name and not Path(value).exists() else (None, Path(value))


def _tagger(value: str) -> tuple[str, Path]:
    from citerec.write.metrics.base import TAGGED_METRICS

    name, separator, folder = value.partition("=")
    if not separator or name not in TAGGED_METRICS:
        raise click.UsageError(f"--tagger {value!r} is not {_metrics()['folders']}")
    return name, Path(folder)


def _labels(value: str, folders: Mapping[str, Path]) -> tuple[str, dict[str, str]]:
    name, separator, pairs = value.partition("=")
    parted = [pair.partition(":") for pair in pairs.split(",")]
    if not separator or name not in folders or not all(label and colon for label, colon, _ in parted):
        raise click.UsageError(f"--labels {value!r} is not NAME=LABEL:OURS,… with the NAME of a --tagger")
    return name, {label.strip(): ours.strip() for label, _, ours in parted}
