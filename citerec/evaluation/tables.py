"""Results as tables for the terminal, the page and LaTeX."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from citerec.evaluation.rank import FOUND_UNTIL, OUTCOMES
from citerec.evaluation.rendering import Cell, Span, Table, left, marked, right
from citerec.evaluation.rendering import Column as TableColumn
from citerec.evaluation.statistics import ALL, DATASET, SIGNIFICANT, Comparison, Group, Mean
from citerec.files.text import counted
from citerec.records import EVENTS
from citerec.write.metrics.base import Column

if TYPE_CHECKING:
    from citerec.evaluation.results import Results
    from citerec.evaluation.summary import SystemSummary

SYSTEM_COLOURS = 8
"""How many systems the page has colours for; further systems reuse them."""

_INTERVAL_WIDTH = len(" [.33 .41]")
_BEGINNING = 6  # letters of a label, where a table must be narrow
_WIDE: dict[str, Any] = {"least": 14, "style": "strong"}
_TARGET = marked("target", "oracle")

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


def blocks(results: "Results") -> list[Block]:
    """For ranked lists one for each family, with all metrics; for texts one for each metric, with all data sets."""
    if results.of_texts:
        by_metric = {name: [one for one in results.columns if one.metric == name] for name in results.metrics}
        settings = results.record.settings
        return [Block(name, name, settings_text(settings[name]), results.groups, by_metric[name]) for name in by_metric]
    found = []
    for name, info in results.families.items():
        about = [f"held constant: {'; '.join(info.conditions)}"] if info.conditions else []
        if n := results.without_class(name):
            about.append(f"{counted(n, 'context')} {'has' if n == 1 else 'have'} no class")
        groups = [(name, label) for label in info.classes]
        found.append(Block(name, info.title, "; ".join(about), groups, results.columns))
    return found


def title_of(results: "Results") -> str:
    """A short title."""
    if results.of_texts:
        return f"{counted(len(results.items), 'task')}, {counted(len(results.systems), 'system')}"
    return f"{results.record.set.name}, {counted(len(results.items), 'context')}"


def overall_table(results: "Results", intervals: Intervals = "short") -> Table:
    """Every system over all items, by all columns."""
    return scores_table(results, [ALL], results.columns, "", intervals)


def block_table(results: "Results", block: Block, intervals: Intervals = "short") -> Table:
    """Every system on every group of a block."""
    heading = "class" if not results.of_texts else "data set" if len(block.groups) > 1 else ""
    return scores_table(results, block.groups, block.columns, heading, intervals)


def scores_table(
    results: "Results", groups: Sequence[Group], columns: Sequence[Column], heading: str, intervals: Intervals = "short"
) -> Table:
    """Every system on some groups, by some columns; a `heading` names the column of the groups."""
    named = results.of_texts or not heading or len(results.systems) > 1
    names = [heading] * bool(heading) + ["system"] * named
    wide = {} if results.of_texts else _WIDE
    table = Table([*left(names[0], **wide), *left(*names[1:]), *right("n", *(column.title for column in columns))])
    systems = dict(results.systems)
    if results.summary.targets and not any(column.judges for column in columns):
        systems[""] = results.summary.targets
    for group in groups:
        for place, (name, system) in enumerate(systems.items()):
            scores = system.scores(group)
            n = max(scores.means[column.name].n for column in columns)
            few = ((" *"[scores.few], "warning"),) * (not results.of_texts and group != ALL)
            # Ranked lists have one n for all systems.
            shown = place == 0 or not heading or results.of_texts
            first = [group[1] if place == 0 else ""] * bool(heading) + [name_cell(results, name)] * named
            cells = [_score(results, name, group, column, scores.means[column.name], intervals) for column in columns]
            table.rows.append([*first, Cell(n, ((f"{n:,}", ""), *few)) if shown else "", *cells])
    return table


def name_cell(results: "Results", name: str) -> Cell:
    """The name of a system, with its colour; † marks an upper bound. Without a name, the targets."""
    if not name:
        return _TARGET
    number = list(results.systems).index(name) % SYSTEM_COLOURS
    shown = (f"{name} †", "oracle") if results.systems[name].is_oracle else (name, "")
    return Cell(name, (("", f"system-{number}"), shown))


def _score(results: "Results", system: str, group: Group, column: Column, mean: Mean, intervals: Intervals) -> Cell:
    """A mean with its interval, a star if it is the best, and a mark if it differs from that of the first system."""
    is_best = system in results.best(group, column)
    spans: list[Span] = [("★ ", "warning")] * (is_best and results.of_texts)
    spans.append((column.text(mean.value), "best" if is_best else ""))
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


def legend(results: "Results", intervals: Intervals = "short") -> Iterator[tuple[str, str]]:
    """The legend of tables of scores with such intervals: lines with their styles."""
    texts, systems = results.of_texts, results.systems.values()
    if not texts and any(system.scores(group).few for system in systems for group in results.groups[1:]):
        yield "* fewer than 30 contexts: says little.", "warning"
    if any(column.share for column in results.columns) or results.corpus_metrics:
        yield "×100: shares in percent; files have them from 0 to 1.", "faint"
    if texts and any(results.best(group, one) for group in results.groups for one in results.columns):
        yield "★ the best system, where higher is better, or several that are equal.", "faint"
    if any(column.better == "lower" for column in results.columns):
        yield "↓: lower is better.", "faint"
    if results.comparisons:
        differs = "higher or lower" if texts else "better or worse"
        over = "all pairs of systems and data sets of each column" if texts else "the classes of each metric"
        yield (
            f"▲ ▼ {differs} than {results.first}, significantly: p < {SIGNIFICANT}, paired randomisation test, "
            f"corrected by Holm's method over {over}.",
            "faint",
        )
    if any(system.is_oracle for system in systems):
        yield "† saw what the authors wrote: an upper bound, not a system; never the best, and not tested.", "faint"
    if results.summary.targets:
        yield "target: what the authors wrote, measured in the same way.", "faint"
    if not intervals:
        yield "The terminal is too narrow for intervals: widen it, or redirect the output.", "warning"
    elif results.columns:
        unknown = f"{'tasks' if texts else 'contexts'}: citing papers are not known"
        over = "citing papers" if results.record.set.citing_known else unknown
        shown = "low–high" if intervals == "long" else "[low high]"
        yield f"{shown}: 95 % of {results.record.resamples:,} bootstrap samples over {over}.", "faint"


def _by_system(
    results: "Results",
    columns: Sequence[TableColumn],
    rows: "Callable[[SystemSummary], Iterable[Sequence[Any]]]",
    **style: Any,
) -> Table:
    """Rows for each system, after its name."""
    found = [[name_cell(results, name), *row] for name, one in results.systems.items() for row in rows(one)]
    return Table([*left("system", **style), *columns], found)


def robustness_table(results: "Results") -> Table:
    """How even every system is over the classes."""

    def rows(system: "SystemSummary") -> Iterator[list[Any]]:
        for one in system.robustness:
            worst = f"{one.worst_family}: {one.worst_class} {one.worst:.3f}"
            best = f"{one.best_family}: {one.best_class} {one.best:.3f}"
            yield [one.metric, worst, best, one.spread, one.drop]

    numbers = right("spread", "drop", format=".3f", wrap=True)
    return _by_system(results, [*left("metric", "worst class", "best class"), *numbers], rows)


def outcomes_table(results: "Results") -> Table:
    """The outcomes of the cited papers, by system."""
    k, systems = results.record.k, results.systems.values()
    headings = (f"first {min(FOUND_UNTIL, k)}", f"{FOUND_UNTIL + 1} to {k}", "not retrieved", "newer", "not in index")
    names = dict(zip(OUTCOMES, headings, strict=True))
    names = {outcome: name for outcome, name in names.items() if any(one.outcomes.get(outcome) for one in systems)}

    def rows(system: "SystemSummary") -> Iterator[list[Cell]]:
        whole = sum(system.outcomes.values()) or 1
        yield [Cell(n, ((f"{n:,} ({n / whole:.0%})", ""),)) for n in map(system.outcomes.__getitem__, names)]

    return _by_system(results, right(*names.values()), rows, **_WIDE)


def cost_table(results: "Results") -> Table:
    """The cost of every system's answers."""
    headings = ("wall", "CPU", "queries/s", "latency", "95 %", "peak memory", "index", "on GPUs")

    def rows(system: "SystemSummary") -> Iterator[list[Any]]:
        if (cost := system.cost) is None:
            yield [None] * len(headings)
            return
        yield [
            f"{cost.wall_seconds:.2f} s",
            f"{cost.cpu_seconds:.2f} s",
            f"{cost.queries_per_second:,.0f}",
            *(None if ms is None else f"{ms:.1f} ms" for ms in (cost.latency_median_ms, cost.latency_p95_ms)),
            "unknown" if cost.peak_memory_bytes is None else _size(cost.peak_memory_bytes),
            _size(cost.index_bytes),
            "none" if cost.gpu_memory_bytes is None else _size(cost.gpu_memory_bytes),
        ]

    return _by_system(results, right(*headings), rows, **_WIDE)


