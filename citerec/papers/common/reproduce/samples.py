"""Small data that takes the place of a table's own."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from citerec.contexts.read import read_contexts
from citerec.corpus.base import FORMATS
from citerec.corpus.shards import find_shards
from citerec.errors import InputError
from citerec.files.places import shipped
from citerec.papers.common.reproduce.base import Recipe, Sample
from citerec.papers.common.reproduce.here import DATA, find
from citerec.records import MARKER, Abstract, Context, Paper
from citerec.write.task_files import read_tasks
from citerec.write.tasks import Source, TextTask

DEMO = "tasks made from the demo set"
_TOGETHER = 4
"""So many citing sentences of one field make a text of related work."""


def sample_of(recipe: Recipe) -> Sample:
    """The sample of a recipe; an InputError if it has none."""
    if recipe.sample is None:
        raise InputError(
            f"{recipe.name} has no sample: {recipe.no_sample}", "Without --sample, it says what is needed."
        )
    return recipe.sample


def sample_tasks(recipe: Recipe, folder: Path | None) -> tuple[str, list[TextTask]]:
    """What the sample is, and its tasks, from the first file that is there, or else from the demo set.

    Raises:
        InputError: There is no sample, or no file of it.
        SourceError: A file cannot be read.
    """
    sample = sample_of(recipe)
    for path in find(folder, sample.files):
        enough = (task for task in read_tasks(path) if len(task.sources) >= sample.least_sources)
        some = [replace(task, dataset="") for task in itertools.islice(enough, sample.limit)]
        if sample.target:
            found = [(task, str(_field(task, sample.target))) for task in some]
            some = [replace(task, targets=(target,)) for task, target in found if target]
        return sample.what, some
    if not sample.demo:
        where = " or ".join(sample.files)
        raise InputError(f"the sample is not here: {where}", f"Name the data folder: --data FOLDER, or {DATA}.")
    tasks = _together() if sample.least_sources > 1 else _one_by_one(recipe.kind)
    return DEMO, list(itertools.islice(tasks, sample.limit))


def _field(task: TextTask, name: str) -> object:
    """A field of a task's record, or of its first source."""
    return task.extra.get(name) or getattr(task.sources[0], name, "")


def _one_by_one(kind: str) -> Iterator[TextTask]:
    """A task for each context that cites one paper with an abstract: its text is the context, the source the paper."""
    for context, paper in _demo():
        target = context.text.replace(MARKER, "REF" if kind == "tldr" else "[0]")
        yield TextTask(context.context_id, (Source.of(paper),), targets=(target,))


def _together() -> Iterator[TextTask]:
    """Tasks whose texts are contexts that cite different papers of one field."""
    by_field: dict[str, dict[str, tuple[Context, Paper]]] = {}
    for context, paper in _demo():
        by_field.setdefault(context.labels.get("field", ""), {}).setdefault(paper.paper_id, (context, paper))
    for pairs in by_field.values():
        for begin in range(0, len(pairs) - _TOGETHER + 1, _TOGETHER):
            some = list(pairs.values())[begin : begin + _TOGETHER]
            texts = [context.text.replace(MARKER, f"[{number}]") for number, (context, _) in enumerate(some)]
            sources = tuple(Source.of(paper) for _, paper in some)
            yield TextTask(some[0][0].context_id, sources, targets=(" ".join(texts),))


def _demo() -> Iterator[tuple[Context, Paper]]:
    folder = shipped("diagnostics", "demo")
    papers = _papers(folder)
    for context in read_contexts(folder / "contexts.jsonl"):
        if len(context.cited_ids) == 1 and (paper := papers.get(context.cited_ids[0])) and paper.abstract:
            yield context, paper


def _papers(folder: Path) -> dict[str, Paper]:
    """Papers with their abstracts, by id."""
    papers: dict[str, Paper] = {}
    abstracts: dict[str, str | None] = {}
    for shard in find_shards([folder]):
        for line in FORMATS[shard.format].read(shard.path):
            if isinstance(line.record, Paper):
                papers[line.record.paper_id] = line.record
            elif isinstance(line.record, Abstract):
                abstracts[line.record.paper_id] = line.record.text
    return {name: replace(paper, abstract=abstracts.get(name) or paper.abstract) for name, paper in papers.items()}
