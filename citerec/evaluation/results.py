"""Results for users: figures with data frames, files and a short view (docs/formats.md)."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.evaluation.figures import DATASET, Figures
from citerec.evaluation.files import figures_json, read_fields, write_figures
from citerec.evaluation.rendering import to_html
from citerec.evaluation.tables import csv_rows, overall_table, title_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, repr=False)
class Results(Figures):
    """The results of an evaluation: of ranked lists by `citerec.evaluate`, of texts by `evaluate_texts`."""

    def __repr__(self) -> str:
        if not self.columns:  # labels alone were measured
            return f"<Results of {title_of(self)}: {', '.join(self.systems)}>"
        best = self.columns[0]
        systems = (f"{name} {best.text(system.overall.values[best.name])}" for name, system in self.systems.items())
        return f"<Results of {title_of(self)}: {best.title} of {', '.join(systems)}>"

    def _repr_html_(self) -> str:
        """The figures over all items, for notebooks."""
        return to_html(overall_table(self))

    def to_frame(self) -> "pd.DataFrame":
        """One row for each system and class.

        Columns: `system`, `family`, `class`, `n`, `few` (n < 30), and each metric with its bounds `_low` and `_high`.
        """
        import pandas as pd

        heading, *rows = csv_rows(self)
        return pd.DataFrame(rows, columns=heading)

    def comparisons_to_frame(self) -> "pd.DataFrame":
        """One row for each pair of systems, metric and class; the columns are the attributes of `Comparison`."""
        import pandas as pd

        return pd.DataFrame([asdict(comparison) for comparison in self.comparisons])

    def contexts_to_frame(self) -> "pd.DataFrame":
        """One row for each context and system, or task and system.

        Columns: `context_id`, `system`; the class of each family; `citing`, a number that contexts of one citing paper
        share; for ranked lists `rank`, the rank of the first cited paper found; each metric, NaN if it is not defined.
        """
        import numpy as np
        import pandas as pd

        items = self.items
        families = [DATASET] if self.of_texts else list(self.families)
        frames = []
        for system, scores in items.scores.items():
            columns: dict[str, Any] = {"context_id": list(items.ids), "system": system}
            columns |= {family: [labels.get(family) for labels in items.labels] for family in families}
            columns["citing"] = items.citing
            if system in items.ranks:
                ranks = np.where(items.ranks[system] > 0, items.ranks[system], np.inf).min(axis=1, initial=np.inf)
                columns["rank"] = pd.array(np.where(np.isinf(ranks), np.nan, ranks), dtype="Int64")
            columns |= {name: scores[:, number] for number, name in enumerate(items.columns)}
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def write(self, folder: str | Path) -> None:
        """Writes results.json, report.html, and results.csv, contexts.jsonl, qrels and runs, or for texts scores.csv.

        Raises:
            InputError: The folder holds something other than older results.
            BuildError: The disk is full, or may not be written to.
        """
        write_figures(self, Path(folder))

    @staticmethod
    def read(folder: str | Path) -> "Results":
        """Reads back what `write` wrote, except the runs and the texts.

        Raises:
            InputError: There are no results, or they are broken, or of another version.
        """
        return Results(**read_fields(Path(folder)))

    def to_json(self) -> dict[str, Any]:
        """The content of results.json, which leaves out the scores of single contexts."""
        return figures_json(self)
