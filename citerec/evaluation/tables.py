"""Tables as data, shown in a terminal, as CSV, HTML or LaTeX; and the tables of results."""

import csv
import io
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich.text import Text

from citerec.diagnostics.families import FEW
from citerec.evaluation.metrics import FOUND_UNTIL
from citerec.evaluation.statistics import ALL, SIGNIFICANT, Group, Mean
from citerec.files.text import counted
from citerec.records import EVENTS
from citerec.write.metrics import Column as MetricColumn

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table as RichTable

    from citerec.evaluation.results import Results, SystemSummary

# Styles by meaning, for the terminal. HTML has a class of each name.
_STYLES = {
    "faint": "not bold dim",
    "strong": "bold",
    "better": "green",
    "worse": "red",
    "warning": "yellow",
    "name": "cyan",
    "oracle": "not bold italic",
    "interval": "not bold dim",
}
_BEGINNINGS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
_LONGEST_CELL = 32_000  # spreadsheets silently cut cells after 32,767 characters
_WIDEST = 1000
_DIM = "not bold dim"

Span = tuple[str, str]
"""A piece of text and its style: "", one of `faint`, `strong`, `better`, `worse`, `warning`, `name`, `oracle`,
`interval`, or `system-3`, which HTML shows as a dot in the colour of that number."""


class Cell(NamedTuple):
    """A cell: its value, for CSV, and its spans, as shown to people."""

    value: Any
    spans: tuple[Span, ...]


class Column(NamedTuple):
    """A column."""

    heading: str
    align: Literal["left", "right"] = "left"  # numbers are right-aligned
    format: str = ""  # of numbers, as in Python's format strings
    style: str = ""  # of all its cells
    wrap: bool | None = None  # whether long cells are wrapped in a terminal; by default those that are left-aligned


@dataclass(frozen=True, slots=True)
class Table:
    """A table. A row holds cells, or plain values, which their column formats; None is shown as a dash.

    Unless it is `headed`, the names of its columns are not shown.
    """

    columns: Sequence[Column]
    rows: list[Any] = field(default_factory=list)
    title: str = ""
    footnotes: Sequence[str] = ()
    headed: bool = True


def left(*headings: str, **options: Any) -> list[Column]:
    """Columns of texts."""
    return [Column(heading, **options) for heading in headings]


def right(*headings: str, **options: Any) -> list[Column]:
    """Columns of numbers."""
    return [Column(heading, "right", **options) for heading in headings]


def marked(text: str, style: str) -> Cell:
    """A cell in a style."""
    return Cell(text, ((text, style),))


def spans_of(cell: Any, column: Column) -> tuple[Span, ...]:
    """The spans of a cell, as shown to people."""
    if isinstance(cell, Cell):
        return cell.spans
    if cell is None:
        return (("–", ""),)
    return ((cell if isinstance(cell, str) else format(cell, column.format), ""),)


def table_of(records: Sequence[Mapping[str, Any]], decimals: str = ".3f") -> Table:
    """A table of records with the same keys: texts are on the left, numbers on the right."""
    columns = []
    for name in records[0]:
        value = next((record[name] for record in records if record[name] is not None), 0)
        columns += (
            left(name) if isinstance(value, str) else right(name, format="," if isinstance(value, int) else decimals)
        )
    return Table(columns, [list(record.values()) for record in records])


def to_rich(table: Table, *, narrow: bool = False) -> "RichTable":
    """A table for a terminal. Its texts are not read as markup.

    A `narrow` one has a line for each word of a heading, and intervals below their figures.
    """
    from rich.cells import cell_len
    from rich.table import Table as RichTable

    grid = RichTable(box=None, padding=(0, 1), pad_edge=False, header_style="dim", show_header=table.headed)
    for column in table.columns:
        wraps = column.align == "left" if column.wrap is None else column.wrap
        style = _STYLES.get(column.style, "")
        heading = re.sub(" (?=[A-Za-z])", "\n", column.heading) if narrow else column.heading
        grid.add_column(Text(heading), justify=column.align, style=style, no_wrap=not wraps, overflow="fold")
    for row in table.rows:
        of_cells = (spans_of(cell, column) for cell, column in zip(row, table.columns, strict=True))
        grid.add_row(*(Text.assemble(*(_part(span, narrow=narrow) for span in spans)) for spans in of_cells))
    for one in grid.columns:
        if one.no_wrap:  # or rich would cut what does not fit
            lines = [line for text in (one.header, *one.cells) for line in str(text).split("\n")]
            one.min_width = max(map(cell_len, lines))
    return grid


