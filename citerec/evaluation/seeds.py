"""Systems that were trained with several seeds: means over the seeds, and their standard deviations."""

import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from citerec.evaluation.figures import Figures
from citerec.evaluation.rendering import Cell, Table, left, marked, right
from citerec.write.metrics.base import Column

_SEED = re.compile(r"(.+)/seed-(\d+)")


@dataclass(frozen=True, slots=True)
class OverSeeds:
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
        return cls(
            statistics.fmean(known) if known else None, statistics.stdev(known) if len(known) > 1 else None, len(known)
        )

    def cell(self, column: Column) -> Cell:
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
        if match := _SEED.fullmatch(name):
            found.setdefault(match[1], {})[int(match[2])] = name
    return found


def over_seeds(results: Figures) -> dict[str, dict[str, dict[str, OverSeeds]]]:
    """Values over seeds by system, data set ("overall" first) and column; empty if no system names a seed."""
    return {
        system: {
            group: {
                column.name: OverSeeds.of(results.mean(name, (family, group), column).value for name in seeds.values())
                for column in results.columns
            }
            for family, group in results.groups
        }
        for system, seeds in by_seed(results.systems).items()
    }


def seeds_table(results: Figures) -> Table:
    """A row for each data set and system with seeds: means over the seeds ± standard deviations."""
    found = over_seeds(results)
    several = len(results.groups) > 1
    columns = [column for column in results.columns if column.judges] or list(results.columns)
    table = Table(
        [*left(*(["data set"] if several else []), "system"), *right("seeds", *(column.title for column in columns))],
        title="Over seeds: mean ± standard deviation",
    )
    seeds = {system: list(names.values()) for system, names in by_seed(results.systems).items()}
    for _, group in results.groups:
        for place, (system, of_groups) in enumerate(found.items()):
            first = [group if place == 0 else ""] if several else []
            cells = [of_groups[group][column.name].cell(column) for column in columns]
            is_oracle = any(results.systems[name].is_oracle for name in seeds[system])
            named = marked(f"{system} †", "oracle") if is_oracle else system
            table.rows.append([*first, named, str(len(seeds[system])), *cells])
    return table
