"""A family of another package: one file, named by an entry point, no line of citerec."""

import os
import re
from pathlib import Path

import pytest

from tests.conftest import DEMO, Citerec

pytestmark = pytest.mark.slow


FAMILY = """
from citerec.diagnostics.families import MEDIUM, Family

FAMILY = Family(
    name="together",
    title="Papers cited together",
    classes=lambda _: ("one", "several"),
    class_of=lambda facts: "one" if len(facts.context.cited_ids) == 1 else "several",
    conditions=(MEDIUM,),
)
"""


def test_a_family_of_others_is_measured(citerec: Citerec, tmp_path: Path, demo_index: Path) -> None:
    (tmp_path / "others-1.0.dist-info").mkdir()
    (tmp_path / "others-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    named = "[citerec.families]\ntogether = together:FAMILY\n"
    (tmp_path / "others-1.0.dist-info" / "entry_points.txt").write_text(named)
    (tmp_path / "together.py").write_text(FAMILY)
    others = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    label = ("diagnostics", "label", DEMO / "contexts.jsonl", "--index", demo_index, "--out", "mine")
    result = citerec(*label, PYTHONPATH=others)
    assert result.returncode == 0, result.stderr
    (found,) = re.findall(r"^together +(\d+) +one ([\d,]+), several (\d+)", result.stdout, re.MULTILINE)
    assert int(found[0]) == int(found[1]) + int(found[2]) > 0
    shown = citerec("diagnostics", "show", "mine/together", PYTHONPATH=others).stdout
    assert "Papers cited together" in shown and "held constant: the sentence is of medium length" in shown
    assert "Papers cited together (`mine/together`)" in (tmp_path / "diagnostics/mine/DATASHEET.md").read_text()
    given = ("eval", "--set", "mine", "--diagnostic", "together", "--index", demo_index)
    result = citerec(*given, PYTHONPATH=others)
    assert re.search(rf"^one +{found[1]} +0\.\d{{3}} ", result.stdout, re.MULTILINE), result.stderr
    # Who has the package no longer can read the set all the same.
    assert re.search(rf"^mine/together +{found[0]} ", citerec("diagnostics", "show").stdout, re.MULTILINE)