def _part(span: Span, *, narrow: bool) -> tuple[str, str]:
    text, style = span
    return f"\n{text.strip()}" if narrow and style == "interval" else text, _STYLES.get(style, "")


def show(console: "Console", table: Table, *, whole: bool = False) -> None:
    """Prints a table.

    A `whole` one is not cut: in a terminal that has too few columns it is made narrow, and then the terminal wraps it.
    """
    if table.title:
        console.print(Text(table.title, "bold"))
    grid = to_rich(table)
    if whole:
        widest = console.options.update(max_width=_WIDEST)
        least = width = console.measure(grid, options=widest).maximum
        if console.is_terminal and width > console.width:
            grid = to_rich(table, narrow=True)
            least = console.measure(grid, options=widest).minimum
        console.width = max(console.width, least)
    console.print(grid)
    for note in table.footnotes:
        console.print(note, style="dim", markup=False)


def to_csv(table: Table, *, spreadsheet: bool = False) -> str:
    """A table as CSV: unformatted values, empty for None.

    Spreadsheet programs run texts that look like formulas: such a text gets an apostrophe before it. They also cut long
    texts silently: `spreadsheet` cuts them with a mark.
    """
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\r\n" if spreadsheet else "\n")
    for row in ([column.heading for column in table.columns], *table.rows):
        writer.writerow([_plain(cell, cut=spreadsheet) for cell in row])
    return written.getvalue()


def _plain(cell: Any, *, cut: bool) -> Any:
    value = cell.value if isinstance(cell, Cell) else cell
    if not isinstance(value, str):
        return value
    text = f"{value[:_LONGEST_CELL]} […]" if cut and len(value) > _LONGEST_CELL else value
    seems_formula = text.lstrip("'").startswith(_BEGINNINGS_OF_FORMULAS)
    return f"'{text}" if seems_formula else text


