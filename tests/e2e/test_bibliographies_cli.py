"""Bibliographies in and out: RIS and CSL-JSON beside BibTeX, as a newcomer gives and gets them."""

import json
from pathlib import Path

import pytest
import rispy

from citerec.index.manifest import generation_of
from tests.conftest import Citerec

RIS = """TY  - JOUR
ID  - lee2001
AU  - Lee, Ann
TI  - The okapi &amp; its <i>habitat</i>
T2  - Journal of Zoology
PY  - 2001
DO  - 10.1000/okapi
ER  -
TY  - CONF
T1  - Giraffes
ER  -
"""
CSL = [
    {"id": "roe2003", "type": "paper-conference", "title": "Zebras", "container-title": "Proceedings of Zoos"},
    {"id": "attention", "type": "article", "title": "Attention is all you need", "issued": {"raw": "2017"}},
    {"id": "nothing", "type": "article"},
]


@pytest.fixture
def zoo(tmp_path: Path, citerec_here: Citerec) -> Path:
    (tmp_path / "my.ris").write_bytes(RIS.replace("\n", "\r\n").encode("utf-8-sig"))
    (tmp_path / "my.json").write_text(json.dumps(CSL, indent=1))
    built = citerec_here("index", "build", tmp_path / "my.ris", "--out", tmp_path / "zoo")
    assert "zoo built: 2 papers.\n" in built.stdout, built.stderr
    added = citerec_here("index", "add", tmp_path / "zoo", tmp_path / "my.json")
    assert "4 papers" in added.stdout, added.stderr
    (bad,) = map(json.loads, (generation_of(tmp_path / "zoo") / "quarantine.jsonl").read_text().splitlines())
    assert (Path(bad["shard"]).name, bad["reason"]) == ("my.json", "neither title nor abstract: nothing to search")
    assert bad["line"] == 16
    return tmp_path / "zoo"


def test_ris_and_csl_in_all_forms_out(zoo: Path, citerec_here: Citerec) -> None:
    def shown(*options: str) -> str:
        run = citerec_here("recommend", "the okapi <REF>", "--index", zoo, "-k", 1, *options)
        assert run.returncode == 0, run.stderr
        return run.stdout

    (hit,) = json.loads(shown("--format", "json"))
    assert (hit["paper_id"], hit["title"], hit["authors"]) == ("lee2001", "The okapi & its habitat", ["Ann Lee"])
    assert "The okapi & its habitat" in shown()
    (item,) = json.loads(shown("--format", "csl"))
    assert (item["type"], item["container-title"]) == ("article-journal", "Journal of Zoology")
    (record,) = rispy.loads(shown("--format", "ris"))
    assert (record["type_of_reference"], record["doi"]) == ("JOUR", "10.1000/okapi")
    assert shown("--format", "bibtex").startswith("@article{lee2001okapi,\n  author = {Ann Lee},\n")


@pytest.mark.parametrize("name", ["refs.ris", "refs.json"])
def test_what_a_draft_cites_may_be_ris_or_csl(
    name: str, hybrid_index: Path, tmp_path: Path, citerec_here: Citerec
) -> None:
    text = "TY  - GEN\nTI  - Attention is all you need\nPY  - 2017\n" if name.endswith("ris") else json.dumps(CSL)
    (tmp_path / name).write_text(text)
    run = citerec_here("recommend", "Networks learn <REF>.", "--index", hybrid_index, "--cited", tmp_path / name)
    assert run.returncode == 0, run.stderr
    assert f"has 1 of the {1 if name.endswith('ris') else 2} papers that the draft cites" in run.stderr


def test_a_broken_list_is_one_line(demo_index: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "broken.json").write_text('[{"type": "book", "title": "x"}, {"a": ')
    broken = citerec_here("recommend", "x <REF>", "--index", demo_index, "--cited", tmp_path / "broken.json")
    assert broken.returncode == 2
    assert len(broken.stderr.splitlines()) == 1
    assert "broken.json, line 1: its list is no JSON" in broken.stderr
