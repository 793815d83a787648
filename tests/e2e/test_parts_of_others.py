"""A family and a text metric of another package: one file each, named by entry points, no line of citerec."""

import os
import re
from pathlib import Path

import pytest

from tests.conftest import DEMO, Citerec, write_lines
from tests.e2e.test_cli import one_line

pytestmark = pytest.mark.slow

FILES = {
    "together.py": '''
"""Whether the marker stands for one paper or for several; the sentence is of medium length."""

from citerec.diagnostics.families import MEDIUM, Family

FAMILY = Family(
    name="together",
    title="Papers cited together",
    classes=lambda _: ("one", "several"),
    class_of=lambda facts: "one" if len(facts.context.cited_ids) == 1 else "several",
    conditions=(MEDIUM,),
)
''',
    "commas.py": '''
"""How many characters there are to a comma: fewer is better."""

import numpy as np

from citerec.write.metrics import Column, MetricPart


class Commas:
    name = "commas"
    columns = (Column("characters_per_comma", share=False, better="lower", decimals=1),)
    settings = {"comma": ","}

    def scores(self, texts, on_progress):
        on_progress("commas", len(texts), len(texts))
        return np.array([[len(one.text) / (1 + one.text.count(","))] for one in texts], np.float64).reshape(-1, 1)


METRIC = MetricPart("commas", lambda options: Commas())
''',
    "others-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: others\nVersion: 1.0\n",
    "others-1.0.dist-info/entry_points.txt": """
[citerec.families]
together = together:FAMILY
[citerec.text_metrics]
commas = commas:METRIC
broken = commas:NOTHING
""",
}


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> str:
    """PYTHONPATH with the package in it."""
    folder = tmp_path_factory.mktemp("others")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.lstrip())
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


def test_a_family_labels_a_set_and_is_measured_by_eval(
    citerec: Citerec, tmp_path: Path, demo_index: Path, others: str
) -> None:
    result = citerec(
        "diagnostics", "label", DEMO / "contexts.jsonl", "--index", demo_index, "--out", "mine", PYTHONPATH=others
    )
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


def test_a_text_metric_has_its_unit_in_tables_and_page(citerec: Citerec, tmp_path: Path, others: str) -> None:
    for name, text in {"terse": "Ab, cd, ef, gh.", "wordy": "Ab cd ef gh " * 8}.items():
        record = {"input": ["A source."], "target": "Ab, cd.", "prediction": text, "writer": name}
        write_lines(tmp_path / f"{name}.jsonl", [{**record, "id": f"t{at}"} for at in range(6)])
    given = ("eval-text", "terse.jsonl", "wordy.jsonl", "--metrics", "rouge,commas", "-c", "workers=1")
    result = citerec(*given, "--out", "results", PYTHONPATH=others)
    assert result.returncode == 0, result.stderr
    assert re.search(r"characters_per_comma ↓ *$", result.stdout, re.MULTILINE)
    assert re.search(r"^wordy +6 +(?:[▲▼] )?96\.0 ", result.stdout, re.MULTILINE)
    words = re.sub(r"<[^>]+>", "", (tmp_path / "results" / "report.html").read_text())
    assert "characters_per_comma ↓" in words and "★ 3.8" in words and "comma: ," in words
    # Who has the package no longer can read the results all the same.
    again = citerec("report", "results").stdout
    assert re.search(r"^terse +6 +★ 3\.8 ", again, re.MULTILINE) and "↓: lower is better" in again
    wrong = citerec("eval-text", "terse.jsonl", "--metrics", "comma", PYTHONPATH=others)
    one_line(wrong, 2, "there is no text metric 'comma'. Did you mean commas?")
    broken = citerec("eval-text", "terse.jsonl", "--metrics", "broken", PYTHONPATH=others)
    one_line(broken, 2, "'broken' cannot be loaded: AttributeError")