def reliability_table(results: "Results") -> Table:
    """How well the stated confidence of every system fits, event by event."""

    def rows(system: "SystemSummary") -> Iterator[list[Any]]:
        for event, one in system.reliability.items():
            yield [EVENTS[event], one.n, one.stated, one.right, one.ece, one.brier]

    numbers = right("mean stated", "right", "ECE", "Brier", format=".3f")
    return _by_system(results, [*left("event"), *right("n", format=","), *numbers], rows, **_WIDE)


def writers_table(results: "Results") -> Table:
    """The files and the settings of the systems that write."""

    def rows(system: "SystemSummary") -> Iterator[list[Any]]:
        settings = system.settings
        words = settings_text(settings, 200) if isinstance(settings, dict) else f"{settings} from text to text"
        yield [", ".join(map(str, system.files)), marked(words if settings else "not known", "faint")]

    return _by_system(results, left("files", "settings of the writer"), rows)


def comparisons_table(results: "Results", first: str, second: str) -> Table:
    """How two systems differ, column by column and group by group."""
    several = len(results.groups) > 1
    heading = ["data set" if results.of_texts else "class"] * several
    table = Table([*left(*heading, "metric"), *right("n", format=","), *right(f"{first} less {second}"),
                   *right("p", "p (Holm)", format=".4f")])  # fmt: skip
    columns = {column.name: column for column in results.columns}
    for one in results.comparisons:
        if (one.first, one.second) == (first, second):
            column = columns[one.metric]
            better = "better" if (one.difference > 0) == (column.better == "higher") else "worse"
            style = (better if column.judges else "strong") if one.p_holm < SIGNIFICANT else ""
            label = one.label if one.family in (*ALL, DATASET) else f"{one.family}: {one.label}"
            difference = Cell(one.difference, (("+" * (one.difference > 0) + column.text(one.difference), style),))
            table.rows.append([*[label] * several, column.title, one.n, difference, one.p, one.p_holm])
    return table


