"""Tables of ranked lists: systems over the classes of diagnostic families."""

import itertools

from citerec.errors import CiterecError
from citerec.evaluation.evaluate import evaluate
from citerec.evaluation.figures import OVERALL
from citerec.files.text import counted
from citerec.papers.common.reproduce.base import Measured, Missing, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import DEMO, demo_index, published
from citerec.recommend import Recommender
from citerec.systems import Recipe as System
from citerec.systems import default_system


def run(recipe: Recipe, request: Request) -> Outcome:
    """Evaluates the systems that the index supports; each class of each family is a group of the table."""
    outcome = Outcome()
    contexts = DEMO
    if not request.sample:
        if not (paths := published(request.data, recipe.data[0], outcome.missing)):
            return outcome
        if request.index is None:
            remedy = "Name that of the sets' corpus: --index FOLDER"
            return Outcome(missing=[Missing("the index", "none is named", remedy)])
        contexts = str(paths[0].parent)
    index = request.index or demo_index(request)
    systems: dict[str, str] = {}
    for row in recipe.rows:
        system = (*request.writers.get(row.title, ()), row.system)[0]
        try:
            Recommender.open(index, System.load(system)).close()
            systems[row.title] = system
        except CiterecError as error:
            why, remedy = (text.rstrip(".").replace(str(index), "INDEX") for text in (error.message, error.remedy))
            own = f"--index FOLDER, or --writer '{row.title}=SYSTEM'"
            outcome.missing.append(Missing(row.title, why, f"{remedy}; then give index or system: {own}"))
    if (default := default_system(index)) not in systems.values():
        systems[default] = default
    metrics = [measure.column for measure in recipe.measures]
    results = evaluate(systems, contexts, index=index, metrics=metrics, on_progress=request.on_progress)
    for (name, system_result), (family, label) in itertools.product(results.systems.items(), results.groups):
        title = family if family == label else f"{family}: {label}"
        scores = system_result.scores((family, label))
        outcome.measured_on.setdefault(title, counted(scores.n, "context"))
        for measure in recipe.measures:
            mean = scores.means[measure.column]
            if mean.value is not None:
                outcome.cells[name, title, measure.name] = Measured(mean.value, mean.n, mean.ci)
    outcome.sampled = f"{outcome.measured_on[OVERALL]} of the demo set" if request.sample else ""
    outcome.settings = {"rules": results.rules, "k": results.k, "index": results.index}
    outcome.results, outcome.notes = {"systems": results}, results.notes
    return outcome


SYSTEMS = Runner("systems", run)
