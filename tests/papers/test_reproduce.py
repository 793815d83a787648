"""`citerec reproduce`, on small data of known answers and on the demo set."""

import json
import pkgutil
from pathlib import Path

import pytest

from citerec.evaluation.results import Results
from citerec.papers.common.reproduce import read_recipe, recipe_paths
from citerec.write.metrics import TEXT_METRICS
from citerec.write.writers.base import WRITERS
from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line

ABSTRACT = [
    "Rivers are long.",
    "We propose a method that finds the mouth of every river by following water downhill.",
    "It is fast.",
]


def test_measured_figures_stand_beside_published_ones(citerec_here: Citerec, tmp_path: Path) -> None:
    data = tmp_path / "papers"  # with the test split of CiteSum, of four papers
    tasks = [{"source": ABSTRACT, "target": ABSTRACT[number % 2], "paper_id": str(number)} for number in range(4)]
    write_lines(data / "text" / "citesum" / "test.jsonl", tasks)
    own = ["--writer", "Abs→TLDR=ext-lead", "--writer", "Abs→TLDR=ext-oracle"]  # several are runs
    done = citerec_here("reproduce", "citesum-5", "--data", data, *own, "--format", "json", "--out", "out")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    oracle = next(one for one in made["figures"] if one["row"] == "extractive: EXT-ORACLE" and one["measure"] == "R-1")
    assert oracle["published"] == 44.17
    assert oracle["measured"]["value"] == pytest.approx(100)  # every target is a sentence of its abstract
    assert oracle["measured"]["n"] == 4
    assert oracle["difference"] == pytest.approx(100 - 44.17)
    assert (made["sample"], made["preset"], made["metrics"]["rouge"]["stemming"]) == (None, "citesum", True)
    missing = {one["what"]: one["remedy"] for one in made["missing"]}
    assert missing["PEGASUS-large: Abs→TLDR (PEGASUS)"].startswith("Train it: citerec train writer")
    # Half of the targets are the first sentence, half the one that proposes.
    r1 = {one["row"]: one["measured"] for one in made["figures"] if one["measure"] == "R-1" and one["measured"]}
    lead, best = (r1[f"extractive: {name}"]["value"] for name in ("EXT-LEAD", "EXT-ORACLE"))
    assert lead == pytest.approx(r1["extractive: EXT-HEURISTIC"]["value"], abs=1)
    runs = r1["BART-large: Abs→TLDR"]
    assert (runs["runs"], runs["value"]) == (2, pytest.approx((lead + best) / 2))
    assert runs["sd"] == pytest.approx(abs(lead - best) / 2**0.5)
    out = tmp_path / "out"
    assert json.loads((out / "reproduction.json").read_text()) == made
    assert "44.17" in (out / "report.html").read_text()
    assert "extractive: EXT-ORACLE,,R-1,44.17" in (out / "table.csv").read_text()
    assert Results.read(out / "results" / "texts").systems["extractive: EXT-LEAD"].overall.n == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "papers"]  # no work is left


def test_what_cannot_be_made_is_said(citerec_here: Citerec) -> None:
    one_line(citerec_here("reproduce", "citebench-8", "--sample"), 2, "citebench-8 has no sample")
    one_line(citerec_here("reproduce", "citesum-5", "--writer", "BERT=ext-lead"), 2, "names no row of citesum-5")


def test_without_any_data_the_demo_set_is_the_sample(tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "empty").mkdir()
    done = citerec_here("reproduce", "citebench-3", "--sample", "--data", tmp_path / "empty")
    assert done.returncode == 0, done.stderr
    title, *lines = done.stdout.splitlines()
    assert "(sample: 50 tasks made from the demo set, not the table's data)" in title
    assert "11.61" in next(line for line in lines if " LEAD " in line)  # the mean of the five published figures
    listed = citerec_here("reproduce", "list", "--data", tmp_path / "empty", "--format", "json").stdout
    assert {one["name"]: one for one in json.loads(listed)}["citesum-9"]["data"][0]["here"] is False


def test_systems_are_measured_over_the_families_of_the_demo_set(citerec_here: Citerec, demo_index: Path) -> None:
    done = citerec_here("reproduce", "diagnostic-1", "--sample", "--index", demo_index, "--format", "json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    overall = next(one for one in made["figures"] if one["group"] == "overall" and one["measure"] == "R@10")
    assert overall["measured"]["value"] > 0.8
    assert {one["what"] for one in made["missing"]} == {"NCN", "LCR", "Galactica"}
    assert any(one["group"] == "location: last" for one in made["figures"])


@pytest.mark.parametrize("name", sorted(recipe_paths()))
def test_a_recipe_names_only_what_there_is(name: str) -> None:
    recipe = read_recipe(name)
    assert callable(pkgutil.resolve_name(recipe.runner))
    assert {row.writer for row in recipe.rows if row.writer} <= set(WRITERS)
    assert set(recipe.metrics) <= set(TEXT_METRICS)
    assert recipe.data and set(recipe.groups) <= {data.name for data in recipe.data}
    width = len(recipe.measures) * max(1, len(recipe.groups))
    assert {len(row.published) for row in recipe.rows} <= {0, width}
