"""`citerec eval-text`: measures systems that write, on the same tasks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from citerec.cli.commands import UsageError
from citerec.cli.options import Format, OutFolder, Resamples, Seed, Tuning
from citerec.files.progress import progress_bar
from citerec.files.text import names_in

Predictions = Annotated[tuple[str, ...], Parameter(name="[NAME=]PREDICTIONS", help="Files of predictions.")]
References = Annotated[
    Path | None, Parameter(name="--references", metavar="FILE", help="Tasks of the predictions, matched by id.")
]


def eval_text(
    predictions: Predictions,
    /,
    *,
    tasks_file: References = None,
    preset: Annotated[str | None, Parameter(metavar="NAME")] = None,
    metrics: Annotated[str | None, Parameter(metavar="LIST")] = None,
    taggers: Annotated[tuple[str, ...], Parameter(name="--tagger", metavar="NAME=FOLDER")] = (),
    renamed: Annotated[tuple[str, ...], Parameter(name="--labels", metavar="NAME=LABEL:OURS,…")] = (),
    include_training_tasks: bool = False,
    tuning: Tuning = Tuning(),
    out: OutFolder = None,
    seed: Seed = 0,
    resamples: Resamples = 1000,
    form: Format = "table",
) -> None:
    """Measure texts that systems wrote, with intervals and tests.

    PREDICTIONS are JSON Lines as write batch makes them: tasks with a "prediction". Each writer is a
    system; so is each file that is given a name. Systems are compared on the tasks that all of them
    answered. How metrics are computed are settings (-c), such as stemming=true: docs/texts.md.

    Example: citerec eval-text lead.jsonl lexrank.jsonl --metrics rouge,length --out results/texts

    Args:
        preset: Metrics and all their options as in a paper: citebench, citesum, scitldr or oarelatedwork. What is
            given besides wins, and is reported.
        metrics: Metrics with commas between them (docs/texts.md).  [default:
            rouge,citations,length,novelty,grounding,self-reference]
        taggers: Compare labels of sentences too: intent=FOLDER or corwa=FOLDER, made by train tagger; may be repeated.
        renamed: Other names for the labels of a published tagger, which may then be a name on the hub:
            intent=LABEL_0:background,LABEL_1:method; may be repeated.
        include_training_tasks: Measure on tasks too that a system learned from.  [default: leave them out, for all
            systems]
        out: Write JSON, CSV and a page here.
    """
    from citerec.cli.results import check_place, write_and_show
    from citerec.evaluation.predictions import read_predictions
    from citerec.evaluation.texts import evaluate_texts
    from citerec.write.metrics.base import DEFAULT_METRICS, MetricOptions, open_metrics
    from citerec.write.presets import PRESETS

    settings = tuning.settings(MetricOptions)
    chosen = settings.of(MetricOptions)
    folders = dict(map(_tagger, taggers))
    by_hand: dict[str, Any] = {name: getattr(chosen, name) for name in settings.given}
    by_hand |= {"taggers": folders, "labels": dict(_labels(value, folders) for value in renamed)}
    used = None
    if metrics is not None or preset is None:
        by_hand["names"] = [*(DEFAULT_METRICS if metrics is None else names_in(metrics)), *folders]
    if preset is not None:
        by_hand, used = PRESETS[preset].arguments(**by_hand), PRESETS[preset].used(**by_hand)
    if out is not None:
        check_place(out)
    files = [named_file(value) for value in predictions]
    read = read_predictions(files, tasks_file, include_training_tasks=include_training_tasks)
    with progress_bar() as on_progress:
        on_progress("opening metrics", 0, 0)
        opened = open_metrics(**by_hand)
        results = evaluate_texts(read, *opened, seed=seed, resamples=resamples, preset=used, on_progress=on_progress)
    write_and_show(results, out, form)


def named_file(value: str) -> tuple[str | None, Path]:
    """The name given to a file, or None, and the file."""
    name, separator, path = value.partition("=")
    return (name, Path(path)) if separator and name and not Path(value).exists() else (None, Path(value))


def _tagger(value: str) -> tuple[str, Path]:
    from citerec.write.metrics.base import TAGGED_METRICS

    name, separator, folder = value.partition("=")
    if not separator or name not in TAGGED_METRICS:
        raise UsageError(f"--tagger {value!r} is not {' or '.join(f'{one}=FOLDER' for one in TAGGED_METRICS)}")
    return name, Path(folder)


def _labels(value: str, folders: Mapping[str, Path]) -> tuple[str, dict[str, str]]:
    name, separator, pairs = value.partition("=")
    parted = [pair.partition(":") for pair in pairs.split(",")]
    if not separator or name not in folders or not all(label and colon for label, colon, _ in parted):
        raise UsageError(f"--labels {value!r} is not NAME=LABEL:OURS,… with the NAME of a --tagger")
    return name, {label.strip(): ours.strip() for label, _, ours in parted}