def by_group(
    results: "Results", columns: Sequence[TableColumn], rows: Callable[[Group], Iterable[Sequence[Any]]]
) -> Table:
    """Rows for each data set, which are named in the first of them if there are several; for all texts first."""
    several = len(results.groups) > 1
    table = Table([*left(*["data set"] * several), *columns])
    for group in results.groups:
        for place, row in enumerate(rows(group)):
            table.rows.append([*["" if place else group[1]] * several, *row])
    return table


def discourse_table(results: "Results", metric: str, *, narrow: bool = False, missing: bool = False) -> Table:
    """Shares of labels over the sentences of all texts, and their divergence from those of the targets.

    A narrow table cuts labels short; `missing` adds the labels of the targets that a system never wrote.
    """
    labels = results.record.settings[metric]["labels"]

    def rows(group: Group) -> Iterator[list[Any]]:
        found = {name: system.summaries[metric][group[1]] for name, system in results.systems.items()}
        if targets := next(iter(found.values()))["targets"]:
            found[""] = {"system": targets}
        for name, summary in found.items():
            kl = summary.get("kl_divergence", "")
            never = [", ".join(summary.get("missing", ()))] * missing
            shares = [f"{100 * summary['system'].get(label, 0):.1f}" for label in labels]
            yield [name_cell(results, name), *shares, f"{kl:.3f}" if isinstance(kl, float) else kl, *never]

    headings = [label[:_BEGINNING] if narrow else f"{label} ×100" for label in labels]
    return by_group(results, [*left("system"), *right(*headings, "KL"), *left(*["never written"] * missing)], rows)


