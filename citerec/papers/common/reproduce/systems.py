"""Tables of ranked lists: systems over the classes of diagnostic families."""

from citerec.errors import CiterecError
from citerec.evaluation.evaluate import evaluate
from citerec.evaluation.statistics import OVERALL
from citerec.files.text import counted
from citerec.papers.common.reproduce.base import Cells, Measured, Missing, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import DEMO, demo_index, find, missing_data
from citerec.recommend import Recommender
from citerec.systems import Recipe as System
from citerec.systems import default_system


class Systems(Runner):
    """Evaluates the systems that the index supports; each class of each family is a group of the table."""

    name = "systems"

    def run(self, recipe: Recipe, request: Request) -> Outcome:
        """Errors as for `Runner.run`."""
        (data,) = recipe.data
        paths = find(request.data, data.files)
        if not request.sample and not paths:
            return Outcome({}, [missing_data(request.data, data)])
        if not request.sample and request.index is None:
            remedy = "Name that of the sets' corpus: --index FOLDER"
            return Outcome({}, [Missing("the index", "none is named", remedy)])
        index = request.index or demo_index(request)
        systems: dict[str, str] = {}
        missing: list[Missing] = []
        for row in recipe.rows:
            system = (*request.writers.get(row.title, ()), row.system)[0]
            try:
                Recommender.open(index, System.load(system)).close()
                systems[row.title] = system
            except CiterecError as error:
                why, remedy = (text.rstrip(".").replace(str(index), "INDEX") for text in (error.message, error.remedy))
                own = f"--index FOLDER, or --writer '{row.title}=SYSTEM'"
                missing.append(Missing(row.title, why, f"{remedy}; then give index or system: {own}"))
        if (default := default_system(index)) not in systems.values():
            systems[default] = default
        metrics = [measure.column for measure in recipe.measures]
        contexts = DEMO if request.sample else paths[0].parent
        results = evaluate(systems, contexts, index=index, metrics=metrics, on_progress=request.on_progress)
        cells: Cells = {}
        sizes: dict[str, str] = {}
        for name, result in results.systems.items():
            for group in results.groups:
                family, label = group
                title = family if family == label else f"{family}: {label}"
                scores = result.scores(group)
                sizes.setdefault(title, counted(scores.n, "context"))
                for measure in recipe.measures:
                    mean = scores.means[measure.column]
                    if mean.value is not None:
                        cells[name, title, measure.name] = Measured(mean.value, mean.n, mean.ci)
        return Outcome(
            cells=cells,
            missing=missing,
            measured_on=sizes,
            sampled=f"{sizes[OVERALL]} of the demo set" if request.sample else "",
            settings=results.record.model_dump(mode="json", include={"rules", "k", "index"}),
            results={"systems": results},
            notes=results.record.notes,
        )

    def runnable(self, recipe: Recipe) -> int:
        """How many systems an index of words alone supports."""
        return sum(row.system == "bm25" for row in recipe.rows)


SYSTEMS = Systems()
