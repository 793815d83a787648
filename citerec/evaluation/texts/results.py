"""What an evaluation of written texts found (docs/formats.md)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from citerec.evaluation.results import Comparison
from citerec.evaluation.statistics import Floats
from citerec.evaluation.texts.means import Groups, Mean
from citerec.evaluation.texts.predictions import Predictions
from citerec.texts.metrics.base import Column
from citerec.version import __version__

KIND = "citerec-text-results"
VERSION = 1
"""Rises when what reads results written before would misread them."""


@dataclass(frozen=True, slots=True)
class SystemTexts:
    """One system.

    Attributes:
        upper_bound: Whether it saw the targets: no system, and never the best one.
        missing: Tasks that it did not answer; nobody's texts for them count.
        blank: Tasks for which it wrote nothing; they count.
        means: By group, in the order of the columns.
        summaries: By corpus metric and group, what that found.
    """

    upper_bound: bool
    missing: int
    blank: int
    means: Mapping[str, Sequence[Mean]]
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class TextResults:
    """What an evaluation of written texts found.

    Attributes:
        predictions: What was evaluated; in memory only.
        groups: All texts, and the data sets where there are several.
        columns: The values of a text, the first one first in charts.
        settings: By metric, all that its values depend on.
        systems: By name, in the order given.
        targets: What describes texts, of those that authors wrote: by group, in the order of the columns; None where a
            value does not describe, or no text has a target.
        comparisons: Every pair of systems that are no upper bounds.
        seed: Of everything random.
        resamples: Of the bootstrap.
        citing_known: For how many tasks the citing paper is known; each other one is drawn by itself.
        notes: What the reader should know besides.
        scores: By system, texts × columns; in memory, and in scores.csv.
    """

    predictions: Predictions = field(repr=False)
    groups: Groups = field(repr=False)
    columns: tuple[Column, ...]
    settings: Mapping[str, Mapping[str, Any]]
    systems: Mapping[str, SystemTexts]
    targets: Mapping[str, Sequence[Mean]] | None
    comparisons: Sequence[Comparison]
    seed: int
    resamples: int
    citing_known: int
    notes: Sequence[str] = ()
    scores: Mapping[str, Floats] = field(default_factory=dict, repr=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that score texts one by one, in order."""
        return tuple(dict.fromkeys(column.metric for column in self.columns))

    @property
    def corpus_metrics(self) -> tuple[str, ...]:
        """The metrics that look at all texts of a system together, in order."""
        return tuple(name for name in self.settings if name not in self.metrics)

    def best(self, group: str, column: int) -> frozenset[str]:
        """The systems with the best mean; none where no value is better than another, or none has a worse one."""
        sign = -1 if self.columns[column].better == "lower" else 1
        means = {
            name: sign * mean.value
            for name, system in self.systems.items()
            if not system.upper_bound and (mean := system.means[group][column]).value is not None
        }
        # Sums of the same numbers in another order differ in their last digits.
        best = {name for name, value in means.items() if math.isclose(value, max(means.values()), rel_tol=1e-9)}
        return frozenset(best) if self.columns[column].judges and len(best) < len(means) else frozenset()

    @property
    def first(self) -> str | None:
        """The system that others are compared with in tables: the first one that is no upper bound."""
        return next((name for name, system in self.systems.items() if not system.upper_bound), None)

    def against_first(self, system: str, group: str, column: str) -> Comparison | None:
        """A system compared with the first one."""
        wanted = (self.first, system, group, column)
        return next((c for c in self.comparisons if (c.first, c.second, c.label, c.metric) == wanted), None)

    def to_json(self) -> dict[str, Any]:
        """results.json: values as metrics give them, shares from 0 to 1."""
        of_each = self.groups.members.sum(axis=0).tolist()
        return {
            "kind": KIND,
            "version": VERSION,
            "citerec": __version__,
            "tasks": {
                "asked": self.predictions.asked,
                "compared": len(self.predictions.tasks),
                "left_out": self.predictions.left_out,
                "citing_paper_known": self.citing_known,
                "references": asdict(self.predictions.references) if self.predictions.references else None,
                "groups": dict(zip(self.groups.names, of_each, strict=True)),
            },
            "columns": [
                {name: getattr(column, name) for name in ("name", "metric", "share", "judges")}
                for column in self.columns
            ],
            "settings": {name: dict(settings) for name, settings in self.settings.items()},
            "seed": self.seed,
            "resamples": self.resamples,
            "systems": {
                name: {
                    "files": [asdict(file) for file in self.predictions.files.get(name, ())],
                    "settings": self.predictions.settings(name),
                    "upper_bound": system.upper_bound,
                    "missing": system.missing,
                    "blank": system.blank,
                    "means": self._means(system.means),
                    "summaries": {name: dict(groups) for name, groups in system.summaries.items()},
                }
                for name, system in self.systems.items()
            },
            "targets": self._means(self.targets) if self.targets else None,
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
            "notes": list(self.notes),
        }

    def _means(self, means: Mapping[str, Sequence[Mean]]) -> dict[str, dict[str, Any]]:
        return {
            group: {column.name: asdict(mean) for column, mean in zip(self.columns, of_group, strict=True)}
            for group, of_group in means.items()
        }
