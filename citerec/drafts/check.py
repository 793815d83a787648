"""Checking a draft and its bibliography."""

from collections.abc import Mapping

from citerec.drafts.base import Draft
from citerec.drafts.checks.base import CHECKS, Check, Finding, Material, Options, Severity
from citerec.drafts.checks.matches import Match, match_entries
from citerec.drafts.entries import Entries, read_entries
from citerec.drafts.files import Files
from citerec.index.opened import OpenIndex

__all__ = [
    "CHECKS",
    "Check",
    "Entries",
    "Finding",
    "Options",
    "Severity",
    "check_draft",
    "read_entries",
    "selected",
]


def check_draft(
    draft: Draft,
    bibliography: Entries | None = None,
    index: OpenIndex | None = None,
    options: Options | None = None,
    files: Files | None = None,
    matches: Mapping[str, Match] | None = None,
) -> list[Finding]:
    """What should be looked at in a draft, by file and line.

    Args:
        draft: The draft, from `read_draft`.
        bibliography: Its entries, from `read_entries`; None if it has none: keys are not checked then.
        index: An open index, with which cited entries are compared; None for no comparison.
        options: What to check.
        files: The texts of the files from which draft and bibliography were read; by default the disk.
        matches: What `match_entries` found for the cited entries, if it was called already.

    Raises:
        InputError: `options` names a check that does not exist.
    """
    options = options or Options()
    checks = [one for one in selected(options) if index is not None or not one.needs_index]
    material = Material(draft, bibliography, None, files or Files(), options)
    if index is not None and any(one.needs_index for one in checks):
        if matches is None:
            matches = match_entries((entry.paper for entry in material.cited.values()), index)
        material = Material(draft, bibliography, matches, material.files, options)
    found = [finding for one in checks for finding in one.run(material, one)]
    return sorted(found, key=lambda one: (str(one.path), one.line, one.column, one.code, one.message))


def selected(options: Options) -> list[Check]:
    """The checks that run with some options, in order.

    Raises:
        InputError: There is no such check.
    """
    for name in (*(options.select or ()), *options.ignore):
        CHECKS[name]
    checks = [one for name, one in CHECKS.items() if name not in options.ignore]
    return [one for one in checks if (one.by_default if options.select is None else one.name in options.select)]
