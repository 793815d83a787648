"""Tables of statistics: a row for each data set."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from citerec.files.text import counted
from citerec.papers.common.reproduce.base import Data, Measured, Missing, Outcome, Recipe, Request, Row, Runner
from citerec.papers.common.reproduce.here import find, missing_data
from citerec.papers.common.reproduce.samples import sample_tasks
from citerec.write.anchors import without_anchors
from citerec.write.metrics.describing import refers_to_itself
from citerec.write.sentences import words_of
from citerec.write.task_files import read_tasks
from citerec.write.tasks import TextTask

SPLITS = ("samples_1", "samples_2", "samples_3")
"""Columns of the first, second and third file of a data set: training, validation, test."""
SELF_REFERENCES = "self_references"
_TOTAL = "Total"


@dataclass(slots=True)
class Described:
    """What was counted in tasks.

    Attributes:
        sizes: The number of tasks, `samples`, and of those in each split.
        sums: Sums of values over tasks or targets, by column.
        counts: Of how many values each is.
    """

    sizes: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "Described") -> "Described":
        return Described(self.sizes + other.sizes, self.sums + other.sums, self.counts + other.counts)

    @property
    def samples(self) -> int:
        """The number of tasks."""
        return self.sizes["samples"]

    def add(self, tasks: Iterable[TextTask], split: str = "") -> None:
        """Adds the tasks of one file. Each target of a task counts in the values of targets."""
        for task in tasks:
            self.sizes.update(filter(None, ("samples", split)))
            words = sum(len(words_of(source.text)) for source in task.sources)
            self._sum(source_words=words, sources=len(task.sources))
            for target in task.targets:
                self._sum(
                    target_words=len(words_of(without_anchors(target))),
                    paragraphs=sum(bool(line.strip()) for line in target.splitlines()),
                    self_reference=refers_to_itself(target),
                )

    def _sum(self, **values: int) -> None:
        self.sums.update(values)
        self.counts.update(values.keys())

    def value(self, column: str) -> float | None:
        """A column: the number of tasks or those of a split, a sum, or a mean."""
        if column in ("samples", *SPLITS):
            return self.sizes.get(column)
        if column == SELF_REFERENCES:
            return float(self.sums["self_reference"])
        return self.sums[column] / self.counts[column] if self.counts[column] else None


class Statistics(Runner):
    """Reads the data sets of the rows, and counts."""

    name = "statistics"

    def run(self, recipe: Recipe, request: Request) -> Outcome:
        """Errors as for `Runner.run`."""
        found: dict[str, Described] = {}
        missing: list[Missing] = []
        about: dict[str, str] = {}
        notes: list[str] = []
        more: list[str] = []
        data = {one.name: one for one in recipe.data}
        for row in recipe.rows:
            if row.name == _TOTAL:
                continue
            one = data[row.data or row.name]
            described, absent = _read(row, one, request)
            if described.samples:
                found[row.title] = described
            if absent and described.samples:
                notes.append(f"{row.title}: without {', '.join(absent)}; means are over the other files.")
            elif absent:
                missing.append(missing_data(request.data, one))
        if request.sample and not found:
            what, tasks = sample_tasks(recipe, request.data)
            described = Described()
            described.add(tasks)
            found[f"sample: {what}"] = described
            more.append(f"sample: {what}")
            about[""] = f"{described.samples:,} {what}"
        elif found:
            about[""] = counted(sum(one.samples for one in found.values()), "task")
        rows = {row.title: row for row in recipe.rows}
        if _TOTAL in rows and len([name for name in found if name in rows]) == len(rows) - 1:
            found[_TOTAL] = sum(found.values(), Described())
        cells = {
            (name, "", measure.name): Measured(value * measure.scale, one.samples)
            for name, one in found.items()
            for measure in recipe.measures
            if (value := one.value(measure.column)) is not None
        }
        here = f"{about.get('', 'nothing')} of what lies here"
        sampled = (about[""] if more else here) if request.sample else ""
        return Outcome(cells, missing, about, sampled=sampled, more_rows=more, notes=notes)


def _read(row: Row, data: Data, request: Request) -> tuple[Described, list[str]]:
    """What the files of a data set hold, and those that are not there."""
    described, absent = Described(), []
    for number, pattern in enumerate(data.files):
        paths = find(request.data, [pattern])
        if not paths:
            absent.append(pattern)
            continue
        request.on_progress(f"reading {row.title}", number, len(data.files))
        for path in paths:
            described.add(read_tasks(path), _split(pattern))
    return described, absent


def _split(pattern: str) -> str:
    """The column of a split, by the name of its file."""
    name = pattern.lower()
    return SPLITS[0 if "train" in name else 2 if "test" in name else 1]


STATISTICS = Statistics()
