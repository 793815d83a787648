"""`citerec data` from outside."""

import json
from pathlib import Path

import pytest

from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line
from tests.papers.datasets.conftest import ABSTRACTS
from tests.papers.datasets.s2orc_records import s2orc_record
from tests.papers.datasets.test_citebench import RECORDS

RELATED = (
    "Roe et al. [1] find the mouth of every river by following water downhill. It is fast. "
    "Lakes are counted from pictures taken by night [2]."
)
SECTIONS = [
    ("", "Abstract", ["We draw maps of water."]),
    ("1", "Introduction", ["Water is on maps."]),
    ("2", "Related Work", [RELATED]),
    ("3", "Method", ["We draw."]),
]
TEXT = s2orc_record(900, SECTIONS, {1: 1, 2: 2})


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A shard and the papers that it cites, side by side."""
    papers = [{"paper_id": number, "title": f"Paper {number}", "abstract": text} for number, text in ABSTRACTS.items()]
    write_lines(tmp_path / "papers.jsonl", papers)
    return write_lines(tmp_path / "s2orc-0.jsonl", [TEXT])


def test_citebench_of_several_sources(citerec_here: Citerec, tmp_path: Path) -> None:
    files = [write_lines(tmp_path / f"{name}.jsonl", [record]) for name, record in RECORDS.items()]
    result = citerec_here("data", "citebench", *files, "--out", "all.jsonl", code=0)
    assert result.stdout.splitlines()[1:] == [f"1  {name:7}" for name in RECORDS]
    records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [record["dataset"] for record in records] == list(RECORDS)
    citerec_here("data", "citebench", tmp_path / "xing.jsonl", "--as-published", "--out", "published.jsonl")
    assert json.loads((tmp_path / "published.jsonl").read_text())["input"][2] == "We translate slang."


def test_pairs_and_related_work(citerec_here: Citerec, texts: Path, tmp_path: Path) -> None:
    citerec_here("index", "build", "papers.jsonl", "--out", "index", code=0)
    common = ("--index", "index", "-c", "validation=0", "-c", "test=0")
    result = citerec_here("data", "citesum", texts, "--out", "citesum", *common, code=0)
    assert result.stdout.splitlines()[0] == "citesum written: train 2, validation 0, test 0."
    assert "2  of them, near enough to the abstract" in result.stdout
    result = citerec_here("data", "related-work", texts, "--out", "related", *common, code=0)
    assert result.stdout.splitlines()[0] == "related written: train 1, validation 0, test 0."


def test_what_is_wrong_is_one_line(citerec_here: Citerec, texts: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "other.jsonl", [{"text": "?"}])
    citerec_here("index", "build", "papers.jsonl", "--out", "index", code=0)
    for arguments, code, told in [
        (("citebench", "missing.json"), 2, "missing.json"),
        (("citebench", "other.jsonl"), 1, "none of the four data sets"),
        (("related-work", texts), 2, "index"),
    ]:
        one_line(citerec_here("data", *arguments, "--out", "out"), code, told)
    assert not (tmp_path / "out").exists()
    citerec_here("data", "citesum", "--index", "index", texts, "--out", "set", code=0)
    again = citerec_here("data", "related-work", "--index", "index", texts, "--out", "set")
    one_line(again, 2, "set holds the data set citesum, not oarelatedwork")
