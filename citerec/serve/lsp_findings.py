"""What the language server says of a draft without being asked: what `citerec check` finds."""

import contextlib
import re
from collections.abc import Collection, Iterator

from citerec.drafts.base import Source
from citerec.drafts.check import Finding, Options, Severity, check_draft, read_entries
from citerec.errors import InputError
from citerec.serve.lsp_drafts import View, Workbench

_CHECKED = Options(ignore=frozenset({"not-in-index"}))  # while someone writes, what the index lacks is no fault
_OTHER_KEYS = re.compile(r"(?:fig|tbl|tab|sec|eq|lst|thm|def|lem|exm)[-:]")  # cross-references of pandoc and Quarto
_LINE = re.compile(r", line (\d+)")


def findings(bench: Workbench, view: View) -> list[Finding]:
    """What `citerec check` finds in a draft, or why it cannot be understood; what needs the index, once this is open.

    Places and keys of files that it takes in are told where these are open.
    """
    try:
        draft = bench.draft(view)
    except InputError as error:
        source = Source(view.path, view.text)
        start, end = source.line_span(int(at[1]) if (at := _LINE.search(error.message)) else 1)
        places = (*source.position(start), *source.position(end))
        return [Finding("unreadable-draft", Severity.NOTE, view.path, *places, error.message, error.remedy)]
    files, paths = view.files(), bench.paths(view)
    entries = read_entries([path for path in paths if files.exists(path)], files) if paths else None
    cited = {one.key for one in draft.cited}
    papers = (
        {one.paper.paper_id: one.paper for one in entries.entries if one.paper.paper_id in cited} if entries else {}
    )
    index = bench.recommender.index if bench.recommender else None
    found = check_draft(draft, entries, index, _CHECKED, files, bench.matches(papers))
    return list(_of_view(found, bench, view))


def _of_view(found: list[Finding], bench: Workbench, view: View) -> Iterator[Finding]:
    """Without places and keys of other files, and without keys that are no faults."""
    known: Collection[str] = ()
    with contextlib.suppress(InputError):  # a bibliography that cannot be read is a finding of its own
        if bibliography := bench.bibliography(view):
            known = bibliography.entries
    source = Source(view.path, view.text)
    for one in found:
        if one.code in ("place-open", "key-unknown") and one.path.resolve() != view.path:
            continue
        if one.code == "key-unknown":
            key = view.text[slice(*span_of(one, source))]
            if key in known or _OTHER_KEYS.match(key):  # `known` has entries that are not on the disk yet
                continue
        yield one


def span_of(finding: Finding, source: Source) -> tuple[int, int]:
    """Where a finding begins and ends in the text of its file, in characters."""
    begin, end = source.line_span(finding.line)[0], source.line_span(finding.end_line)[0]
    return begin + finding.column - 1, end + finding.end_column - 1
