"""Parts of another package: named in entry points, used by every command, without a line changed in citerec."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Citerec
from tests.loopback import Server, send

pytestmark = pytest.mark.slow

SENTENCE = "Attention is all you need to translate <REF>."


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The package, installed into a folder of its own: an environment in which citerec finds it."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([*command, target, ROOT / "tests" / "plugin"], check=True, capture_output=True, timeout=300)
    paths = [str(target), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths)}


def test_its_parts_are_listed_asked_set_and_measured(
    citerec: Citerec, installed: dict[str, str], demo_index: Path, tmp_path: Path
) -> None:
    shown = citerec("systems", **installed).stdout
    assert "title-words" in shown and "hybrid+newest-first" in shown
    assert "title-words" not in citerec("systems").stdout

    def recommended(system: str, *more: object) -> list[dict[str, Any]]:
        command = ["recommend", SENTENCE, "--index", demo_index, "-k", 50, "--format", "json", "--system", system]
        done = citerec(*command, *more, **installed)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    everything = recommended("title-words")
    assert (everything[0]["title"], everything[0]["score"]) == ("Attention Is All You Need", 1.0)
    assert [hit["score"] for hit in recommended("title-words", "-c", "title_words.least=0.9")] == [1.0]
    # Its retriever is held to filters and leak rules.
    old = recommended("title-words", "--year-to", 2000)
    assert {hit["paper_id"] for hit in old} == {hit["paper_id"] for hit in everything if hit["year"] <= 2000}
    best = everything[0]
    without = recommended("title-words", "--citing", best["paper_id"])
    assert all(hit["paper_id"] != best["paper_id"] and hit["year"] <= best["year"] for hit in without)
    years = [hit["year"] for hit in recommended("title-words+newest-first")][:10]
    assert years == sorted(years, reverse=True)
    fused = recommended("bm25+title-words", "--explain")
    assert "words of the title" in {reason["name"] for reason in fused[0]["reasons"]}
    command = ["eval", "--diagnostic", "demo/intent", "--index", demo_index, "--format", "json", "--metrics", "mrr@10"]
    value = json.loads(citerec(*command, "--system", "title-words+newest-first", **installed).stdout)
    assert value["systems"]["title-words+newest-first"]["settings"]["newest_first"] == {"depth": 10}
    # Its format is read.
    (tmp_path / "mine.tsv").write_text("p1\tAttention Is All You Need\t2017\nno cells\np2\tOther things\t2001\n")
    built = citerec("index", "build", "mine.tsv", "--out", "mine", "--max-bad", 0.5, **installed)
    assert built.returncode == 0, built.stderr
    assert json.loads((tmp_path / "mine/1/quarantine.jsonl").read_text())["line"] == 2
    hits = json.loads(citerec("recommend", SENTENCE, "--index", "mine", "--format", "json", **installed).stdout)
    assert (hits[0]["paper_id"], hits[0]["year"]) == ("p1", 2017)


def test_its_look_up_is_asked_by_name(installed: dict[str, str], tmp_path: Path) -> None:
    """The client, its pace, its errors and its cache are citerec's."""
    code = """
import sys
from citerec.sources.look_up import LOOK_UPS, Manners
library = LOOK_UPS["group-library"](Manners(url=sys.argv[1], pace=0.0))
print([paper.title for paper in library.search("attention").papers])
print(library.paper("10.1/known").year, library.paper("10.1/unknown"))
"""
    paper = {"paper_id": "p1", "title": "Attention Is All You Need", "year": 2017}
    library = Server()
    library.answers = [send(body=json.dumps(one).encode()) for one in ({"papers": [paper], "next": False}, paper)]
    library.answers.append(send(404))
    environment = {**os.environ, **installed, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", code, library.url]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    library.stop()
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["['Attention Is All You Need']", "2017 None"]
