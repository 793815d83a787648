"""`citerec reproduce`, on small data of known answers and on the demo set."""

import json
from pathlib import Path

import pytest

from citerec.evaluation.results import Results
from citerec.papers.common import text_tables
from citerec.papers.common.reproduce import Reproduction, read_recipe
from tests.conftest import Citerec, write_lines
from tests.write.oarelatedwork_records import PUBLISHED

ABSTRACT = [
    "Rivers are long.",
    "We propose a method that finds the mouth of every river by following water downhill.",
    "It is fast.",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with test splits of SciTLDR's and CiteSum's shape, each of four papers."""
    folder = tmp_path / "papers"
    tasks = [
        {"source": ABSTRACT, "target": ABSTRACT[number % 2], "title": f"Rivers {number}", "paper_id": str(number)}
        for number in range(4)
    ]
    write_lines(folder / "text" / "citesum" / "test.jsonl", tasks)
    write_lines(folder / "text" / "scitldr" / "dev.jsonl", tasks)
    return folder


def figures(of_json: dict[str, list[dict[str, object]]], measure: str) -> dict[object, object]:
    return {one["row"]: one["measured"] for one in of_json["figures"] if one["measure"] == measure and one["measured"]}


def test_measured_figures_stand_beside_published_ones(data: Path, citerec_here: Citerec, tmp_path: Path) -> None:
    done = citerec_here("reproduce", "citesum-5", "--data", data, "--format", "json", "--out", "out")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    oracle = next(one for one in made["figures"] if one["row"] == "extractive: EXT-ORACLE" and one["measure"] == "R-1")
    assert oracle["published"] == 44.17
    assert oracle["measured"]["value"] == pytest.approx(100)  # every target is a sentence of its abstract
    assert oracle["measured"]["n"] == 4
    assert oracle["difference"] == pytest.approx(100 - 44.17)
    assert made["sample"] is None
    assert made["preset"] == "citesum"
    assert made["metrics"]["rouge"]["stemming"] is True
    # Half of the targets are the first sentence, half the one that proposes.
    r1 = figures(made, "R-1")
    assert r1["extractive: EXT-LEAD"]["value"] == pytest.approx(r1["extractive: EXT-HEURISTIC"]["value"], abs=1)
    out = tmp_path / "out"
    assert json.loads((out / "reproduction.json").read_text()) == made
    assert "44.17" in (out / "report.html").read_text()
    assert "extractive: EXT-ORACLE,,R-1,44.17" in (out / "table.csv").read_text()
    assert Results.read(out / "results" / "texts").systems["extractive: EXT-LEAD"].overall.n == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "papers"]  # no work is left


def test_what_is_missing_is_named_with_its_remedy(data: Path, citerec_here: Citerec) -> None:
    made = json.loads(citerec_here("reproduce", "citesum-5", "--data", data, "--format", "json").stdout)
    missing = {one["what"]: one for one in made["missing"]}
    assert "hf download yuningm/bart-large-citesum" in missing["BART-large: Abs→TLDR"]["remedy"]
    assert missing["PEGASUS-large: Abs→TLDR (PEGASUS)"]["remedy"].startswith("Train it: citerec train writer")
    empty = next(one for one in made["figures"] if one["row"] == "BART-large: Abs→TLDR")
    assert empty["published"] == 41.86
    assert empty["measured"] is None


def test_writers_of_ones_own_fill_rows_and_several_are_runs_with_a_deviation(data: Path, citerec_here: Citerec) -> None:
    names = ("Abs→TLDR=ext-lead", "Abs→TLDR=ext-oracle", "Abs→TLDR (PEGASUS)=ext-lead")
    own = [argument for name in names for argument in ("--writer", name)]
    r1 = figures(
        json.loads(citerec_here("reproduce", "citesum-5", "--data", data, "--format", "json", *own).stdout), "R-1"
    )
    assert r1["PEGASUS-large: Abs→TLDR (PEGASUS)"] == r1["extractive: EXT-LEAD"]
    one, other = (r1[f"extractive: {name}"]["value"] for name in ("EXT-LEAD", "EXT-ORACLE"))
    measured = r1["BART-large: Abs→TLDR"]
    assert measured["runs"] == 2
    assert measured["value"] == pytest.approx((one + other) / 2)
    assert measured["sd"] == pytest.approx(abs(one - other) / 2**0.5)


def test_texts_that_were_written_before_a_stop_are_used_again(data: Path, tmp_path: Path) -> None:
    first, again = (Reproduction(read_recipe("citesum-5"), data, tmp_path / "work") for _ in range(2))
    text_tables.run(first)
    written = {path: path.stat().st_mtime_ns for path in first.work.glob("[!.]*.jsonl")}
    assert len(written) == sum(bool(row.writer) for row in first.recipe.rows)
    text_tables.run(again)
    assert again.cells == first.cells
    assert {path: path.stat().st_mtime_ns for path in first.work.glob("[!.]*.jsonl")} == written


def test_a_row_that_is_not_there_is_an_error(citerec_here: Citerec) -> None:
    done = citerec_here("reproduce", "citesum-5", "--writer", "BERT=ext-lead")
    assert done.returncode == 2
    assert "names no row of citesum-5" in done.stderr


def test_the_title_of_a_sample_says_so(data: Path, citerec_here: Citerec) -> None:
    done = citerec_here("reproduce", "citesum-6", "--sample", "--data", data)
    assert done.returncode == 0, done.stderr
    title = done.stdout.splitlines()[0]
    assert title.endswith("(sample: 4 papers of SciTLDR's dev split, not the table's data)")


def test_without_any_data_the_demo_set_is_the_sample(tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "empty").mkdir()
    done = citerec_here("reproduce", "citebench-3", "--sample", "--data", tmp_path / "empty")
    assert done.returncode == 0, done.stderr
    title = done.stdout.splitlines()[0]
    assert "(sample: 50 tasks made from the demo set, not the table's data)" in title
    lead = next(line for line in done.stdout.splitlines() if " LEAD " in line)
    assert "11.61" in lead  # the mean of the five published figures


def test_statistics_count_what_is_there(data: Path, citerec_here: Citerec) -> None:
    made = json.loads(citerec_here("reproduce", "citesum-3", "--data", data, "--format", "json").stdout)
    found = {
        one["measure"]: one["measured"]["value"]
        for one in made["figures"]
        if one["row"] == "CiteSum" and one["measured"]
    }
    words = sum(len(sentence.split()) for sentence in ABSTRACT)
    targets = [len(ABSTRACT[number % 2].split()) for number in range(4)]
    assert found == {"test": 4, "words of source": words, "words of summary": sum(targets) / 4}


def test_the_total_of_statistics_is_over_all_data_sets(tmp_path: Path, citerec_here: Citerec) -> None:
    folder = tmp_path / "papers" / "text" / "citebench" / "test"
    for number, name in enumerate(("aburaed", "chen-delve", "chen-s2orc", "lu", "xing")):
        targets = ["In this paper, we find [0]."] * number + ["They find [0]."]
        write_lines(folder / f"{name}.jsonl", [{"input": ["A."], "target": target} for target in targets])
    made = json.loads(
        citerec_here("reproduce", "citebench-11", "--data", tmp_path / "papers", "--format", "json").stdout
    )
    total = {one["measure"]: one["measured"] for one in made["figures"] if one["row"] == "Total"}
    assert (total["Data points"]["value"], total["Ref to citing paper"]["value"]) == (15, 10)
    assert total["Prevalence %"] == {"value": pytest.approx(100 * 10 / 15), "n": 15, "ci": None, "sd": None, "runs": 1}
    assert made["notes"][0].startswith("ABURAED: without text/citebench/train/aburaed.jsonl")


def test_systems_are_measured_over_the_families_of_the_demo_set(citerec_here: Citerec, demo_index: Path) -> None:
    done = citerec_here("reproduce", "diagnostic-1", "--sample", "--index", demo_index, "--format", "json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    overall = next(one for one in made["figures"] if one["group"] == "overall" and one["measure"] == "R@10")
    assert overall["measured"]["value"] > 0.8
    assert {one["what"] for one in made["missing"]} == {"NCN", "LCR", "Galactica"}
    assert any(one["group"] == "location: last" for one in made["figures"])


@pytest.mark.parametrize("name", ["citebench-8", "citesum-8", "oarelatedwork-figure-4"])
def test_a_table_without_a_sample_says_why(name: str, citerec_here: Citerec) -> None:
    done = citerec_here("reproduce", name, "--sample")
    assert done.returncode == 2
    assert f"{name} has no sample" in done.stderr


def test_the_list_shows_what_each_table_needs(data: Path, citerec_here: Citerec) -> None:
    shown = citerec_here("reproduce", "list", "--data", data).stdout
    assert "citebench-3" in shown
    made = {
        one["name"]: one
        for one in json.loads(citerec_here("reproduce", "list", "--data", data, "--format", "json").stdout)
    }
    assert made["citesum-5"]["data"][0]["here"] is True
    assert made["citesum-9"]["data"][0]["here"] is False


def test_metrics_are_correlated_with_ratings(tmp_path: Path, citerec_here: Citerec) -> None:
    words = "one two three four five six seven eight".split()
    texts = [" ".join(words[:number]) + "." for number in range(2, 8)]  # the longer, the nearer to the target
    rated = [
        {
            "id": str(number),
            "input": ["A source."],
            "target": " ".join(words) + ".",
            "prediction": text,
            "ratings": {"coarse": number, "fine": -number},
        }
        for number, text in enumerate(texts)
    ]
    write_lines(tmp_path / "papers" / "ratings" / "longeval" / "pubmed.jsonl", rated)
    done = citerec_here("reproduce", "oarelatedwork-figure-4", "--data", tmp_path / "papers", "--format", "json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    coarse, fine = figures(made, "coarse"), figures(made, "fine")
    assert coarse["whole text: ROUGE-2"]["value"] > 0.95
    assert fine["whole text: ROUGE-2"]["value"] == pytest.approx(-coarse["whole text: ROUGE-2"]["value"])
    assert coarse["by blocks: ROUGE-2"] == coarse["whole text: ROUGE-2"]  # a sentence is one block
    assert "bertscore" in " ".join(one["what"] for one in made["missing"])


def test_inputs_of_related_work_come_from_the_published_records(tmp_path: Path, citerec_here: Citerec) -> None:
    folder = tmp_path / "papers" / "text" / "oarelatedwork" / "data"
    write_lines(folder / "test-00000-of-00002.jsonl", [{**PUBLISHED, "id": number} for number in (1, 2)])
    write_lines(folder / "test-00001-of-00002.jsonl", [{**PUBLISHED, "id": 3}])
    done = citerec_here("reproduce", "oarelatedwork-2", "--data", tmp_path / "papers", "--format", "json")
    assert done.returncode == 0, done.stderr
    r1 = figures(json.loads(done.stdout), "R1")
    assert {one["n"] for one in r1.values()} == {3}  # both files
    assert len(r1) == 11  # one input of LEAD, five each of Greedy Oracle and TextRank
    oracle = {given: r1[f"Greedy Oracle: {given}"]["value"] for given in ("abstracts", "all")}
    assert oracle["all"] >= oracle["abstracts"]
