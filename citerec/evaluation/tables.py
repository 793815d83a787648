"""Results as tables for the terminal, the page and CSV."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from citerec.evaluation.figures import ALL, DATASET, SIGNIFICANT, Comparison, Figures, Group, Mean
from citerec.evaluation.rank import FOUND_UNTIL
from citerec.evaluation.rendering import Cell, Span, Table, left, marked, right
from citerec.files.text import counted
from citerec.records import EVENTS
from citerec.write.metrics.base import Column

SYSTEM_COLOURS = 8
"""How many systems the page has colours for; further systems reuse them."""

_INTERVAL_WIDTH = len(" [.33 .41]")
_BEGINNING = 6  # letters of a label, where a table must be narrow

Intervals = Literal["short", "long"] | None


@dataclass(frozen=True, slots=True)
class Block:
    """The content of one table and one chart: the classes of a family, or the values of a metric.

    `about` is what the family holds constant and how many contexts have no class, or the settings of the metric; groups
    are rows.
    """

    name: str
    title: str
    about: str
    groups: Sequence[Group]
    columns: Sequence[Column]


def blocks(results: Figures) -> list[Block]:
    """For ranked lists one for each family, with all metrics; for texts one for each metric, with all data sets."""
    if results.of_texts:
        return [
            Block(name, name, settings_text(results.settings[name]), results.groups, columns)
            for name in results.metrics
            if (columns := [column for column in results.columns if column.metric == name])
        ]
    found = []
    for name, info in results.families.items():
        about = [f"held constant: {'; '.join(info.conditions)}"] if info.conditions else []
        if n := info.without_class:
            about.append(f"{counted(n, 'context')} {'has' if n == 1 else 'have'} no class")
        found.append(
            Block(name, info.title, "; ".join(about), [(name, label) for label in info.classes], results.columns)
        )
    return found


def title_of(results: Figures) -> str:
    """A short title."""
    if results.of_texts:
        return f"{counted(results.set['compared'], 'task')}, {counted(len(results.systems), 'system')}"
    return f"{results.set['name']}, {counted(results.set['counted'], 'context')}"


def overall_table(results: Figures, intervals: Intervals = "short") -> Table:
    """Every system over all items, by all columns."""
    return _scores_table(results, [ALL], results.columns, "", intervals)


def block_table(results: Figures, block: Block, intervals: Intervals = "short") -> Table:
    """Every system on every group of a block."""
    several = not results.of_texts or len(block.groups) > 1
    heading = ("data set" if results.of_texts else "class") if several else ""
    return _scores_table(results, block.groups, block.columns, heading, intervals)


def _scores_table(
    results: Figures, groups: Sequence[Group], columns: Sequence[Column], heading: str, intervals: Intervals
) -> Table:
    named = results.of_texts or not heading or len(results.systems) > 1
    names = [*([heading] if heading else []), *(["system"] if named else [])]
    wide = {} if results.of_texts else {"least": 14, "style": "strong"}
    table = Table([*left(names[0], **wide), *left(*names[1:]), *right("n", *(column.title for column in columns))])
    targets = None if any(column.judges for column in columns) else results.targets
    for group in groups:
        for place, (name, system) in enumerate([*results.systems.items(), *([("", targets)] if targets else [])]):
            means = [system.scores(group).means[column.name] for column in columns]
            n = max(mean.n for mean in means)
            starred = not results.of_texts and group != ALL
            few = ((" *"[system.scores(group).few], "warning"),) if starred else ()
            # One n for all, unless results of different contexts were merged.
            shown = place == 0 or not heading or results.of_texts or not results.alike
            cells = [
                _score(results, name, group, column, mean, intervals)
                for column, mean in zip(columns, means, strict=True)
            ]
            first = [group[1] if place == 0 else ""] if heading else []
            of_system = [name_cell(results, name) if name else _TARGET] if named else []
            table.rows.append([*first, *of_system, Cell(n, ((f"{n:,}", ""), *few)) if shown else "", *cells])
    return table


def name_cell(results: Figures, name: str) -> Cell:
    """The name of a system, with its colour; † marks an upper bound."""
    number = list(results.systems).index(name) % SYSTEM_COLOURS
    shown = (f"{name} †", "oracle") if results.systems[name].is_oracle else (name, "")
    return Cell(name, (("", f"system-{number}"), shown))


_TARGET = marked("target", "oracle")


def _score(results: Figures, system: str, group: Group, column: Column, mean: Mean, intervals: Intervals) -> Cell:
    """A mean with its interval, a star if it is the best, and a mark if it differs from that of the first system."""
    starred = results.of_texts and system in results.best(group, column)
    spans: list[Span] = [*[("★ ", "warning")] * starred, (column.text(mean.value), "")]
    if intervals == "long" and mean.ci is not None:
        spans.append((f" {column.text(mean.ci[0])}–{column.text(mean.ci[1])}", "faint"))
    elif intervals and mean.ci is not None:
        spans.append((f" [{column.bound(mean.ci[0])} {column.bound(mean.ci[1])}]", "faint"))
    elif intervals and not results.of_texts:
        spans.append((" " * _INTERVAL_WIDTH, ""))
    if results.of_texts or len(results.systems) > 1:
        spans.append(_mark(results.against_first(system, group, column), column))
    return Cell(mean.value, tuple(spans))


def _mark(comparison: Comparison | None, column: Column) -> Span:
    """A mark if a system differs from the first one; without colour if the column does not judge."""
    if comparison is None:
        return "  ", ""
    lower = comparison.difference > 0
    worse = lower == (column.better == "higher")
    return " ▼" if lower else " ▲", "" if not column.judges else "worse" if worse else "better"


def legend(results: Figures, intervals: Intervals = "short") -> Iterator[tuple[str, str]]:
    """The legend of tables of scores with such intervals: lines with their styles."""
    if any(scores.few for _, family, _, scores in results.rows() if family != ALL[0] and not results.of_texts):
        yield "* fewer than 30 contexts: says little.", "warning"
    if any(column.share for column in results.columns) or results.corpus_metrics:
        yield "×100: shares in percent; files have them from 0 to 1.", "faint"
    if results.of_texts and any(results.best(group, one) for group in results.groups for one in results.columns):
        yield "★ the best system, where higher is better, or several that are equal.", "faint"
    if any(column.better == "lower" for column in results.columns):
        yield "↓: lower is better.", "faint"
    if results.comparisons:
        differs = "higher or lower" if results.of_texts else "better or worse"
        over = "all pairs of systems and data sets of each column" if results.of_texts else "the classes of each metric"
        yield (
            f"▲ ▼ {differs} than {results.first}, significantly: p < {SIGNIFICANT}, paired randomisation test, "
            f"corrected by Holm's method over {over}.",
            "faint",
        )
    if any(system.is_oracle for system in results.systems.values()):
        yield "† saw what the authors wrote: an upper bound, not a system; never the best, and not tested.", "faint"
    if results.targets:
        yield "target: what the authors wrote, measured in the same way.", "faint"
    if not intervals:
        yield "The terminal is too narrow for intervals: widen it, or redirect the output.", "warning"
    elif results.columns and results.alike:
        of_items = "tasks" if results.of_texts else "contexts"
        known = results.set["citing_paper_known" if results.of_texts else "citing_papers_known"]
        over = "citing papers" if known else f"{of_items}: citing papers are not known"
        shown = "low–high" if intervals == "long" else "[low high]"
        yield f"{shown}: 95 % of {results.resamples:,} bootstrap samples over {over}.", "faint"


def robustness_table(results: Figures) -> Table:
    """How even every system is over the classes."""
    table = Table(
        [*left("system", "metric", "worst class", "best class"), *right("spread", "drop", format=".3f", wrap=True)]
    )
    for name, system in results.systems.items():
        for line in system.robustness:
            worst = f"{line.worst_family}: {line.worst_class} {line.worst:.3f}"
            best = f"{line.best_family}: {line.best_class} {line.best:.3f}"
            table.rows.append([name_cell(results, name), line.metric, worst, best, line.spread, line.drop])
    return table


def outcome_names(results: Figures) -> dict[str, str]:
    """The heading of each outcome of a cited paper."""
    return {
        "found": f"first {min(FOUND_UNTIL, results.k)}",
        "ranked badly": f"{FOUND_UNTIL + 1} to {results.k}",
        "not retrieved": "not retrieved",
        "newer than the citing paper": "newer",
        "not in the index": "not in index",
    }


def outcomes_table(results: Figures) -> Table:
    """The outcomes of the cited papers, by system."""
    systems = results.systems.values()
    names = {key: name for key, name in outcome_names(results).items() if any(one.outcomes.get(key) for one in systems)}
    table = Table([*left("system", style="strong", least=14), *right(*names.values())])
    for name, system in results.systems.items():
        whole = sum(system.outcomes.values()) or 1
        cells = [Cell(n, ((f"{n:,} ({n / whole:.0%})", ""),)) for n in map(system.outcomes.__getitem__, names)]
        table.rows.append([name_cell(results, name), *cells])
    return table


def cost_table(results: Figures) -> Table:
    """The cost of every system's answers."""
    headings = ("wall", "CPU", "queries/s", "latency", "95 %", "peak memory", "index", "GPU")
    table = Table([*left("system", style="strong", least=14), *right(*headings)])
    for name, system in results.systems.items():
        cost = system.cost
        cells: list[Any] = [None] * len(headings)
        if cost is not None:
            use = "" if cost.gpu_use_percent is None else f", {cost.gpu_use_percent:.0f} %"
            cells = [
                f"{cost.wall_seconds:.2f} s",
                f"{cost.cpu_seconds:.2f} s",
                f"{cost.queries_per_second:,.0f}",
                *(None if ms is None else f"{ms:.1f} ms" for ms in (cost.latency_median_ms, cost.latency_p95_ms)),
                "unknown" if cost.peak_memory_bytes is None else _size(cost.peak_memory_bytes),
                _size(cost.index_bytes),
                "none" if cost.gpu_memory_bytes is None else _size(cost.gpu_memory_bytes) + use,
            ]
        table.rows.append([name_cell(results, name), *cells])
    return table


