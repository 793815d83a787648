"""The commands of CiteSum: `data citesum` and `data recast`, entry points of `citerec.commands`."""

from pathlib import Path
from typing import Any

import click

from citerec.cli.console import say, show_counts
from citerec.cli.options import PATH, number, path_option, share, with_options
from citerec.files.progress import progress_bar
from citerec.papers.common.commands import build, of_full_texts


@click.command(epilog="Example: citerec data citesum ../shared/data/acm/s2orc --index indexes/acm --out data/citesum")
@click.argument("sources", nargs=-1, required=True, type=PATH)
@with_options(of_full_texts)
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
    from citerec.papers.citesum.build import Nearness, citesum_plan

    nearness = Nearness(rouge_1, rouge_2, rouge_l, stemming)
    build(sources, citesum_plan(nearness, options.pop("split"), min_abstract=min_abstract), options)


@click.command(
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
    from citerec.papers.citesum.recast import Recast, recast_file

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
