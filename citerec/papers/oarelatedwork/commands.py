"""The commands of OARelatedWork: `data related-work` and `data inputs`, entry points of `citerec.commands`."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import note, say
from citerec.cli.options import PATH, full_texts_option, input_option, number, path_option, share, with_options
from citerec.files.progress import progress_bar
from citerec.files.text import counted
from citerec.papers.common.commands import build, of_full_texts


@click.command(
    "related-work",
    epilog="Example: citerec data related-work ../shared/data/acm/s2orc --index indexes/acm --out data/related-work",
)
@click.argument("sources", nargs=-1, required=True, type=PATH)
@with_options(of_full_texts)
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
    from citerec.papers.oarelatedwork.build import Conditions, related_work_plan

    conditions = Conditions(min_sentences, min_papers, min_linked)
    build(sources, related_work_plan(conditions, options.pop("split"), link_titles=link_titles), options)


@click.command(
    epilog="Example: citerec data inputs train-*.parquet --input oracle-cited --out train-oracle-cited.jsonl"
)
@click.argument("tasks", type=PATH, nargs=-1, required=True)
@path_option("--out", required=True, help="The file to write, JSON Lines.")
@input_option("abstracts")
@full_texts_option
def inputs(tasks: tuple[Path, ...], out: Path, given: str, full_texts: tuple[Path, ...]) -> None:
    """Write tasks of related work with one of OARelatedWork's inputs, for train writer.

    TASKS are files in the format of OARelatedWork or CiteBench; their tasks become one file. write
    batch needs no such file: it has --input itself.
    """
    from citerec.write.related_work import tasks_with_input
    from citerec.write.task_files import write_tasks

    written = (task for file in tasks for task in tasks_with_input(file, given, full_texts, note))
    with progress_bar() as on_progress:
        number = write_tasks(written, out, on_progress)
    say(f"{out} written: {counted(number, 'task')}.")
