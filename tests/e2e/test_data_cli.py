"""`citerec data` from outside."""

import json
from pathlib import Path

import pytest

from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line
from tests.papers.datasets.conftest import ABSTRACTS
from tests.papers.datasets.s2orc_records import s2orc_record
from tests.papers.datasets.test_citebench import RECORDS

TEXT = s2orc_record(
    900,
    [
        ("", "Abstract", ["We draw maps of water."]),
        ("1", "Introduction", ["Water is on maps."]),
        (
            "2",
            "Related Work",
            [
                "Roe et al. [1] find the mouth of every river by following water downhill. It is fast. "
                "Lakes are counted from pictures taken by night [2]."
            ],
        ),
        ("3", "Method", ["We draw."]),
    ],
    {1: 1, 2: 2},
)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A shard and the papers that it cites, side by side."""
    papers = [{"paper_id": number, "title": f"Paper {number}", "abstract": text} for number, text in ABSTRACTS.items()]
    write_lines(tmp_path / "papers.jsonl", papers)
    return write_lines(tmp_path / "s2orc-0.jsonl", [TEXT])


def test_citebench_of_several_sources(citerec: Citerec, tmp_path: Path) -> None:
    files = [write_lines(tmp_path / f"{name}.jsonl", [record]) for name, record in RECORDS.items()]
    result = citerec("data", "citebench", *files, "--out", "all.jsonl")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "all.jsonl written. Citation texts, by data set:",
        *(f"1  {name:7}" for name in RECORDS),
    ]
    records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [record["dataset"] for record in records] == list(RECORDS)
    assert records[2]["input"] == [
        "<abs> We translate slang. </abs>",
        "<ctx_b> Much was done. </ctx_b>",
        "We translate news.",
        "<ctx_a> We go on. </ctx_a>",
    ]
    result = citerec("data", "citebench", tmp_path / "xing.jsonl", "--as-published", "--out", "published.jsonl")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "published.jsonl").read_text())["input"][2] == "We translate slang."


def test_a_bad_record_is_told_and_work_goes_on(citerec: Citerec, tmp_path: Path) -> None:
    source = tmp_path / "lu.jsonl"
    write_lines(source, [RECORDS["lu"]] * 3)
    with source.open("a") as file:
        file.write("{broken\n")
    result = citerec("data", "citebench", source, "--max-bad", "0.3", "--out", "lu-out.jsonl")
    assert result.returncode == 0, result.stderr
    assert result.stderr == "Records set aside: 1. See lu-out.jsonl.quarantine.jsonl\n"
    assert "not JSON" in (tmp_path / "lu-out.jsonl.quarantine.jsonl").read_text()


def test_pairs_and_related_work(citerec: Citerec, texts: Path, tmp_path: Path) -> None:
    assert citerec("index", "build", "papers.jsonl", "--out", "index").returncode == 0
    common = ("--index", "index", "-c", "validation=0", "-c", "test=0")
    result = citerec("data", "citesum", texts, "--out", "citesum", *common)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "citesum written: train 2, validation 0, test 0."
    assert "2  of them, near enough to the abstract" in result.stdout
    rows = [json.loads(line) for line in (tmp_path / "citesum" / "train.jsonl").read_text().splitlines()]
    assert [row["paper_id"] for row in rows] == ["1", "2"]
    assert rows[0]["target"] == "REF find the mouth of every river by following water downhill."

    result = citerec("data", "related-work", texts, "--out", "related", *common)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "related written: train 1, validation 0, test 0."
    (row,) = [json.loads(line) for line in (tmp_path / "related" / "train.jsonl").read_text().splitlines()]
    assert row["input"][0] == "<abs> We draw maps of water. </abs>"
    assert row["target"].endswith("taken by night [1].")


def test_what_is_wrong_is_one_line(citerec_here: Citerec, texts: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "other.jsonl", [{"text": "?"}])
    write_lines(tmp_path / "bad.jsonl", [{**RECORDS["lu"], "related_work": 3}])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    citebench = ("data", "citebench")
    one_line(citerec_here(*citebench, "missing.json", "--out", "out.jsonl"), 2, "missing.json")
    one_line(citerec_here(*citebench, "other.jsonl", "--out", "out.jsonl"), 1, "none of the four data sets", "xing has")
    one_line(citerec_here(*citebench, "bad.jsonl", "--out", "out.jsonl"), 1, "bad.jsonl, line 1: related_work")
    one_line(citerec_here(*citebench, "bad.jsonl", "--out", "full"), 2, "full is a folder")
    one_line(citerec_here(*citebench, "bad.jsonl"), 2, "--out")
    for builder in ("citesum", "related-work"):
        command = ("data", builder, texts)
        one_line(citerec_here(*command, "--index", "nothing", "--out", "out"), 2, "nothing")
        one_line(citerec_here(*command, "--out", "out"), 2, "index")
    assert citerec_here("index", "build", "papers.jsonl", "--out", "index").returncode == 0
    citesum = ("data", "citesum", "--index", "index")
    one_line(citerec_here(*citesum, texts, "--out", "full"), 2, "is no data set of texts")
    one_line(citerec_here(*citesum, texts, "-c", "rouge1=50", "--out", "out"), 2, "50")
    one_line(citerec_here(*citesum, texts, "-c", "split=klingon", "--out", "out"), 2, "klingon")
    one_line(citerec_here(*citesum, texts, "-c", "validation=0.7", "-c", "test=0.7", "--out", "out"), 2, "add up")
    one_line(citerec_here(*citesum, texts, "-c", "rouge1=1", "--out", "out"), 1, "no text is kept")
    one_line(citerec_here(*citesum, "nowhere", "--out", "out"), 2, "nowhere does not exist")
    one_line(citerec_here(*citesum, "other.jsonl", "--out", "out"), 1, "1 of 1 texts are bad")
    assert not (tmp_path / "out").exists()
    assert citerec_here(*citesum, texts, "--out", "set").returncode == 0
    related = ("data", "related-work", "--index", "index")
    one_line(citerec_here(*related, texts, "--out", "set"), 2, "set holds the data set citesum, not oarelatedwork")
