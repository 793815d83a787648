"""`citerec data`: data sets of citation texts, TLDRs and related work."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import Share, notes, output, with_options

if TYPE_CHECKING:
    from rich.table import Table

    from citerec.datasets.pair_sets import Built, Plan

_PATH = click.Path(path_type=Path)
_max_bad = click.option(
    "--max-bad",
    type=Share(),
    default=0.05,
    show_default=True,
    help="Share of unreadable records above which the work stops.",
)


def _share(name: str, default: float, what: str) -> Callable[[Any], Any]:
    return click.option(name, type=Share(), default=default, show_default=True, help=what)


_of_full_texts = [
    click.option("--index", "index_path", type=_PATH, help="Where abstracts are; the only index by default."),
    click.option("--out", required=True, type=_PATH, help="The folder to make, or to replace."),
    click.option(
        "--split",
        default="pysbd",
        show_default=True,
        metavar="pysbd|spacy|MODEL",
        help="What splits sentences where the source does not tell them.",
    ),
    _share("--validation", 0.05, "Share of the papers in the validation split."),
    _share("--test", 0.05, "Share of the papers in the test split."),
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Deals papers to splits."),
    _max_bad,
    click.option("--workers", type=click.IntRange(1), help="Processes that read; one a processor by default."),
]


@click.group(epilog="Example: citerec data citesum ../shared/data/acm/s2orc --index indexes/acm --out data/citesum")
def data() -> None:
    """Build data sets to train and to measure writers on."""


@data.command(epilog="Example: citerec data citebench multi_xscience/test.json --out lu-test.jsonl")
@click.argument("files", nargs=-1, required=True, type=_PATH)
@click.option("--out", required=True, type=_PATH, help="The file to write, JSON Lines.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["aburaed", "chen", "lu", "xing"]),
    help="What the files are, if not to be recognised.",
)
@click.option(
    "--as-published",
    is_flag=True,
    help="Number and swap as CiteBench's own files have it, to compare with its scores: docs/text-data.md.",
)
@_max_bad
def citebench(files: tuple[Path, ...], out: Path, format_name: str | None, as_published: bool, max_bad: float) -> None:
    """Make one file in CiteBench's format of FILES of its four source data sets.

    These are AbuRa'ed (text pairs), Chen (Delve, S2ORC), Lu (Multi-XScience) and Xing. Citations become
    [0], [1], … in order of first mention. No record is left out but those that cannot be read.
    """
    from citerec.cli.progress import progress_bar
    from citerec.datasets.unify import unify

    with progress_bar() as on_progress:
        unified = unify(files, out, format_name, as_published=as_published, max_bad=max_bad, on_progress=on_progress)
    output().print(f"{out} written. Citation texts, by data set:", markup=False, soft_wrap=True)
    output().print(_table(unified.tasks))
    if unified.quarantine:
        notes().print(f"Records set aside: {unified.bad:,}. See {unified.quarantine}", markup=False)


@data.command(epilog="Example: citerec data citesum ../shared/data/acm/s2orc --index indexes/acm --out data/citesum")
@click.argument("sources", nargs=-1, required=True, type=_PATH)
@with_options(_of_full_texts)
@_share("--rouge-1", 0.5, "Least share of a sentence's words that the cited abstract has.")
@_share("--rouge-2", 0.2, "Least share of its pairs of words.")
@_share("--rouge-l", 0.4, "Least share of its longest common subsequence with the abstract.")
@click.option("--stemming/--no-stemming", default=True, help="Compare stems of words.  [default: on]")
def citesum(
    sources: tuple[Path, ...], rouge_1: float, rouge_2: float, rouge_l: float, stemming: bool, **options: Any
) -> None:
    """Make TLDRs of papers from the sentences that cite them in the full texts of SOURCES.

    Taken are sentences of Related Work sections that cite one paper and say what its abstract says; REF
    stands where they cite. No cited paper is in two splits. What was stopped goes on when the command is given again.
    """
    from citerec.datasets.citesum import Nearness, citesum_plan

    _build(sources, citesum_plan(Nearness(rouge_1, rouge_2, rouge_l, stemming), options.pop("split")), options)


@data.command(
    "related-work",
    epilog="Example: citerec data related-work ../shared/data/acm/s2orc --index indexes/acm --out data/related-work",
)
@click.argument("sources", nargs=-1, required=True, type=_PATH)
@with_options(_of_full_texts)
@click.option("--min-sentences", type=click.IntRange(1), default=3, show_default=True, help="Sentences of a section.")
@click.option(
    "--min-papers", type=click.IntRange(1), default=2, show_default=True, help="Papers of the index that it cites."
)
@_share("--min-linked", 1.0, "Share of its groups of citations with a paper of the index.")
@click.option(
    "--link-titles", is_flag=True, help="Search the index for bib entries without a match, by title, year and author."
)
def related_work(
    sources: tuple[Path, ...],
    min_sentences: int,
    min_papers: int,
    min_linked: float,
    link_titles: bool,
    **options: Any,
) -> None:
    """Take the Related Work sections of the full texts of SOURCES, with the abstracts of what they cite.

    Each record holds the rest of its paper too, sections within sections. What was stopped goes on when
    the command is given again.
    """
    from citerec.datasets.related_work import Conditions, related_work_plan

    conditions = Conditions(min_sentences, min_papers, min_linked)
    _build(sources, related_work_plan(conditions, options.pop("split"), link_titles=link_titles), options)


def _build(sources: tuple[Path, ...], plan: "Plan", options: dict[str, Any]) -> None:
    from citerec.cli.progress import progress_bar
    from citerec.datasets.pair_sets import Splitting, build_pairs
    from citerec.retrieve.manifest import find_index

    index, out = find_index(options.pop("index_path")), options.pop("out")
    splitting = Splitting(options.pop("validation"), options.pop("test"), options.pop("seed"))
    with progress_bar() as on_progress:
        built = build_pairs(sources, index, out, plan, splitting, on_progress=on_progress, **options)
    _tell(out, built)


def _tell(out: Path, built: "Built") -> None:
    splits = ", ".join(f"{split} {count:,}" for split, count in built.splits.items())
    output().print(f"{out} written: {splits}.", markup=False, soft_wrap=True)
    table = _table(built.steps)
    if built.outcomes:
        table.add_section()
        table.add_row("", "Sentences that cite, left out:", style="dim")
        _add(table, built.outcomes)
    output().print(table)
    if built.quarantine:
        notes().print(
            f"Set aside: {built.bad:,} lines that are no full text, {built.faults:,} annotations that do not fit their "
            f"text. See {built.quarantine}",
            markup=False,
        )


def _table(counts: Mapping[str, int]) -> "Table":
    """A table of counts, each before what it counts."""
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(justify="right", style="cyan", no_wrap=True)
    table.add_column()
    _add(table, counts)
    return table


def _add(table: "Table", counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        table.add_row(f"{count:,}", name)
