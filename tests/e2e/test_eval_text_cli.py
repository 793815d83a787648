"""`citerec eval-text` and `citerec rate` from outside."""

import csv
import json
import re
from pathlib import Path

import pytest

from citerec.evaluation.results import Results
from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line
from tests.evaluation_texts.conftest import TARGETS, WRITTEN, record
from tests.evaluation_texts.test_rating import Row, filled

FIGURE = r"[\d.]+ \[[\d.]+ [\d.]+\]"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with a file of predictions for each system."""
    for name in WRITTEN:
        write_lines(tmp_path / f"{name}.jsonl", (record(name, number) for number in range(len(TARGETS))))
    return tmp_path


def test_texts_are_measured_at_once(citerec_here: Citerec, written: Path) -> None:
    result = citerec_here("eval-text", "copy.jsonl", "noise.jsonl", "oracle.jsonl", "--out", "results/texts", code=0)
    assert result.stdout.startswith("6 tasks, 3 systems\n")
    assert re.search(rf"^overall +copy +6 +★ {FIGURE} +★ {FIGURE}", result.stdout, re.MULTILINE)
    assert re.search(rf"^ +oracle † +6 +{FIGURE}", result.stdout, re.MULTILINE)
    assert re.search(rf"^ +target +6 +{FIGURE}", result.stdout, re.MULTILINE)
    for part in ("rouge-score 0.", "stemming: off", "rouge_l: sentence", "references: best", "Holm", "upper bound"):
        assert part in result.stdout
    assert "noise wrote nothing for 1 task." in result.stderr
    assert "results/texts/report.html" in result.stderr
    assert Results.read(written / "results" / "texts").systems["oracle"].overall.values["rouge1"] == 1.0
    with (written / "results" / "texts" / "scores.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) == 1 + 3 * len(TARGETS)
    assert (written / "results" / "texts" / "report.html").exists()


def test_a_preset_sets_the_options_and_what_differs_is_marked(citerec_here: Citerec, written: Path) -> None:
    given = ["copy.jsonl", "-c", "workers=1", "--resamples", "100", "--preset"]
    value = json.loads(citerec_here("eval-text", *given, "scitldr", "--format", "json").stdout)
    assert (value["preset"]["name"], value["preset"]["differs"], list(value["settings"])) == ("scitldr", {}, ["rouge"])
    assert value["settings"]["rouge"]["stemming"] is True
    options = ["--metrics", "rouge,citations", "-c", "rouge_l=sentence", "-c", "references=first", "--out", "results"]
    result = citerec_here("eval-text", *given, "oarelatedwork", *options)
    assert "preset oarelatedwork (Docekal et al. 2024" in result.stdout and "cited_works: named" in result.stdout
    assert "; rouge_l sentence (there summary)." in result.stderr
    assert "references first" not in result.stderr  # it is the same there
    assert "Other than in the preset oarelatedwork" in (written / "results" / "report.html").read_text()
    one_line(citerec_here("eval-text", *given, "scitld"), 2, "no preset 'scitld'", "Did you mean scitldr?")


def test_what_cannot_be_measured_is_told_in_one_line(citerec_here: Citerec, written: Path) -> None:
    (written / "empty.jsonl").write_text("")
    (written / "kept").mkdir()
    (written / "kept" / "notes.txt").write_text("mine")
    for arguments, message in (
        (["empty.jsonl"], "empty.jsonl is empty"),
        (["copy.jsonl", "--tagger", "intent=nowhere"], "there is no tagger in nowhere. Give what citerec train tagger"),
        (["copy.jsonl", "--out", "kept"], "kept exists and is no folder of results"),
        (["copy.jsonl", "-c", "rouge_l=paragraph"], "rouge_l = paragraph"),
        ([], "requires an argument"),
    ):
        one_line(citerec_here("eval-text", *arguments), 2, message)
    assert sorted(path.name for path in (written / "kept").iterdir()) == ["notes.txt"]


def test_people_rate_and_agree(citerec_here: Citerec, written: Path) -> None:
    sheets = ("rate", "sheet", "copy.jsonl", "noise.jsonl", "--out", "sheet.csv")
    result = citerec_here(*sheets, "--texts", 3, "--shared", 2, "--raters", 2, code=0)
    names = [line.partition(":")[0] for line in result.stdout.splitlines()]
    assert names == ["sheet-1.csv", "sheet-2.csv", "sheet.instructions.txt", "sheet.key.json"]
    key = json.loads((written / "sheet.key.json").read_text())
    for number, name in ((1, "anna"), (2, "ben")):

        def rate(row: Row, number: int = number) -> tuple[str, str]:
            return ("5", "3") if key["items"][row["item"]]["system"] == "copy" else ("2", str(number))

        filled(written / f"sheet-{number}.csv", f"sheet-{name}.csv", rate)
    read = citerec_here("rate", "read", "sheet-anna.csv", "sheet-ben.csv", "--key", "sheet.key.json", code=0)
    assert re.search(r"^overall +copy +5\.00 \[5\.00 5\.00\] +6 +3\.00 \[3\.00 3\.00\] +6$", read.stdout, re.MULTILINE)
    assert "anna rated 10 of 10 texts" in read.stdout
    assert re.search(r"^anna and ben +readability +8 +1\.00 *$", read.stdout, re.MULTILINE)
    assert "12 of 12 texts of the key were rated" in read.stdout
    one_line(citerec_here(*sheets), 2, "exists, perhaps with ratings in it")
    one_line(citerec_here("rate", "read", "sheet-1.csv", "--key", "sheet.key.json"), 2, "has no rating in it")
