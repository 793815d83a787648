"""The commands of CiteSum: `data citesum` and `data recast`, entry points of `citerec.commands`."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from citerec.cli.console import counts_table, say
from citerec.cli.options import Out
from citerec.files.progress import progress_bar
from citerec.papers.common.commands import FromFullTexts

_Part = Literal["title", "discipline", "introduction", "conclusion"]


def citesum(sources: tuple[Path, ...], /, *, built: FromFullTexts) -> None:
    """Make TLDRs of papers from the sentences that cite them in the full texts of SOURCES.

    It takes sentences of Related Work sections that cite one paper and agree with its abstract; REF
    marks the citation. No cited paper is in two splits. Repeat the command to resume an interrupted run. Settings (-c):
    rouge1, rouge2 and rouge_l, the least shares of a sentence's words, of its pairs of words, and of its longest common
    subsequence that the abstract has; stemming, min_abstract; validation, test, seed, split.

    Example: citerec data citesum ../shared/data/acm/s2orc --index indexes/acm --out data/citesum

    Args:
        sources: Full texts.
    """
    from citerec.papers.citesum.data import CITESUM_PLAN

    built.build(sources, CITESUM_PLAN)


def recast(
    file: Path,
    /,
    *,
    out: Out,
    goals: Annotated[tuple[Literal["summary", "title", "discipline"], ...], Parameter(name="--target")] = ("summary",),
    parts: Annotated[tuple[_Part, ...], Parameter(name="--with")] = (),
) -> None:
    """Make other tasks of the papers of FILE: with other inputs or targets.

    FILE has tasks about one paper each, as CiteSum and SciTLDR.

    Example: citerec data recast citesum/train.json --target summary --target title --out train-2.jsonl

    Args:
        file: The tasks.
        out: The file to write, JSON Lines.
        goals: What to write: the targets of the file, titles, or disciplines. With several, each task is written for
            each, and its input begins with the name of the target.
        parts: What to read besides; may be repeated. Never what is to be written.
    """
    from citerec.papers.citesum.data import recast_file

    with progress_bar() as on_progress:
        counts = recast_file(file, out, tuple(dict.fromkeys(goals)), parts, on_progress=on_progress)
    say(f"{out} written. Tasks:", counts_table(counts))
