"""`citerec check`: what should be mended in a draft and its bibliography."""

import contextlib
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from citerec.cli.console import give, note, output, print_json, say
from citerec.cli.options import Encoding, OutFile
from citerec.drafts import Files, read_draft
from citerec.drafts.bibliography import read_entries
from citerec.drafts.check import Finding, Options, check_draft, sarif, selected
from citerec.files.text import counted, names_in
from citerec.retrieve.opened import OpenIndex

_Codes = Annotated[tuple[str, ...], Parameter(metavar="CODE")]
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def check(
    file: Path,
    /,
    *,
    bibs: Annotated[tuple[Path, ...], Parameter(name="--bib")] = (),
    index_path: Annotated[Path | None, Parameter(name="--index")] = None,
    select: _Codes = (),
    ignore: _Codes = (),
    year: Annotated[int | None, Parameter(metavar="YEAR")] = None,
    strict: bool = False,
    encoding: Encoding = None,
    form: Annotated[Literal["table", "json", "sarif"], Parameter(name="--format")] = "table",
    out: OutFile = None,
) -> int:
    r"""Check the citations of a draft in LaTeX or Markdown.

    Finds keys without an entry, entries that cannot be read or are there twice, entries with the DOI of
    another work, entries from the future, places that still want a citation (\cite{?}, [@?]), and
    sentences that look like they need one. With --index also entries that differ from their paper,
    preprints that were published since, and retracted papers. Exit code: 0 if there is no error and no
    warning, 1 if there is, 2 for bad input.

    Example: citerec check paper.tex --index indexes/demo

    Only what is wrong with keys: citerec check paper.tex --select key-unknown,key-duplicate

    Args:
        file: The draft.
        bibs: A .bib file; may be repeated.  [default: those that FILE names]
        index_path: Compare the cited entries with the papers of an index.
        select: Only these checks; may be repeated, or several with commas: key-unknown, place-open and others
            (docs/drafts.md).  [default: all but entry-uncited]
        ignore: None of these checks; as --select.
        year: Year of the draft.  [default: this year]
        strict: Exit code 1 for notes too.
        form: How the findings are given; sarif is SARIF 2.1.0.
    """
    of_year = {} if year is None else {"year": year}
    chosen = Options(_codes(select) or None, _codes(ignore), **of_year)
    files = Files(encoding)
    draft = read_draft(file, files)
    named = bibs or draft.bibliographies
    bibliography = read_entries(named, files) if named else None
    with contextlib.closing(OpenIndex.open(index_path)) if index_path else contextlib.nullcontext() as index:
        found = check_draft(draft, bibliography, index, chosen, files)
    give(
        form,
        out,
        json=lambda: [finding.to_json() for finding in found],
        table=lambda: _show(file, found),
        sarif=lambda: print_json(sarif(found)),
    )
    if bibliography is None and draft.cited:
        note(f"{file} names no bibliography: its keys and entries were not checked. Give one: --bib FILE")
    elif bibliography and bibliography.lost:
        note("A bibliography cannot be read: whether each key has an entry was not checked.")
    left_out = [one.name for one in selected(chosen) if one.needs_index]
    if index_path is None and left_out:
        note(f"Not checked without --index: {', '.join(left_out)}.")
    return int(any(strict or finding.severity != "note" for finding in found))


def _codes(values: tuple[str, ...]) -> frozenset[str]:
    return frozenset(names_in(",".join(values)))


def _show(file: Path, found: list[Finding]) -> None:
    """Prints the findings, file by file, then how many there are."""
    console = output()
    for _, findings in groupby(found, key=lambda finding: finding.path):
        for finding in findings:
            line = Text(f"{finding.path}:{finding.line}:{finding.column}: ")
            line.append(f"{finding.code} ", style=_STYLES[finding.severity])
            console.print(line.append(finding.message), soft_wrap=True)
            console.print(Text(f"    {finding.remedy}", style="dim"), soft_wrap=True)
        console.print()
    if not found:
        say(f"{file}: nothing to mend.")
        return
    counts = Counter(finding.severity.value for finding in found)
    say(f"{file}: {', '.join(counted(counts[one], one) for one in _STYLES if counts[one])}.")
