"""Tables of ranked lists: systems over the classes of diagnostic families."""

from collections.abc import Iterator
from pathlib import Path

from citerec.errors import CiterecError, InputError
from citerec.evaluation.evaluate import evaluate
from citerec.evaluation.figures import OVERALL
from citerec.evaluation.results import Results
from citerec.files.places import shipped
from citerec.files.text import counted
from citerec.index.build import build_index
from citerec.papers.common.reproduce.base import Measured, Missing, Outcome, Recipe, Request, Row, Runner
from citerec.papers.common.reproduce.here import find, missing_data
from citerec.recommend import Recommender
from citerec.systems import Recipe as System
from citerec.systems import default_system

_DEMO = "demo"


class Systems(Runner):
    """Evaluates the systems that the index supports; each class of each family is a group of the table."""

    name = "systems"

    def run(self, recipe: Recipe, request: Request) -> Outcome:
        """Errors as for `Runner.run`."""
        (data,) = recipe.data
        found = find(request.data, data.files)
        if not request.sample and not found:
            return Outcome({}, [missing_data(request.data, data)])
        if not request.sample and request.index is None:
            remedy = "Name that of the sets' corpus: --index FOLDER"
            return Outcome({}, [Missing("the index", "none is named", remedy)])
        index = request.index or _demo_index(request)
        contexts = _DEMO if request.sample else found[0].parent
        missing: list[Missing] = []
        systems = dict(_systems(recipe, request, index, missing))
        if not systems:
            raise InputError(f"{index} supports no system of {recipe.name}", str(missing[0]))
        metrics = [measure.column for measure in recipe.measures]
        results = evaluate(systems, contexts, index=index, metrics=metrics, on_progress=request.on_progress)
        sizes = _sizes(results)
        return Outcome(
            cells=dict(_cells(recipe, results)),
            missing=missing,
            measured_on=sizes,
            sampled=f"{sizes[OVERALL]} of the demo set" if request.sample else "",
            settings={"rules": results.rules, "k": results.k, "index": results.index},
            results={"systems": results},
            more_rows=[name for name in systems if name not in {row.title for row in recipe.rows}],
            notes=results.notes,
        )

    def runnable(self, recipe: Recipe) -> int:
        """How many systems an index of words alone supports."""
        return sum(row.system == "bm25" for row in recipe.rows)


def _systems(recipe: Recipe, request: Request, index: Path, missing: list[Missing]) -> Iterator[tuple[str, str]]:
    """The systems that open, by row; and the default of the index, where it is none of those."""
    used = set()
    for row in recipe.rows:
        system = (*request.writers.get(row.title, ()), row.system)[0]
        try:
            Recommender.open(index, System.load(system)).close()
        except CiterecError as error:
            missing.append(_not_supported(row, error, index))
            continue
        used.add(system)
        yield row.title, system
    if (default := default_system(index)) not in used:
        yield default, default


def _not_supported(row: Row, error: CiterecError, index: Path) -> Missing:
    why, remedy = (text.rstrip(".").replace(str(index), "INDEX") for text in (error.message, error.remedy))
    own = f"--index FOLDER, or --writer '{row.title}=SYSTEM'"
    return Missing(row.title, why, f"{remedy}; then give index or system: {own}")


def _demo_index(request: Request) -> Path:
    """The index of the demo set."""
    index = request.work / _DEMO
    if not index.exists():
        request.work.mkdir(parents=True, exist_ok=True)
        build_index([shipped("diagnostics", _DEMO)], index, on_progress=request.on_progress)
    return index


def _cells(recipe: Recipe, results: Results) -> Iterator[tuple[tuple[str, str, str], Measured]]:
    for name, system in results.systems.items():
        for group in results.groups:
            means = system.scores(group).means
            for measure in recipe.measures:
                mean = means[measure.column]
                if mean.value is not None:
                    yield (name, _called(group), measure.name), Measured(mean.value, mean.n, mean.ci)


def _called(group: tuple[str, str]) -> str:
    family, label = group
    return family if family == label else f"{family}: {label}"


def _sizes(results: Results) -> dict[str, str]:
    system = next(iter(results.systems.values()))
    return {_called(group): counted(system.scores(group).n, "context") for group in results.groups}


SYSTEMS = Systems()
