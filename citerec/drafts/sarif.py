"""Findings as SARIF 2.1.0, which editors and code hosts show beside the text."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from citerec.drafts.checks.base import CHECKS, Check, Finding
from citerec.version import __version__

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
