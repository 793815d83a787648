"""Tables of people's ratings: sheets that were filled in, summed up by system and data set."""

from citerec.evaluation.figures import DATASET
from citerec.files.text import counted
from citerec.papers.citebench.ratings import Rated, read_ratings
from citerec.papers.citebench.sheets import SCALES
from citerec.papers.common.reproduce.base import Measured, Outcome, Recipe, Request, Runner
from citerec.papers.common.reproduce.here import find, is_here, missing_data

ALL_SETS, ALL_SYSTEMS = "all data sets", "all systems"


class Ratings(Runner):
    """Reads the key and the sheets in the data folder. Rows are data set and system."""

    name = "ratings"

    def run(self, recipe: Recipe, request: Request) -> Outcome:
        """Errors as for `Runner.run`."""
        (data,) = recipe.data
        if not is_here(request.data, data):
            return Outcome({}, [missing_data(request.data, data)])
        key, *sheets = find(request.data, data.files)
        rated = read_ratings(sheets, key)
        cells = {}
        for row in recipe.rows:
            for measure in recipe.measures:
                if (one := _mean(rated, row.section, row.name, measure.column)) is not None:
                    cells[row.title, "", measure.name] = one
        about = {"": f"{counted(rated.rated, 'text')} that {counted(len(rated.raters), 'person')} rated"}
        return Outcome(cells, [], about, {"scales": {name: list(words) for name, words in SCALES.items()}})


def _mean(rated: Rated, dataset: str, system: str, scale: str) -> Measured | None:
    """The mean of a scale over a system's texts, or those of all, in a data set or in all."""
    found = []
    for name, one in rated.systems.items():
        if system in (ALL_SYSTEMS, name):
            scores = one.overall if dataset == ALL_SETS else one.families.get(DATASET, {}).get(dataset)
            if scores is not None and (mean := scores.means[scale]).value is not None:
                found.append(mean)
    if not found:
        return None
    n = sum(mean.n for mean in found)
    value = sum((mean.value or 0) * mean.n for mean in found) / n
    return Measured(value, n, found[0].ci if len(found) == 1 else None)


RATINGS = Ratings()
