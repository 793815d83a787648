"""Systems that were trained with several seeds: means over the seeds, and their standard deviations."""

import re
import statistics
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from citerec.evaluation.rendering import Cell, Table, left, right
from citerec.write.metrics.base import Column as MetricColumn

if TYPE_CHECKING:
    from citerec.evaluation.results import Results


class OverSeeds(NamedTuple):
    """A value over seeds.

    Attributes:
        mean: The mean of the seeds' values; None if none has one.
        sd: Standard deviation of the sample (divided by n - 1); None for fewer than two seeds.
        n: Number of seeds that have a value.
    """

    mean: float | None
    sd: float | None
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "OverSeeds":
        """Of the values of the seeds."""
        known = [value for value in values if value is not None]
        sd = statistics.stdev(known) if len(known) > 1 else None
        return cls(statistics.fmean(known) if known else None, sd, len(known))

    def cell(self, column: MetricColumn) -> Cell:
        """The mean and the standard deviation as tables show them."""
        around = "" if self.sd is None else f" ± {column.text(self.sd)}"
        return Cell(self.mean, ((column.text(self.mean) + around, ""),))


def seed_name(system: str, seed: int) -> str:
    """The name of a system that was trained with a seed: also the end of the path of its folder."""
    return f"{system}/seed-{seed}"


def by_seed(names: Iterable[str]) -> dict[str, dict[int, str]]:
    """The systems among some names that were trained with seeds: by name without the seed, and seed."""
    found: dict[str, dict[int, str]] = {}
    for name in names:
        if match := re.fullmatch(r"(.+)/seed-(\d+)", name):
            found.setdefault(match[1], {})[int(match[2])] = name
    return found


def over_seeds(results: "Results") -> dict[str, dict[str, dict[str, OverSeeds]]]:
    """Values over seeds by system, data set ("overall" first) and column; empty if no system names a seed."""
    return {
        system: {
            group[1]: {
                one.name: OverSeeds.of(results.mean(name, group, one).value for name in seeds.values())
                for one in results.columns
            }
            for group in results.groups
        }
        for system, seeds in by_seed(results.systems).items()
    }


def seeds_table(results: "Results") -> Table:
    """A row for each data set and system with seeds: means over the seeds ± standard deviations."""
    columns = [column for column in results.columns if column.judges] or results.columns
    rows = [
        [label, system, *(of_group[column.name].cell(column) for column in columns)]
        for system, by_group in over_seeds(results).items()
        for label, of_group in by_group.items()
    ]
    headings = right(*(column.title for column in columns))
    return Table([*left("data set", "system"), *headings], rows, "Over seeds: mean ± standard deviation")
