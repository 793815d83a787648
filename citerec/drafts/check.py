"""Checking a draft and its bibliography."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from citerec.drafts.base import Draft
from citerec.drafts.bibliography import Entries, read_entries
from citerec.drafts.checks.base import CHECKS, Check, Finding, Material, Options
from citerec.drafts.checks.matches import Match, match_entries
from citerec.drafts.files import Files
from citerec.retrieve.opened import OpenIndex
from citerec.version import __version__

__all__ = ["Options", "check_draft", "read_entries"]


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


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(findings: Sequence[Finding], root: Path | None = None) -> dict[str, Any]:
    """The SARIF log of some findings.

    Args:
        findings: The findings.
        root: The folder that paths are relative to; by default the current one.
    """
    rules = list(CHECKS.items())
    numbers = {name: number for number, (name, _) in enumerate(rules)}
    driver = {"name": "citerec", "version": __version__, "rules": [_rule(check) for _, check in rules]}
    results = [_result(finding, numbers, (root or Path.cwd()).resolve()) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(check: Check) -> dict[str, Any]:
    return {
        "id": check.name,
        "shortDescription": {"text": f"{check.summary[:1].upper()}{check.summary[1:]}."},
        "defaultConfiguration": {"level": str(check.severity), "enabled": check.by_default},
    }


def _result(finding: Finding, numbers: dict[str, int], root: Path) -> dict[str, Any]:
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    uri = quote(Path(os.path.relpath(finding.path.resolve(), root)).as_posix())
    return {
        "ruleId": finding.code,
        "ruleIndex": numbers[finding.code],
        "level": str(finding.severity),
        "message": {"text": f"{finding.message}. {finding.remedy}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}],
    }
