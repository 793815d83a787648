"""Presets: the metrics of a paper with all their settings, so that figures compare with those that it reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from citerec.files.registry import Registry
from citerec.write.metrics.base import TEXT_METRICS

METRICS = "metrics"
"""The setting of a preset that is no option of a metric: which metrics are computed."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Metrics and options in the registry, as the code of a paper's authors has them.

    `open_metrics(**PRESETS["citebench"].arguments())` opens the metrics, and `used` says for results what was used.

    Attributes:
        name: Its name.
        source: The paper and the files of its authors' code that the settings come from.
        options: Every one of `MetricOptions` that a metric of the preset depends on.
        metrics: The metrics. Those that need a tagger are computed only if one is given.
    """

    name: str
    source: str
    options: Mapping[str, Any]
    metrics: tuple[str, ...]

    def arguments(self, **by_hand: Any) -> dict[str, Any]:
        """The arguments of `open_metrics`.

        Args:
            by_hand: Arguments of `open_metrics` that win over the preset's: `names` or `MetricOptions`.
        """
        options = {**self.options, **by_hand}
        if "names" not in by_hand:
            taggers = by_hand.get("taggers", {})
            options["names"] = [name for name in self.metrics if not TEXT_METRICS[name].needs_tagger or name in taggers]
        return options

    def used(self, **by_hand: Any) -> dict[str, Any]:
        """The preset as results name it, with what was used in its place.

        Args:
            by_hand: As for `arguments`.

        Returns:
            As JSON: `name`; `source`; `settings`, the metrics and options that were used; and `differs`, the preset's
            own values of those that are others.
        """
        options = self.arguments(**by_hand)
        own = {METRICS: list(self.metrics), **self.options}
        settings = {METRICS: list(dict.fromkeys(options["names"])), **{name: options[name] for name in self.options}}
        differs = {name: value for name, value in own.items() if settings[name] != value}
        if set(settings[METRICS]) == set(self.metrics):  # in another order
            differs.pop(METRICS, None)
        return {"name": self.name, "source": self.source, "settings": settings, "differs": differs}


PRESETS: Registry[Preset] = Registry("preset", {})
"""The settings of papers: each stands in the folder of its paper."""
