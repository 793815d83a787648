"""`citerec eval-text`: systems that write, measured on the same tasks."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import PartsOption

_PATH = click.Path(path_type=Path)
predictions_argument = click.argument("predictions", nargs=-1, required=True, metavar="[NAME=]PREDICTIONS…")
references_option = click.option(
    "--references", "tasks_file", type=_PATH, metavar="FILE", help="Tasks that the predictions are for, found by id."
)


def _metrics() -> dict[str, str]:
    from citerec.texts.metrics.base import TEXT_METRICS, default_metrics

    tagged = _tagged()
    return {
        "metrics": ", ".join(name for name in TEXT_METRICS if name not in tagged),
        "tagged": " and ".join(tagged),
        "folders": " or ".join(f"{name}=FOLDER" for name in tagged),
        "default": ",".join(default_metrics()),
    }


def _tagged() -> list[str]:
    from citerec.texts.metrics.base import TEXT_METRICS

    return [name for name, part in TEXT_METRICS.items() if part.needs_tagger]


@click.command(
    "eval-text", epilog="Example: citerec eval-text lead.jsonl lexrank.jsonl --metrics rouge,length --out results/texts"
)
@predictions_argument
@references_option
@click.option(
    "--metrics",
    cls=PartsOption,
    parts=_metrics,
    metavar="LIST",
    help="{metrics}; with a tagger {tagged}.  [default: {default}]",
)
@click.option("--stemming/--no-stemming", default=False, help="Of ROUGE: stem words (Porter).")
@click.option(
    "--rouge-l",
    type=click.Choice(["sentence", "summary"]),
    default="sentence",
    help="ROUGE-L of the text as one sequence, or sentence by sentence.",
)
@click.option(
    "--over-references",
    "references",
    type=click.Choice(["best", "best-each", "mean", "first"]),
    default="best",
    help="Where there are several targets: all values against the one with the highest ROUGE-1 (SciTLDR's way), each "
    "value against its own best, their mean, or the first one only.",
)
@click.option("--bertscore-model", metavar="NAME", help="Model of BERTScore: a folder, or a name on the hub.")
@click.option("--bertscore-layer", type=click.IntRange(1), metavar="N", help="Its layer that is compared.")
@click.option(
    "--tagger",
    "taggers",
    multiple=True,
    cls=PartsOption,
    parts=_metrics,
    metavar="NAME=FOLDER",
    help="Compare labels of sentences too: {folders}, made by train tagger; may be repeated.",
)
@click.option("--out", type=_PATH, metavar="FOLDER", help="Write JSON, CSV and a page here.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the intervals and tests.")
@click.option("--resamples", type=click.IntRange(100), default=1000, help="Bootstrap samples of the intervals.")
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="Processes that count ROUGE.  [default: all processors]"
)
@click.option("--json", "as_json", is_flag=True, help="Print results.json instead of tables.")
def eval_text(
    predictions: tuple[str, ...],
    tasks_file: Path | None,
    metrics: str | None,
    taggers: tuple[str, ...],
    out: Path | None,
    seed: int,
    resamples: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure texts that systems wrote, with intervals and tests.

    PREDICTIONS are JSON Lines as generate writes them: tasks with a "prediction". Each writer is a
    system, or each file that is given a name. Systems are compared on the tasks that all of them
    answered.
    """
    from citerec.cli.results import tell
    from citerec.evaluation.files import TEXT_RESULTS
    from citerec.evaluation.predictions import read_predictions
    from citerec.evaluation.texts import evaluate_texts
    from citerec.groundwork.progress_bar import progress_bar
    from citerec.texts.metrics.base import default_metrics, open_metrics

    folders = dict(map(_tagger, taggers))
    names = default_metrics() if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()]
    if out is not None:
        TEXT_RESULTS.check_place(out)
    read = read_predictions([named_file(value) for value in predictions], tasks_file)
    with progress_bar() as on_progress:
        on_progress("opening metrics", 0, 0)
        opened = open_metrics([*names, *folders], taggers=folders, **options)
        results = evaluate_texts(read, *opened, seed=seed, resamples=resamples, on_progress=on_progress)
    tell(results, out, as_json=as_json)


def named_file(value: str) -> tuple[str | None, Path]:
    """The name that is given to a file, if one is, and the file."""
    name, separator, path = value.partition("=")
    return (name, Path(path)) if separator and name and not Path(value).exists() else (None, Path(value))


def _tagger(value: str) -> tuple[str, Path]:
    name, separator, folder = value.partition("=")
    if not separator or name not in _tagged():
        raise click.UsageError(f"--tagger {value!r} is not {_metrics()['folders']}")
    return name, Path(folder)
