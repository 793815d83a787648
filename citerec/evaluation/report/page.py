"""The page: tables and charts of results, and the hardest contexts to read."""

import itertools
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.evaluation.rank import OUTCOMES
from citerec.evaluation.report.charts import against_chart, classes_chart, fates_chart, ranks_chart
from citerec.evaluation.report.drawing import SYSTEM_COLOURS
from citerec.evaluation.results import OVERALL, SIGNIFICANT, Outcome, Results
from citerec.records import MARKER
from citerec.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

HARDEST = 30
_MOST_PAIRS = 15


@dataclass(frozen=True, slots=True)
class Hard:
    """A hard context, as the page shows it.

    Attributes:
        outcome: The context.
        before: What stands before the marker.
        after: What stands after it.
        cited: For each cited paper its id, its title, and its rank by system; None where it was not found.
        first: By system, titles of the papers that came first.
    """

    outcome: Outcome
    before: str
    after: str
    cited: Sequence[tuple[str, str, Mapping[str, int | None]]]
    first: Mapping[str, Sequence[str]]


TitlesOf = Callable[[set[str]], Mapping[str, str]]
TopOf = Callable[[str, str], Sequence[str]]


def write_page(results: Results, path: Path, titles_of: TitlesOf, top_of: TopOf) -> None:
    """Writes the page: one file, which needs nothing else.

    Args:
        results: What it shows.
        path: Where to.
        titles_of: Gives titles of papers by id.
        top_of: Gives the ids of the first hits for a context id by a system's name.
    """
    pairs = list(itertools.combinations(results.systems, 2))[:_MOST_PAIRS]
    page = (
        _templates()
        .get_template("report.html.j2")
        .render(
            results=results,
            version=__version__,
            more_pairs=len(results.systems) * (len(results.systems) - 1) // 2 - len(pairs),
            colours=SYSTEM_COLOURS,
            fates=OUTCOMES,
            overall=OVERALL,
            significant=SIGNIFICANT,
            families={family: classes_chart(results, family) for family in results.families},
            pairs=[(first, second, against_chart(results, first, second)) for first, second in pairs]
            if results.comparisons
            else [],
            ranks=ranks_chart(results),
            fates_chart=fates_chart(results),
            hardest=hardest(results, titles_of, top_of),
            marker=MARKER,
        )
    )
    path.write_text(page, encoding="utf-8")


def hardest(results: Results, titles_of: TitlesOf, top_of: TopOf) -> list[Hard]:
    """The contexts that all systems together answered worst, those without a cited paper in the index left out."""
    metric = results.metrics[0]

    def ease(outcome: Outcome) -> tuple[float, float, int]:
        scores = [by_metric[metric] for by_metric in outcome.scores.values()]
        ranks = [1 / rank if rank else 0.0 for by_system in outcome.ranks.values() for rank in by_system]
        # Many are equally hard. A checksum of the id takes some from all over the file, always the same ones.
        return sum(scores), max(ranks), zlib.crc32(outcome.context_id.encode())

    chosen = sorted((outcome for outcome in results.outcomes if outcome.in_index), key=ease)[:HARDEST]
    top = {outcome.context_id: {name: top_of(name, outcome.context_id) for name in outcome.ranks} for outcome in chosen}
    wanted = {paper_id for outcome in chosen for paper_id in outcome.cited}
    wanted |= {paper_id for by_system in top.values() for ids in by_system.values() for paper_id in ids}
    titles = titles_of(wanted)

    def hard(outcome: Outcome) -> Hard:
        before, _, after = outcome.text.partition(MARKER)
        cited = [
            (paper_id, titles.get(paper_id, ""), {name: ranks[slot] or None for name, ranks in outcome.ranks.items()})
            for slot, paper_id in enumerate(outcome.cited)
        ]
        first = {
            name: [titles.get(paper_id) or paper_id for paper_id in ids]
            for name, ids in top[outcome.context_id].items()
        }
        return Hard(outcome, before, after, cited, first)

    return [hard(outcome) for outcome in chosen]


def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("citerec.evaluation.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(score=_score, number=_number, size=_size, contexts=_contexts)
    return templates


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _number(value: Any, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _contexts(number: int) -> str:
    return f"{number:,} context{'' if number == 1 else 's'}"


def _size(value: int | None) -> str:
    if value is None:
        return "–"
    return f"{value / 1e6:,.0f} MB" if value >= 1e6 else f"{value / 1e3:,.0f} kB"
