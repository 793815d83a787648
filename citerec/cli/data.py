"""`citerec data`: data sets of citation texts, TLDRs and related work."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citerec.cli.console import note, note_set_aside, output, print_json, say, show_counts
from citerec.cli.eval_text import named_file
from citerec.cli.options import (
    PATH,
    full_texts_option,
    index_option,
    input_option,
    json_option,
    max_bad,
    number,
    path_option,
    reading,
    seed,
    share,
    with_options,
)
from citerec.evaluation.rendering import show, to_csv
from citerec.files.progress import progress_bar
from citerec.files.text import counted

if TYPE_CHECKING:
    from citerec.datasets.pair_sets import Plan

_of_full_texts = [
    index_option("Index with the abstracts"),
    path_option("--out", required=True, help="The folder to make, or to replace."),
    share("--validation", 0.05, "Share of the papers in the validation split."),
    share("--test", 0.05, "Share of the papers in the test split."),
    seed,
    *reading("unreadable records"),
]


@click.group(epilog="Example: citerec data citesum ../shared/data/acm/s2orc --index indexes/acm --out data/citesum")
def data() -> None:
    """Build data sets to train and to measure writers on."""


@data.command(epilog="Example: citerec data citebench multi_xscience/test.json --out lu-test.jsonl")
@click.argument("files", nargs=-1, required=True, type=PATH)
@path_option("--out", required=True, help="The file to write, JSON Lines.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["aburaed", "chen", "lu", "xing"]),
    help="Format of the files; by default it is recognised.",
)
@click.option(
    "--as-published",
    is_flag=True,
    help="Convert as CiteBench's own scripts do, to compare with its scores: docs/text-data.md.",
)
@click.option(
    "--context/--no-context",
    default=True,
    help="Keep the citing abstract and the text before and after; CiteBench's default files have neither.",
)
@max_bad("unreadable records")
def citebench(files: tuple[Path, ...], out: Path, **options: Any) -> None:
    """Make one file in CiteBench's format of FILES of its four source data sets.

    These are AbuRa'ed (text pairs), Chen (Delve, S2ORC), Lu (Multi-XScience) and Xing. Citations become
    [0], [1], … in order of first mention. Only unreadable records are left out.
    """
    from citerec.datasets.unify import unify

    with progress_bar() as on_progress:
        unified = unify(files, out, **options, on_progress=on_progress)
    say(f"{out} written. Citation texts, by data set:")
    show_counts(unified.tasks)
    if unified.quarantine:
        note(f"Records set aside: {unified.bad:,}. See {unified.quarantine}")


@data.command(epilog="Example: citerec data citesum ../shared/data/acm/s2orc --index indexes/acm --out data/citesum")
@click.argument("sources", nargs=-1, required=True, type=PATH)
@with_options(_of_full_texts)
@share("--rouge-1", 0.5, "Least share of a sentence's words that the cited abstract has.")
@share("--rouge-2", 0.2, "Least share of its pairs of words that the abstract has.")
@share("--rouge-l", 0.4, "Least share of its words in the longest common subsequence with the abstract.")
@click.option("--stemming/--no-stemming", default=True, help="Compare stems of words.")
@number("--min-abstract", 100, "Characters that a cited abstract must exceed.", least=0)
def citesum(
    sources: tuple[Path, ...],
    rouge_1: float,
    rouge_2: float,
    rouge_l: float,
    stemming: bool,
    min_abstract: int,
    **options: Any,
) -> None:
    """Make TLDRs of papers from the sentences that cite them in the full texts of SOURCES.

    It takes sentences of Related Work sections that cite one paper and agree with its abstract; REF
    marks the citation. No cited paper is in two splits. Repeat the command to resume an interrupted run.
    """
    from citerec.datasets.citesum import Nearness, citesum_plan

    nearness = Nearness(rouge_1, rouge_2, rouge_l, stemming)
    _build(sources, citesum_plan(nearness, options.pop("split"), min_abstract=min_abstract), options)


@data.command(
    "related-work",
    epilog="Example: citerec data related-work ../shared/data/acm/s2orc --index indexes/acm --out data/related-work",
)
@click.argument("sources", nargs=-1, required=True, type=PATH)
@with_options(_of_full_texts)
@number("--min-sentences", 3, "Least number of sentences of a section.")
@number("--min-papers", 2, "Least number of papers of the index that a section cites.")
@share("--min-linked", 1.0, "Least share of its groups of citations that have a paper of the index.")
@click.option(
    "--link-titles", is_flag=True, help="Search the index for bib entries without a match, by title, year and author."
)
@click.option(
    "--by-full-texts",
    is_flag=True,
    help="Put only sections into validation and test whose cited papers all have a full text in SOURCES.",
)
def related_work(
    sources: tuple[Path, ...], min_sentences: int, min_papers: int, min_linked: float, link_titles: bool, **options: Any
) -> None:
    """Take the Related Work sections of the full texts of SOURCES, with the abstracts of the papers they cite.

    Each record also holds the rest of its paper, as nested sections. Repeat the command to resume an
    interrupted run.
    """
    from citerec.datasets.related_work import Conditions, related_work_plan

    conditions = Conditions(min_sentences, min_papers, min_linked)
    _build(sources, related_work_plan(conditions, options.pop("split"), link_titles=link_titles), options)


@data.command(
    epilog="Example: citerec data recast citesum/train.json --target summary --target title --out train-2.jsonl"
)
@click.argument("file", type=PATH)
@path_option("--out", required=True, help="The file to write, JSON Lines.")
@click.option(
    "--target",
    "goals",
    multiple=True,
    type=click.Choice(["summary", "title", "discipline"]),
    default=("summary",),
    help="What to write: the targets of the file, titles, or disciplines. With several, each task is written for "
    "each, and its input begins with the name of the target.",
)
@click.option(
    "--with",
    "parts",
    multiple=True,
    type=click.Choice(["title", "discipline", "introduction", "conclusion"]),
    help="What to read besides; may be repeated. Never what is to be written.",
)
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="TARGET=TEXT",
    help="Words with which a model begins all texts of a target; may be repeated.",
)
def recast(file: Path, out: Path, goals: tuple[Any, ...], parts: tuple[Any, ...], prompts: tuple[str, ...]) -> None:
    """Make other tasks of the papers of FILE: with other inputs or targets.

    FILE has tasks about one paper each, as CiteSum and SciTLDR.
    """
    from citerec.datasets.recast import Recast, recast_file

    goals = tuple(dict.fromkeys(goals))
    begins: dict[Any, str] = {}
    for prompt in prompts:
        goal, separator, text = prompt.partition("=")
        if not separator or goal not in goals:
            raise click.UsageError(f"--prompt {prompt!r} is not TARGET=TEXT with a --target")
        begins[goal] = text
    with progress_bar() as on_progress:
        counts = recast_file(file, out, Recast(goals, parts, begins), on_progress=on_progress)
    say(f"{out} written. Tasks:")
    show_counts(counts)


@data.command(epilog="Example: citerec data inputs train-*.parquet --input oracle-cited --out train-oracle-cited.jsonl")
@click.argument("tasks", type=PATH, nargs=-1, required=True)
@path_option("--out", required=True, help="The file to write, JSON Lines.")
@input_option("abstracts")
@full_texts_option
def inputs(tasks: tuple[Path, ...], out: Path, given: str, full_texts: tuple[Path, ...]) -> None:
    """Write tasks of related work with one of OARelatedWork's inputs, for train writer.

    TASKS are files in the format of OARelatedWork or CiteBench; their tasks become one file. generate
    batch needs no such file: it has --input itself.
    """
    from citerec.generate.inputs import GivenTasks
    from citerec.texts.write import write_tasks

    written = (task for file in tasks for task in GivenTasks(given, full_texts, note).tasks(file))
    with progress_bar() as on_progress:
        number = write_tasks(written, out, on_progress)
    say(f"{out} written: {counted(number, 'task')}.")


@data.command(epilog="Example: citerec data statistics train=scitldr/train.jsonl dev=scitldr/dev.jsonl --over 512,1024")
@click.argument("files", nargs=-1, required=True, metavar="[NAME=]FILE…")
@click.option(
    "--over",
    default="1024,4096,16384",
    metavar="LIST",
    help="Numbers of tokens: the shares of longer inputs and targets are given.",
)
@click.option(
    "--tokenizer",
    metavar="NAME|FOLDER",
    help="Count this model's tokens, special ones included.  [default: what stands between white space]",
)
@click.option(
    "--near",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.9,
    help="Cosine of TF-IDF vectors above which two inputs are nearly the same. 0: leave this out.",
)
@path_option("--against", metavar="FILE", help="Tasks that a model learnt from: how many are near to one of them?")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
def statistics(files: tuple[str, ...], over: str, near: float, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Describe data sets: files of tasks for generate, train writer and eval-text.

    Prints sizes, lengths, compression, novelty, shares of long texts, and tasks of nearly the same
    input.
    """
    from citerec.datasets.statistics import statistics_table, task_statistics

    limits = [part.strip() for part in over.split(",") if part.strip()]
    if not all(limit.isascii() and limit.isdecimal() for limit in limits):
        raise click.UsageError(f"--over {over!r} is no list of numbers such as 1024,4096")
    with progress_bar() as on_progress:
        found = task_statistics(
            _named(files), over=list(map(int, limits)), near=near or None, on_progress=on_progress, **options
        )
    if as_json:
        print_json(found.to_json())
    elif as_csv:
        click.echo(to_csv(statistics_table(found)), nl=False)
    else:
        show(output(), statistics_table(found))


def _named(values: tuple[str, ...]) -> dict[str, Path]:
    """Files by the names given to them, or else by their own without endings."""
    files: dict[str, Path] = {}
    for given, path in map(named_file, values):
        name = given or re.sub(r"\.(jsonl?|gz)\b", "", path.name)
        if name in files:
            raise click.UsageError(f"two files have the name {name}: give them others, NAME=FILE")
        files[name] = path
    return files


def _build(sources: tuple[Path, ...], plan: "Plan", options: dict[str, Any]) -> None:
    from citerec.datasets.pair_sets import Splitting, build_pairs

    index, out = options.pop("index"), options.pop("out")
    by_full_texts = options.pop("by_full_texts", False)
    splitting = Splitting(options.pop("validation"), options.pop("test"), options.pop("seed"), by_full_texts)
    with progress_bar() as on_progress:
        built = build_pairs(sources, index, out, plan, splitting, on_progress=on_progress, **options)
    splits = ", ".join(f"{split} {count:,}" for split, count in built.splits.items())
    say(f"{out} written: {splits}.")
    show_counts(built.steps)
    if built.outcomes:
        output().print("\nSentences that cite, left out:", style="dim")
        show_counts(built.outcomes)
    note_set_aside(built)
