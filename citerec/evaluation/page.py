"""The page of results, of ranked lists or of texts: tables, charts, and examples to read."""

import base64
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.evaluation import tables
from citerec.evaluation.charts import (
    against_chart,
    means_chart,
    outcomes_chart,
    ranks_chart,
    reliability_chart,
    shares_chart,
)
from citerec.evaluation.drawing import PART_COLOURS
from citerec.evaluation.examples import cut, hardest, side_by_side
from citerec.evaluation.figures import SIGNIFICANT, Figures
from citerec.evaluation.predictions import ReadFile
from citerec.evaluation.rank import OUTCOMES
from citerec.evaluation.rendering import Table, left, marked, to_html
from citerec.evaluation.seeds import by_seed, seeds_table
from citerec.evaluation.tables import SYSTEM_COLOURS, name_cell, outcome_names, said, settings_text
from citerec.files.text import counted
from citerec.records import MARKER
from citerec.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_PAIRS = 15
_LONGEST_SETTING = 200


def write_page(results: Figures, path: Path) -> None:
    """Writes the page, a single file that needs no other files."""
    ranked = not results.of_texts
    by_class = ranked and bool(results.families)
    pairs = list(itertools.combinations([name for name, one in results.systems.items() if not one.is_oracle], 2))
    shown = pairs[: _MOST_PAIRS if ranked else None] if results.comparisons else []
    _write(
        path,
        "page.html.j2",
        results=results,
        title=results.set["name"] if ranked else "Written texts",
        legend=list(tables.legend(results, "long")),
        part_colours=PART_COLOURS,
        significant=SIGNIFICANT,
        preset=tables.preset_text(results),
        overall=tables.overall_table(results, "long") if ranked else None,
        robustness=tables.robustness_table(results) if by_class else None,
        blocks=[
            (one, means_chart(results, one), tables.block_table(results, one, "long")) for one in tables.blocks(results)
        ],
        discourse={name: list(_discourse(results, name)) for name in results.discourse_metrics},
        discourse_tables={
            name: tables.discourse_table(results, name, missing=True) for name in results.discourse_metrics
        },
        seeds=seeds_table(results) if by_seed(results.systems) else None,
        summaries={
            name: tables.summary_table(results, name)
            for name in results.corpus_metrics
            if name not in results.discourse_metrics
        },
        pairs=[
            (*pair, against_chart(results, *pair) if by_class else "", tables.comparisons_table(results, *pair))
            for pair in shown
        ],
        more_pairs=len(pairs) - len(shown) if results.comparisons else 0,
        ranks=ranks_chart(results) if ranked else "",
        outcomes=(outcomes_chart(results), tables.outcomes_table(results)) if ranked else None,
        outcome_names=[outcome_names(results)[name] for name in OUTCOMES],
        confidence=_confidence(results),
        cost=tables.cost_table(results) if ranked else None,
        hardest=hardest(results) if ranked else [],
        rules=list(tables.rules_text(results)) if ranked else [],
        side_by_side=side_by_side(results),
        settings=[] if ranked else [_settings(results), _writers(results)],
        marker=MARKER,
    )


def write_tables_page(
    path: Path,
    title: str,
    shown: Sequence[Table],
    *,
    notes: Sequence[str] = (),
    lines: Sequence[str] = (),
    missing: Sequence[str] = (),
    links: Sequence[tuple[str, str]] = (),
) -> None:
    """Writes a page of tables: first `notes`, then the tables, what explains them, what is missing, and `links`."""
    content = {"notes": notes, "lines": lines, "missing": missing, "links": links}
    _write(path, "tables.html.j2", title=title, tables=shown, **content)


def _write(path: Path, template: str, **content: Any) -> None:
    """Writes a page with its style sheet in it."""
    templates = _templates()
    style = templates.get_template("style.css").render()
    page = templates.get_template(template).render(style=style, policy=_policy(style), version=__version__, **content)
    path.write_text(page, encoding="utf-8")


def _policy(style: str) -> str:
    """The Content-Security-Policy of the page: no scripts, nothing from elsewhere, and no style sheet but its own.

    Charts set their colours in attributes, which can load nothing under this policy.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    allowed = f"style-src-elem 'sha256-{digest}'; style-src-attr 'unsafe-inline'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _discourse(results: Figures, metric: str) -> Iterator[tuple[str, str]]:
    """For each group its name, and a chart of shares."""
    for _, group in results.groups:
        by_system = {name: system.summaries[metric][group] for name, system in results.systems.items()}
        targets = next(iter(by_system.values()))["targets"]
        shares = {"target": targets} if targets else {}
        shares |= {name: summary["system"] for name, summary in by_system.items()}
        title = f"{metric}: shares of labels, {group}"
        yield group, shares_chart(shares, results.settings[metric]["labels"], title)


def _confidence(results: Figures) -> tuple[str, Table] | None:
    """The reliability diagram and its figures, if a system states how sure it is."""
    if not any(system.reliability for system in results.systems.values()):
        return None
    return reliability_chart(results), tables.reliability_table(results)


def _settings(results: Figures) -> Table:
    rows = [
        [metric if number == 0 else "", name, said(value)]
        for metric, settings in results.settings.items()
        for number, (name, value) in enumerate(settings.items())
    ]
    return Table(left("metric", "setting", "value"), rows)


def _writers(results: Figures) -> Table:
    table = Table(left("system", "files", "settings of the writer"))
    for name, system in results.systems.items():
        settings = system.settings
        words = f"{settings} from text to text" if isinstance(settings, str) else "not known"
        if settings and not isinstance(settings, str):
            words = " · ".join(f"{key}: {cut(said(value), _LONGEST_SETTING)}" for key, value in settings.items())
        files = ", ".join(map(_file, system.files))
        table.rows.append([name_cell(results, name), files, marked(words, "faint")])
    return table


def _file(file: ReadFile) -> str:
    return f"{file.name} ({file.bytes:,} bytes, sha256 {file.sha256[:12]}…)"


def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader, strict = PackageLoader("citerec.evaluation"), StrictUndefined
    templates = Environment(loader=loader, autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True)

    def as_html(table: Table) -> Markup:
        return Markup(to_html(table))

    templates.filters.update(table=as_html, settings=settings_text, counted=counted, file=_file)
    templates.globals.update(colours=SYSTEM_COLOURS)
    return templates