def summary_table(results: "Results", metric: str) -> Table:
    """The `values` of a corpus metric, by system and data set, as shares × 100."""
    values = {name: system.summaries[metric] for name, system in results.systems.items()}
    names = list(
        dict.fromkeys(one for of_groups in values.values() for found in of_groups.values() for one in found["values"])
    )

    def rows(group: Group) -> Iterator[list[Any]]:
        for name, of_groups in values.items():
            found = [of_groups[group[1]]["values"].get(one) for one in names]
            yield [
                name_cell(results, name),
                *(None if one is None else Cell(one, ((f"{100 * one:.2f}", ""),)) for one in found),
            ]

    return by_group(results, [*left("system"), *right(*(f"{name} ×100" for name in names))], rows)


def settings_table(results: "Results") -> Table:
    """The settings of the metrics."""
    rows = [
        [metric if number == 0 else "", name, said(value)]
        for metric, settings in results.record.settings.items()
        for number, (name, value) in enumerate(settings.items())
    ]
    return Table(left("metric", "setting", "value"), rows)


def settings_text(settings: Mapping[str, Any], longest: int = 10**9) -> str:
    """Settings in one line, each cut if it is too long."""
    return " · ".join(f"{name}: {cut(said(value), longest)}" for name, value in settings.items())


def preset_text(results: "Results") -> str:
    """The preset of the metrics with its source and what was used, in one line; empty if there is none."""
    preset = results.record.preset
    return f"preset {preset.name} ({preset.source})  {settings_text(preset.settings)}" if preset else ""


def said(value: Any) -> str:
    """The value of a setting in words."""
    if value is None or isinstance(value, bool):
        return "none" if value is None else "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {said(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def cut(text: str, longest: int) -> str:
    """A text, cut if it is too long."""
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} more characters)"


def rules_text(results: "Results") -> Iterator[tuple[str, str]]:
    """What was left out of ranked lists, and how much: lines with their styles."""
    rules, of_set = results.record.rules, results.record.set
    contexts, unknown = counted(of_set.contexts, "context"), of_set.without_citing_year
    known = f"known for {of_set.contexts - of_set.without_citing_paper:,} of {contexts}"
    year = f"citing year unknown for {counted(unknown, 'context')}"
    year = "but no citing year is known" if unknown == of_set.contexts else year
    lines = [
        f"citing paper {'' if rules['exclude_citing'] else 'NOT '}left out; citing paper {known}",
        f"newer papers left out{f' ({year})' * bool(unknown)}" if rules["as_of_year"] else "newer papers NOT left out",
        f"first {results.record.k} hits count",
    ]
    overlap = of_set.training_overlap
    if overlap and overlap.contexts:
        left_out = "left out" if overlap.left_out else "NOT left out"
        lines.append(f"{counted(overlap.contexts, 'context')} from training {left_out}")
    yield f"rules: {'; '.join(lines)}", "faint"
    if of_set.outside:
        outcome = "counted as zero" if rules["missing"] == "zero" else "left out"
        yield f"No cited paper is in the index for {counted(of_set.outside, 'context')}: {outcome}.", ""
    for name, system in results.systems.items():
        if system.empty:
            yield f"{name} found nothing for {counted(system.empty, 'context')}, which counts as zero.", ""
        if any(system.removed.values()):
            yield (
                f"{name} broke the rules: {system.removed['citing_paper']:,} lines with the citing paper and "
                f"{system.removed['newer']:,} with newer papers were removed before scoring.",
                "warning",
            )


def _size(number: int) -> str:
    return f"{number / 1e6:,.0f} MB" if number >= 1e6 else f"{number / 1e3:,.0f} kB"