def reliability_table(results: Figures) -> Table:
    """How well the stated confidence of every system fits, event by event."""
    numbers = right("mean stated", "right", "ECE", "Brier", format=".3f")
    table = Table([*left("system", style="strong", least=14), *left("event"), *right("n", format=","), *numbers])
    for name, system in results.systems.items():
        for event, one in system.reliability.items():
            cells = [one.n, one.stated, one.right, one.ece, one.brier]
            table.rows.append([name_cell(results, name), EVENTS[event], *cells])
    return table


def comparisons_table(results: Figures, first: str, second: str) -> Table:
    """How two systems differ, column by column and group by group."""
    several = len(results.groups) > 1
    heading = ["data set" if results.of_texts else "class"] if several else []
    table = Table([*left(*heading, "metric"), *right("n", format=","), *right(f"{first} less {second}"),
                   *right("p", "p (Holm)", format=".4f")])  # fmt: skip
    columns = {column.name: column for column in results.columns}
    for one in results.comparisons:
        if (one.first, one.second) == (first, second):
            column = columns[one.metric]
            better = "better" if (one.difference > 0) == (column.better == "higher") else "worse"
            style = (better if column.judges else "strong") if one.p_holm < SIGNIFICANT else ""
            label = one.label if one.family in (*ALL, DATASET) else f"{one.family}: {one.label}"
            shown = "+" * (one.difference > 0) + column.text(one.difference)
            difference = Cell(one.difference, ((shown, style),))
            table.rows.append([*([label] if several else []), column.title, one.n, difference, one.p, one.p_holm])
    return table


