"""A bibliography compared with an index, without a draft."""

from pathlib import Path

from citerec.drafts.base import Cited, Draft
from citerec.drafts.check import Finding, Options, check_draft, read_entries
from citerec.drafts.checks.matches import Match, match_entries
from citerec.drafts.files import Files
from citerec.errors import InputError
from citerec.index.opened import OpenIndex

MOST_ENTRIES = 500
_PATH = Path("bibliography.bib")


def check_bibtex(text: str, index: OpenIndex) -> tuple[dict[str, Match], list[Finding]]:
    """What the index has of each entry, by key, and the findings of `citerec check` if all entries are cited.

    Raises:
        InputError: There are more than `MOST_ENTRIES` entries, or none.
    """
    files = Files(texts={_PATH: text}, disk=False)
    bibliography = read_entries([_PATH], files)
    count = len(bibliography.entries) + len(bibliography.unread)
    if not count:
        raise InputError("there is no BibTeX entry in it", "Give the text of a .bib file: @article{key, title = {…}}")
    if count > MOST_ENTRIES:
        raise InputError(f"it has {count:,} entries, more than {MOST_ENTRIES}", "Check it in parts.")
    papers = {entry.paper.paper_id: entry.paper for entry in bibliography.entries}
    matches = {key: Match() for key in papers} | match_entries(papers.values(), index)
    cited = tuple(Cited(entry.paper.paper_id, entry.path, entry.line, 0, 0) for entry in bibliography.entries)
    findings = check_draft(Draft("", cited=cited), bibliography, index, Options(), files, matches)
    return matches, findings
