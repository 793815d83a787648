"""The commands of OARelatedWork: `data related-work` and `data inputs`, entry points of `citerec.commands`."""

from pathlib import Path

from citerec.cli.console import note, say
from citerec.cli.options import InputName, Out
from citerec.files.progress import progress_bar
from citerec.files.text import counted
from citerec.papers.common.commands import FromFullTexts


def related_work(sources: tuple[Path, ...], /, *, built: FromFullTexts) -> None:
    """Take the Related Work sections of the full texts of SOURCES, with the abstracts of the papers they cite.

    Each record also holds the rest of its paper, as nested sections. Repeat the command to resume an
    interrupted run. Settings (-c): sentences, papers and linked, the least that a section has: sentences, cited papers
    of the index, and the share of its groups of citations that have one; validation, test, seed, split.

    Example: citerec data related-work ../shared/data/acm/s2orc --index indexes/acm --out data/related-work

    Args:
        sources: Full texts.
    """
    from citerec.papers.oarelatedwork.data import RELATED_WORK_PLAN

    built.build(sources, RELATED_WORK_PLAN)


def inputs(tasks: tuple[Path, ...], /, *, out: Out, input_name: InputName = "abstracts") -> None:
    """Write tasks of related work with one of OARelatedWork's inputs, for train writer.

    TASKS are files in the format of OARelatedWork or CiteBench; their tasks become one file. write
    batch needs no such file: it has --input itself.

    Example: citerec data inputs train-*.parquet --input oracle-cited --out train-oracle-cited.jsonl

    Args:
        tasks: Files of tasks.
        out: The file to write, JSON Lines.
    """
    from citerec.papers.oarelatedwork.inputs import tasks_with_input
    from citerec.write.task_files import write_tasks

    written = (task for file in tasks for task in tasks_with_input(file, input_name or "abstracts", note=note))
    with progress_bar() as on_progress:
        number = write_tasks(written, out, on_progress)
    say(f"{out} written: {counted(number, 'task')}.")