def discourse_table(results: Figures, metric: str, *, narrow: bool = False, missing: bool = False) -> Table:
    """Shares of labels over the sentences of all texts, and their divergence from those of the targets.

    A narrow table cuts labels short; `missing` adds the labels of the targets that a system never wrote.
    """
    labels = results.settings[metric]["labels"]
    several = len(results.groups) > 1
    headings = [label[:_BEGINNING] if narrow else f"{label} ×100" for label in labels]
    table = Table([*left(*(["data set"] if several else []), "system"), *right(*headings, "KL")])
    if missing:
        table = Table([*table.columns, *left("never written")])
    for _, group in results.groups:
        found = {name: system.summaries[metric][group] for name, system in results.systems.items()}
        rows = [(name_cell(results, name), summary["system"], summary) for name, summary in found.items()]
        if targets := next(iter(found.values()))["targets"]:
            rows.append((_TARGET, targets, {}))
        for place, (name, shares, summary) in enumerate(rows):
            divergence = summary.get("kl_divergence", "")
            kl = f"{divergence:.3f}" if isinstance(divergence, float) else divergence
            cells = [f"{100 * shares.get(label, 0):.1f}" for label in labels]
            never = [", ".join(summary.get("missing", ()))] if missing else []
            table.rows.append([*([group if place == 0 else ""] if several else []), name, *cells, kl, *never])
    return table


