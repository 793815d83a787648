"""`citerec eval-text`: measures systems that write, on the same tasks."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from citerec.cli.commands import UsageError
from citerec.cli.options import Count, Json, Resamples, Seed, Switch
from citerec.files.progress import progress_bar

Predictions = Annotated[tuple[str, ...], Parameter(name="[NAME=]PREDICTIONS", help="Files of predictions.")]
References = Annotated[
    Path | None, Parameter(name="--references", metavar="FILE", help="Tasks of the predictions, matched by id.")
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Metrics:
    """How metrics are computed.

    Attributes:
        stemming: ROUGE: stem words (Porter).
        rouge_l: ROUGE-L of the text as one sequence, or sentence by sentence.  [default: sentence]
        references: With several targets: all values against the one with the highest ROUGE-1 (SciTLDR's way), each
            value against its own best, their mean, or the first one only.  [default: best]
        bertscore_model: Model of BERTScore: a folder, or a name on the hub.
        bertscore_layer: Layer of that model to compare.
        bertscore_rescaled: Rescale BERTScore by the package's baseline of the model.
        bartscore_model: Model of BARTScore: a folder, or a name on the hub.
        bartscore_direction: BARTScore: the likelihood of the text given the sources, of the text given the target, of
            the target given the text, or the mean of the last two.  [default: faithfulness]
        cited_works: Citations: sources count, and a citation of none is wrong; or all works that are named, also by
            title, in both texts (OARelatedWork's way).  [default: sources]
        intent_sentences: Citation intents are given to all sentences, or to those that CiteBench labels.
            [default: all]
        discourse_mean: Shares of labels over several data sets: of all sentences, or the mean of the data sets'
            shares.  [default: sentences]
        workers: Processes that compute ROUGE.  [default: one for each processor]
    """

    stemming: Switch | None = None
    rouge_l: Literal["sentence", "summary"] | None = None
    references: Annotated[Literal["best", "best-each", "mean", "first"] | None, Parameter(name="--over-references")] = (
        None
    )
    bertscore_model: Annotated[str | None, Parameter(metavar="NAME")] = None
    bertscore_layer: Annotated[Count | None, Parameter(metavar="N")] = None
    bertscore_rescaled: Switch | None = None
    bartscore_model: Annotated[str | None, Parameter(metavar="NAME")] = None
    bartscore_direction: Literal["faithfulness", "precision", "recall", "f"] | None = None
    cited_works: Literal["sources", "named"] | None = None
    intent_sentences: Literal["all", "citebench"] | None = None
    discourse_mean: Literal["sentences", "datasets"] | None = None
    workers: Annotated[Count | None, Parameter(metavar="N")] = None


def eval_text(
    predictions: Predictions,
    /,
    *,
    tasks_file: References = None,
    preset: Annotated[str | None, Parameter(metavar="NAME")] = None,
    metrics: Annotated[str | None, Parameter(metavar="LIST")] = None,
    options: Metrics = Metrics(),
    taggers: Annotated[tuple[str, ...], Parameter(name="--tagger", metavar="NAME=FOLDER")] = (),
    renamed: Annotated[tuple[str, ...], Parameter(name="--labels", metavar="NAME=LABEL:OURS,…")] = (),
    include_training_tasks: bool = False,
    out: Annotated[Path | None, Parameter(metavar="FOLDER")] = None,
    seed: Seed = 0,
    resamples: Resamples = 1000,
    as_json: Json = False,
) -> None:
    """Measure texts that systems wrote, with intervals and tests.

    PREDICTIONS are JSON Lines as write batch makes them: tasks with a "prediction". Each writer is a
    system; so is each file that is given a name. Systems are compared on the tasks that all of them
    answered.

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
    from citerec.cli.results import write_and_show
    from citerec.evaluation.files import TEXT_RESULTS
    from citerec.evaluation.predictions import read_predictions
    from citerec.evaluation.texts import evaluate_texts
    from citerec.write.metrics.base import DEFAULT_METRICS, open_metrics
    from citerec.write.presets import PRESETS

    folders = dict(map(_tagger, taggers))
    by_hand: dict[str, Any] = {name: value for name, value in asdict(options).items() if value is not None}
    by_hand |= {"taggers": folders, "labels": dict(_labels(value, folders) for value in renamed)}
    used = None
    if metrics is not None or preset is None:
        names = DEFAULT_METRICS if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()]
        by_hand["names"] = [*names, *folders]
    if preset is not None:
        by_hand, used = PRESETS[preset].arguments(**by_hand), PRESETS[preset].used(**by_hand)
    if out is not None:
        TEXT_RESULTS.check_place(out)
    files = [named_file(value) for value in predictions]
    read = read_predictions(files, tasks_file, include_training_tasks=include_training_tasks)
    with progress_bar() as on_progress:
        on_progress("opening metrics", 0, 0)
        opened = open_metrics(**by_hand)
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
        raise UsageError(f"--tagger {value!r} is not {' or '.join(f'{one}=FOLDER' for one in TAGGED_METRICS)}")
    return name, Path(folder)


def _labels(value: str, folders: Mapping[str, Path]) -> tuple[str, dict[str, str]]:
    name, separator, pairs = value.partition("=")
    parted = [pair.partition(":") for pair in pairs.split(",")]
    if not separator or name not in folders or not all(label and colon for label, colon, _ in parted):
        raise UsageError(f"--labels {value!r} is not NAME=LABEL:OURS,… with the NAME of a --tagger")
    return name, {label.strip(): ours.strip() for label, _, ours in parted}
