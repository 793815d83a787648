"""The table of ranked lists: systems over the families and classes of the diagnostic sets."""

import itertools

from citerec.errors import CiterecError
from citerec.evaluation.evaluate import evaluate
from citerec.evaluation.statistics import OVERALL
from citerec.files.text import counted
from citerec.papers.common.reproduce import DEMO, Measured, Missing, Reproduction, demo_index, published
from citerec.recommend import Recommender
from citerec.systems import Recipe, default_system


def run(table: Reproduction) -> None:
    """Evaluates the systems that the index supports; each class of each family is a group of the table."""
    contexts = DEMO
    if not table.sample:
        if not (paths := published(table.data, table.recipe.data[0], table.missing)):
            return
        if table.index is None:
            table.missing = [Missing("the index", "none is named", "Name that of the sets' corpus: --index FOLDER")]
            return
        contexts = str(paths[0].parent)
    index = table.index or demo_index(table.work, table.on_progress)
    systems: dict[str, str] = {}
    for row in table.recipe.rows:
        system = (*table.writers.get(row.title, ()), row.system)[0]
        try:
            Recommender.open(index, Recipe.load(system)).close()
            systems[row.title] = system
        except CiterecError as error:
            why, remedy = (text.rstrip(".").replace(str(index), "INDEX") for text in (error.message, error.remedy))
            own = f"--index FOLDER, or --writer '{row.title}=SYSTEM'"
            table.missing.append(Missing(row.title, why, f"{remedy}; then give index or system: {own}"))
    if (default := default_system(index)) not in systems.values():
        systems[default] = default
    metrics = [measure.column for measure in table.recipe.measures]
    results = evaluate(systems, contexts, index=index, metrics=metrics, on_progress=table.on_progress)
    for (name, system_result), (family, label) in itertools.product(results.systems.items(), results.groups):
        group = family if family == label else f"{family}: {label}"
        scores = system_result.scores((family, label))
        table.measured_on.setdefault(group, counted(scores.n, "context"))
        for measure in table.recipe.measures:
            mean = scores.means[measure.column]
            if mean.value is not None:
                table.cells[name, group, measure.name] = Measured(mean.value, mean.n, mean.ci)
    table.sampled = f"{table.measured_on[OVERALL]} of the demo set" if table.sample else ""
    table.settings = results.record.model_dump(mode="json", include={"rules", "k", "index"})
    table.results, table.notes = {"systems": results}, [*results.record.notes]