def summary_table(results: Figures, metric: str) -> Table:
    """The `values` of a corpus metric, by system and data set, as shares × 100."""
    several = len(results.groups) > 1
    found = {
        (group, name): system.summaries[metric][group]["values"]
        for _, group in results.groups
        for name, system in results.systems.items()
    }
    names = list(dict.fromkeys(name for values in found.values() for name in values))
    table = Table([*left(*(["data set"] if several else []), "system"), *right(*(f"{name} ×100" for name in names))])
    for (group, name), values in found.items():
        cells = [Cell(value, ((f"{100 * value:.2f}", ""),)) if (value := values.get(one)) is not None else None
                 for one in names]  # fmt: skip
        first = [group if name == next(iter(results.systems)) else ""] if several else []
        table.rows.append([*first, name_cell(results, name), *cells])
    return table


def csv_rows(results: Figures) -> Iterator[list[Any]]:
    """results.csv: a heading, then one row for each system and class."""
    columns = [column.name + end for column in results.columns for end in ("", "_low", "_high")]
    yield ["system", "family", "class", "n", "few", *columns]
    for system, family, label, scores in results.rows():
        means = [(mean.value, *(mean.ci or (None, None))) for mean in scores.means.values()]
        yield [system, family, label, scores.n, scores.few, *(value for of_mean in means for value in of_mean)]


def items_table(results: Figures) -> Table:
    """scores.csv: one row for each system and task; empty cells where a value is not defined."""
    items = results.items
    table = Table([*left("system", "dataset", "id", "citing"), *right(*items.columns)])
    tasks = list(zip(items.labels, items.ids, items.citing.tolist(), strict=True))
    for system, scores in items.scores.items():
        for (labels, task_id, citing), row in zip(tasks, scores.tolist(), strict=True):
            values = [None if math.isnan(value) else value for value in row]
            table.rows.append([system, labels.get(DATASET, ""), task_id, citing, *values])
    return table


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in one line."""
    return " · ".join(f"{name}: {said(value)}" for name, value in settings.items())


def preset_text(results: Figures) -> str:
    """The preset of the metrics with its source and what was used, in one line; empty if there is none."""
    if not (preset := results.preset):
        return ""
    return f"preset {preset['name']} ({preset['source']})  {settings_text(preset['settings'])}"


def said(value: Any) -> str:
    """The value of a setting in words."""
    if value is None or isinstance(value, bool):
        return "none" if value is None else "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {said(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def rules_text(results: Figures) -> Iterator[tuple[str, str]]:
    """What was left out of ranked lists, and how much: lines with their styles."""
    rules, of_set = results.rules, results.set
    lines = [
        _about_citing(rules["exclude_citing"], of_set),
        _about_years(rules["as_of_year"], of_set),
        f"first {results.k} hits count",
    ]
    overlap = of_set.get("training_overlap", {"contexts": 0})
    if overlap["contexts"]:
        left_out = "left out" if overlap["left_out"] else "NOT left out"
        lines.append(f"{counted(overlap['contexts'], 'context')} from training {left_out}")
    yield f"rules: {'; '.join(lines)}", "faint"
    if of_set["outside"]:
        outcome = "counted as zero" if rules["missing"] == "zero" else "left out"
        yield f"No cited paper is in the index for {counted(of_set['outside'], 'context')}: {outcome} (--missing).", ""
    for name, system in results.systems.items():
        if system.empty:
            yield f"{name} found nothing for {counted(system.empty, 'context')}, which counts as zero.", ""
        if any(system.removed.values()):
            yield (
                f"{name} broke the rules: {system.removed['citing_paper']:,} lines with the citing paper and "
                f"{system.removed['newer']:,} with newer papers were removed before scoring.",
                "warning",
            )


def _about_citing(exclude_citing: bool, of_set: Mapping[str, Any]) -> str:
    of = of_set["contexts"]
    known = f"known for {of - of_set['without_citing_paper']:,} of {counted(of, 'context')}"
    return f"citing paper {'' if exclude_citing else 'NOT '}left out; citing paper {known}"


def _about_years(as_of_year: bool, of_set: Mapping[str, Any]) -> str:
    unknown = of_set["without_citing_year"]
    if not as_of_year or not unknown:
        return f"newer papers {'' if as_of_year else 'NOT '}left out"
    if unknown == of_set["contexts"]:
        return "newer papers left out (but no citing year is known)"
    return f"newer papers left out (citing year unknown for {counted(unknown, 'context')})"


def _size(number: int) -> str:
    return f"{number / 1e6:,.0f} MB" if number >= 1e6 else f"{number / 1e3:,.0f} kB"
