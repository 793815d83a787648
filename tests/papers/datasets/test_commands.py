"""`citerec data` from outside: data sets of CiteBench's sources and of full texts."""

import json
from pathlib import Path

from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line
from tests.papers.datasets.test_citebench import RECORDS


def test_citebench_of_several_sources(citerec_here: Citerec, tmp_path: Path) -> None:
    files = [write_lines(tmp_path / f"{name}.jsonl", [record]) for name, record in RECORDS.items()]
    result = citerec_here("data", "citebench", *files, "--out", "all.jsonl")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[1:] == [f"1  {name:7}" for name in RECORDS]
    records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [record["dataset"] for record in records] == list(RECORDS)
    assert records[2]["input"][:2] == ["<abs> We translate slang. </abs>", "<ctx_b> Much was done. </ctx_b>"]
    citerec_here("data", "citebench", tmp_path / "xing.jsonl", "--as-published", "--out", "published.jsonl")
    assert json.loads((tmp_path / "published.jsonl").read_text())["input"][2] == "We translate slang."


def test_citesum_and_related_work(citerec_here: Citerec, corpus: tuple[Path, Path], tmp_path: Path) -> None:
    index, texts = corpus
    common = (texts, "--index", index, "-c", "validation=0", "-c", "test=0", "--out")
    result = citerec_here("data", "citesum", *common, "set")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "set written: train 2, validation 0, test 0."
    assert "2  of them, near enough to the abstract" in result.stdout
    assert "1  it holds several citations" in result.stdout
    assert "Set aside: 1 lines that are not full texts" in result.stderr
    result = citerec_here("data", "related-work", *common, "related")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "related written: train 1, validation 0, test 0."
    row = json.loads((tmp_path / "related" / "train.jsonl").read_text())
    assert row["input"][0] == "<abs> Peaks are sorted. </abs>"
    one_line(citerec_here("data", "related-work", *common, "set"), 2, "set holds the data set citesum, not oarelated")
    one_line(citerec_here("data", "related-work", texts, "--out", "out"), 2, "index")
    other = write_lines(tmp_path / "other.jsonl", [{"text": "?"}])
    for file, code, told in (("missing.json", 2, "missing.json"), (other, 1, "none of the four data sets")):
        one_line(citerec_here("data", "citebench", file, "--out", "out"), code, told)
    assert not (tmp_path / "out").exists()