def to_latex(table: Table) -> str:
    """A table as a `tabular` of LaTeX with the rules of booktabs.

    What has ★ is bold, intervals are small, † stands for ▲ and ▼, and * for †.
    """
    lines = [rf"\begin{{tabular}}{{{''.join(column.align[0] for column in table.columns)}}}", r"\toprule"]
    if table.headed:
        lines += [" & ".join(_latex([(column.heading, "")]) for column in table.columns) + r" \\", r"\midrule"]
    for row in table.rows:
        cells = (spans_of(cell, column) for cell, column in zip(row, table.columns, strict=True))
        lines.append(" & ".join(map(_latex, cells)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex(spans: Sequence[Span]) -> str:
    from pylatexenc.latexencode import unicode_to_latex

    marks = "".join(text[:1] for text, _ in spans)
    parts = []
    for text, style in spans:
        words = re.sub("[★▲▼]", "", text)
        latex = unicode_to_latex(words, unknown_char_policy="keep", unknown_char_warning=False)
        if written := latex.replace(r"{\textdagger}", r"$^{*}$").strip():
            is_best = "★" in marks and style != "interval"
            parts.append(
                rf"\textbf{{{written}}}" if is_best else rf"{{\small {written}}}" * (style == "interval") or written
            )
    return " ".join(parts) + r"$^{\dagger}$" * ("▲" in marks or "▼" in marks)


SYSTEM_COLOURS = ("#4a7fe0", "#d9722c", "#2b9c69", "#b05fca", "#d94f70", "#8f8a1c", "#1a96a8", "#a3714a")
"""Colours of systems, which are legible in both modes; further systems reuse them."""


class Block(NamedTuple):
    """The content of one table and one chart: the classes of a family, or the values of a metric.

    `about` is what the family holds constant and how many contexts have no class, or the settings of the metric; groups
    are rows.
    """

    name: str
    title: str
    about: str
    groups: Sequence[Group]
    columns: Sequence[MetricColumn]


def blocks(results: "Results") -> list[Block]:
    """For ranked lists one for each family, with all metrics; for texts one for each metric, with all data sets."""
    if results.of_texts:
        by_metric = {name: [one for one in results.columns if one.metric == name] for name in results.metrics}
        settings = results.record.settings
        return [Block(name, name, settings_text(settings[name]), results.groups, by_metric[name]) for name in by_metric]
    family_blocks = []
    for name, info in results.families.items():
        about = [f"held constant: {'; '.join(info.conditions)}"] if info.conditions else []
        if n := results.without_class(name):
            about.append(f"{counted(n, 'context')} {'has' if n == 1 else 'have'} no class")
        groups = [(name, label) for label in info.classes]
        family_blocks.append(Block(name, info.title, "; ".join(about), groups, results.columns))
    return family_blocks


def title_of(results: "Results") -> str:
    """A short title."""
    if results.of_texts:
        return f"{counted(len(results.items), 'task')}, {counted(len(results.systems), 'system')}"
    return f"{results.record.set.name}, {counted(len(results.items), 'context')}"


def overall_table(results: "Results") -> Table:
    """Every system over all items, by all columns."""
    return _scores_table(results, [ALL], results.columns, "")


def block_table(results: "Results", block: Block) -> Table:
    """Every system on every group of a block."""
    heading = "class" if not results.of_texts else "data set" if len(block.groups) > 1 else ""
    return _scores_table(results, block.groups, block.columns, heading)


def _scores_table(results: "Results", groups: Sequence[Group], columns: Sequence[MetricColumn], heading: str) -> Table:
    """Every system on some groups, by some columns; a `heading` names the column of the groups."""
    names = [heading] * bool(heading) + ["system"] * (not heading or results.of_texts or len(results.systems) > 1)
    numbers = right("n", *(column.title for column in columns))
    table = Table([*left(names[0], style="strong", wrap=False), *left(*names[1:]), *numbers])
    systems = dict(results.systems)
    if results.targets and not any(column.better for column in columns):
        systems[""] = results.targets
    for group in groups:
        for place, (name, system) in enumerate(systems.items()):
            scores = system.scores(group)
            n = max(scores.means[column.name].n for column in columns)
            few = scores.few and not results.of_texts and group != ALL
            first = {heading: "" if place else group[1], "system": name_cell(results, name)}
            cells = [_score(results, name, group, column, scores.means[column.name]) for column in columns]
            table.rows.append([*(first[one] for one in names), marked(f"{'* ' * few}{n:,}", "warning" * few), *cells])
    return table


def name_cell(results: "Results", name: str) -> Cell:
    """The name of a system, with its colour; † marks an upper bound. Without a name, the targets."""
    if not name:
        return marked("target", "oracle")
    number = list(results.systems).index(name) % len(SYSTEM_COLOURS)
    shown = (f"{name} †", "oracle") if results.systems[name].is_oracle else (name, "")
    return Cell(name, (("", f"system-{number}"), shown))


def _score(results: "Results", system: str, group: Group, column: MetricColumn, mean: Mean) -> Cell:
    """A mean with its interval, a star if it is the best, and a mark if it differs from that of the first system.

    The mark has no colour if the column does not judge.
    """
    spans = [("★ " * (system in results.best(group, column)), "warning")]
    if comparison := results.against_first.get((system, *group, column.name)):
        lower = comparison.difference > 0
        style = "worse" if lower == (column.better == "higher") else "better"
        spans.append(("▼ " if lower else "▲ ", style * bool(column.better)))
    spans.append((column.text(mean.value), ""))
    if mean.ci is not None:
        spans.append((f" [{column.bound(mean.ci[0])} {column.bound(mean.ci[1])}]", "interval"))
    return Cell(mean.value, tuple(spans))


def legend(results: "Results") -> list[str]:
    """The lines that explain tables of scores."""
    texts, systems = results.of_texts, results.systems.values()
    items, classes = ("tasks", "data sets") if texts else ("contexts", "classes")
    citing_known, papers = results.record.set.citing_known, f"{results.citing_papers:,} citing papers"
    lines = {
        "* fewer than 30 contexts: says little.": not texts
        and any(system.scores(group).few for system in systems for group in results.groups[1:]),
        "×100: shares in percent; files have them from 0 to 1.": results.corpus_metrics
        or any(column.share for column in results.columns),
        "↓: lower is better.": any(column.better == "lower" for column in results.columns),
        "★ the best system, or several that are equal.": len(results.systems) > 1,
        f"▲ ▼ higher or lower than {results.first}, significantly: p < {SIGNIFICANT}, paired randomisation test, "
        f"corrected by Holm's method over all pairs of systems, or all pairs and {classes}.": results.comparisons,
        "† saw what the authors wrote: an upper bound, not a system; never the best, and not tested.": any(
            system.is_oracle for system in systems
        ),
        "target: what the authors wrote, measured in the same way.": results.targets,
        f"[low high]: 95 % of {results.record.resamples:,} bootstrap samples over "
        f"{papers if citing_known else f'{items}: citing papers are not known'}.": results.columns,
        f"Only {papers}: intervals and tests say little.": citing_known and results.citing_papers < FEW,
    }
    return [line for line, applies in lines.items() if applies]


def frame_table(frame: "pd.DataFrame", decimals: int = 3) -> Table:
    """A table of the rows of a frame: numbers with some decimals, a dash where there is no value."""
    formats = {"i": ",", "f": f",.{decimals}f"}
    columns = [
        Column(name, "right", formats[kind.kind]) if kind.kind in formats else Column(name)
        for name, kind in frame.dtypes.items()
    ]
    return Table(columns, frame.astype(object).where(frame.notna(), None).to_numpy().tolist())


def _by_system(
    results: "Results", columns: Sequence[Column], rows: "Callable[[SystemSummary], Iterable[Sequence[Any]]]"
) -> Table:
    """Rows for each system, after its name."""
    table_rows = [[name_cell(results, name), *row] for name, one in results.systems.items() for row in rows(one)]
    return Table([*left("system", style="strong", wrap=False), *columns], table_rows)


def robustness_table(results: "Results") -> Table:
    """How even every system is over the classes."""

    def rows(system: "SystemSummary") -> Iterator[list[Any]]:
        for one in system.robustness:
            worst = f"{one.worst_family}: {one.worst_class} {one.worst:.3f}"
            best = f"{one.best_family}: {one.best_class} {one.best:.3f}"
            yield [one.metric, worst, best, one.spread, one.drop]

    numbers = right("spread", "drop", format=".3f")
    return _by_system(results, [*left("metric", "worst class", "best class"), *numbers], rows)


def outcomes_table(results: "Results") -> Table:
    """The outcomes of the cited papers, by system."""
    k = results.record.k
    headings = (f"first {min(FOUND_UNTIL, k)}", f"{FOUND_UNTIL + 1} to {k}", "not retrieved", "newer", "not in index")

    def rows(system: "SystemSummary") -> Iterator[list[Cell]]:
        if whole := sum(system.outcomes.values()):
            yield [Cell(n, ((f"{n:,} ({n / whole:.0%})", ""),)) for n in system.outcomes.values()]

    return _by_system(results, right(*headings), rows)


def cost_table(results: "Results") -> Table:
    """The cost of every system's answers."""
    headings = ("wall", "CPU", "queries/s", "latency", "95 %", "peak memory", "index", "on GPUs")

    def rows(system: "SystemSummary") -> Iterator[list[Any]]:
        if cost := system.cost:
            times = [f"{seconds:.2f} s" for seconds in (cost.wall_seconds, cost.cpu_seconds)]
            latencies = [None if ms is None else f"{ms:.1f} ms" for ms in (cost.latency_median_ms, cost.latency_p95_ms)]
            sizes = (cost.peak_memory_bytes, cost.index_bytes, cost.gpu_memory_bytes)
            megabytes = [size and f"{size / 1e6:,.1f} MB" for size in sizes]
            yield [*times, f"{cost.queries_per_second:,.0f}", *latencies, *megabytes]

    return _by_system(results, right(*headings), rows)


def reliability_table(results: "Results") -> Table:
    """How well the stated confidence of every system fits, event by event."""
    numbers = right("mean stated", "right", "ECE", "Brier", format=".3f")
    columns = [*left("event"), *right("n", format=","), *numbers]
    return _by_system(results, columns, lambda one: ([EVENTS[event], *of] for event, of in one.reliability.items()))


def writers_table(results: "Results") -> Table:
    """The files and the settings of the systems that write."""

    def rows(system: "SystemSummary") -> Iterator[list[Any]]:
        settings = system.settings
        words = settings_text(settings, 200) if isinstance(settings, dict) else f"{settings} from text to text"
        yield [", ".join(map(str, system.files)), words if settings else "not known"]

    return _by_system(results, left("files", "settings of the writer"), rows)


def comparisons_table(results: "Results") -> Table:
    """Which systems differ significantly, by how much, and on which classes."""
    frame = results.comparisons_to_frame()
    return frame_table(frame[frame["p_holm"] < SIGNIFICANT], decimals=4)


def corpus_table(results: "Results", metric: str) -> Table:
    """The values of a corpus metric as shares × 100, by data set and system; of labels also their divergence."""
    import pandas as pd

    labels = results.record.settings[metric].get("labels")
    several, rows = len(results.groups) > 1, []
    for _, group in results.groups:
        summaries = {name: system.summaries[metric][group] for name, system in results.systems.items()}
        if labels and (targets := next(iter(summaries.values()))["targets"]):
            summaries["target"] = {"system": targets}
        for name, summary in summaries.items():
            shares = {one: summary["system"].get(one, 0) for one in labels} if labels else summary["values"]
            row = {f"{one} ×100": 100 * share for one, share in shares.items()}
            if labels:
                kl = summary.get("kl_divergence", "")
                row["KL"] = f"{kl:.3f}" if isinstance(kl, float) else kl
            rows.append({**({"data set": group} if several else {}), "system": name, **row})
    return frame_table(pd.DataFrame(rows), decimals=2)


def settings_table(results: "Results") -> Table:
    """The settings of the metrics."""
    rows = [[name, settings_text(one)] for name, one in results.record.settings.items()]
    return Table(left("metric", "settings"), rows)


def settings_text(settings: Mapping[str, Any], longest: int = 10**9) -> str:
    """Settings in one line, each cut if it is too long."""
    return " · ".join(f"{name}: {cut(said(value), longest)}" for name, value in settings.items())


def preset_text(results: "Results") -> str:
    """The preset of the metrics with its source and what was used, in one line; empty if there is none."""
    preset = results.record.preset
    return "preset {name} ({source})  ".format(**preset) + settings_text(preset["settings"]) if preset else ""


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


def rules_text(results: "Results") -> Iterator[str]:
    """What was left out of ranked lists, and how much, in lines."""
    rules, of_set = results.record.rules, results.record.set
    contexts, unknown = counted(of_set.contexts, "context"), of_set.without_citing_year
    coverage = f"known for {of_set.contexts - of_set.without_citing_paper:,} of {contexts}"
    yield (
        f"rules: citing paper {'' if rules['exclude_citing'] else 'NOT '}left out; citing paper {coverage}; "
        f"newer papers {'' if rules['as_of_year'] else 'NOT '}left out (citing year unknown for {unknown:,}); "
        f"first {results.record.k} hits count"
    )
    if (overlap := of_set.training_overlap) and overlap.contexts:
        yield f"{counted(overlap.contexts, 'context')} from training {'' if overlap.left_out else 'NOT '}left out"
    if of_set.outside:
        outcome = "counted as zero" if rules["missing"] == "zero" else "left out"
        yield f"No cited paper is in the index for {counted(of_set.outside, 'context')}: {outcome}."
    for name, system in results.systems.items():
        if system.empty:
            yield f"{name} found nothing for {counted(system.empty, 'context')}, which counts as zero."
        if any(system.removed.values()):
            yield (
                f"{name} broke the rules: {system.removed['citing_paper']:,} lines with the citing paper and "
                f"{system.removed['newer']:,} with newer papers were removed before scoring."
            )


class OverSeeds(NamedTuple):
    """A value over seeds.

    Attributes:
        mean: The mean of the seeds' values; None if none has one.
        sd: Standard deviation of the sample (divided by n - 1); None for fewer than two seeds.
        n: Number of seeds that have a value.
    """

    mean: float | None
    sd: float | None
    n: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "OverSeeds":
        """Of the values of the seeds."""
        numbers = [value for value in values if value is not None]
        sd = statistics.stdev(numbers) if len(numbers) > 1 else None
        return cls(statistics.fmean(numbers) if numbers else None, sd, len(numbers))

    def cell(self, column: MetricColumn) -> Cell:
        """The mean and the standard deviation as tables show them."""
        around = "" if self.sd is None else f" ± {column.text(self.sd)}"
        return Cell(self.mean, ((column.text(self.mean) + around, ""),))


def seed_name(system: str, seed: int) -> str:
    """The name of a system that was trained with a seed: also the end of the path of its folder."""
    return f"{system}/seed-{seed}"


def over_seeds(results: "Results") -> dict[str, dict[str, dict[str, OverSeeds]]]:
    """Values over seeds by system, data set ("overall" first) and column; empty if no system names a seed."""
    by_seed: dict[str, list[str]] = {}
    for name in results.systems:
        if match := re.fullmatch(r"(.+)/seed-\d+", name):
            by_seed.setdefault(match[1], []).append(name)
    return {
        system: {
            group[1]: {
                one.name: OverSeeds.of(results.mean(name, group, one).value for name in names)
                for one in results.columns
            }
            for group in results.groups
        }
        for system, names in by_seed.items()
    }


def seeds_table(results: "Results") -> Table:
    """A row for each data set and system with seeds: means over the seeds ± standard deviations."""
    columns = [column for column in results.columns if column.better] or results.columns
    rows = [
        [label, system, *(of_group[column.name].cell(column) for column in columns)]
        for system, by_group in over_seeds(results).items()
        for label, of_group in by_group.items()
    ]
    headings = right(*(column.title for column in columns))
    return Table([*left("data set", "system"), *headings], rows, "Over seeds: mean ± standard deviation")


def headline(name: str, about: str, style: str = "not bold") -> Text:
    """A name, and what there is to say about it in the same line."""
    return Text(name, "bold").append(f"  {about}" if about else "", style)


def results_parts(results: "Results") -> Iterator[Any]:
    """Results for people: scores by family or metric, and for ranked lists robustness, outcomes, cost, rules."""
    record = results.record
    if record.index:
        against = f"against {record.index.papers:,} papers ({record.index.path})"
        yield headline(record.set.name, f"{counted(len(results.items), 'context')}, {against}")
        yield overall_table(results)
    else:
        yield "\n".join(filter(None, [title_of(results), preset_text(results)]))
    for block in blocks(results):
        yield headline("\n" + block.title + f" ({block.name})" * (block.name != block.title), block.about, _DIM)
        is_defined = results.is_defined(block.columns)
        yield block_table(results, block) if is_defined else Text("not defined for any of these texts", "dim")
    for metric in results.corpus_metrics:
        yield headline(f"\n{metric}", settings_text(record.settings[metric]), _DIM)
        yield corpus_table(results, metric)
    for title, table in (
        ("", seeds_table),
        ("Robustness", robustness_table),
        ("Outcomes of the cited papers", outcomes_table),
        ("Confidence", reliability_table),
        ("Cost", cost_table),
    ):
        if (content := table(results)).rows and (title == "" or not results.of_texts):
            yield headline(f"\n{title}", "")
            yield content
    yield ""
    for line in (*legend(results), *(() if results.of_texts else rules_text(results))):
        yield Text(line, "dim")
