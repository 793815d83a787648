"""Bibliographies in and out: RIS and CSL-JSON beside BibTeX, as a newcomer gives and gets them."""

import json
from pathlib import Path

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
    {"id": "nothing", "type": "article"},
]


def test_ris_and_csl_in_all_forms_out(tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "my.ris").write_bytes(RIS.replace("\n", "\r\n").encode("utf-8-sig"))
    (tmp_path / "my.json").write_text(json.dumps(CSL, indent=1))
    built = citerec_here("index", "build", tmp_path / "my.ris", "--out", "zoo")
    assert "zoo built: 2 papers.\n" in built.stdout, built.stderr
    added = citerec_here("index", "add", "zoo", tmp_path / "my.json")
    assert "3 papers" in added.stdout, added.stderr
    (bad,) = map(json.loads, (generation_of(tmp_path / "zoo") / "quarantine.jsonl").read_text().splitlines())
    assert (Path(bad["shard"]).name, bad["line"]) == ("my.json", 8) and "neither title nor abstract" in bad["reason"]

    def shown(*options: str) -> str:
        run = citerec_here("recommend", "the okapi <REF>", "--index", "zoo", "-k", 1, *options)
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
