"""Add entries to a bibliography.

Example: citerec bib add 10.18653/v1/N19-1423 --bib refs.bib
"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from citerec.cli import options
from citerec.cli.console import note, say
from citerec.drafts import Files
from citerec.drafts.bibliography import Bibliography
from citerec.drafts.online import OnlineSettings, add_references


def add(
    references: tuple[str, ...],
    /,
    *,
    bib: Annotated[Path, Parameter(metavar="FILE")],
    keys: options.KeyPattern = "",
    diff: bool = False,
    encoding: options.Encoding = None,
    tuning: options.Tuning = options.Tuning(),
) -> None:
    """Add papers to a bibliography, by id or title.

    Crossref, OpenAlex, Semantic Scholar, DBLP and arXiv are asked, until one has the paper. A published version
    comes before a preprint. The entry has what the record says, without an abstract. A paper that the bibliography
    has already is not added again: its key is named. Nothing is written if a paper is not found.

    Example: citerec bib add 1810.04805 10.1145/3442188.3445922 --bib refs.bib

    By title: citerec bib add "Attention is all you need" --bib refs.bib

    Args:
        references: DOIs, arXiv ids, Anthology ids, pmid:NUMBER, addresses of these, or titles in quotation marks.
        bib: The bibliography, which is made if it is missing.
        diff: Show the changes as a unified diff, and write nothing.
    """
    settings = tuning.settings(OnlineSettings).of(OnlineSettings)
    files = Files(encoding)
    bibliography = Bibliography([bib], files, pattern=keys)
    with settings.opened() as services:
        additions = add_references(references, bibliography, services)
    for key, paper, entry in additions:
        (say if entry else note)(f"{bib}: {key}{'' if entry else ' is there already'}  {paper.title}".rstrip())
    if diff:
        print(files.diff(), end="")
    else:
        files.write()
