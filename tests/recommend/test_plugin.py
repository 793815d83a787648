"""Parts of another package: named in entry points, used by every command, without a line changed in citerec."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Citerec

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


def test_its_parts_are_named_in_help(citerec: Citerec, installed: dict[str, str]) -> None:
    shown = " ".join(citerec("recommend", "--help", **installed).stdout.split())
    assert "title-words" in shown
    assert "hybrid+newest-first" in shown
    without = " ".join(citerec("recommend", "--help").stdout.split())
    assert "title-words" not in without


def test_recommend_asks_them(citerec: Citerec, installed: dict[str, str], demo_index: Path) -> None:
    command = ["recommend", SENTENCE, "--index", demo_index, "-k", 5, "--json", "--system"]
    first = json.loads(citerec(*command, "title-words", **installed).stdout)
    assert first[0]["title"] == "Attention Is All You Need"
    assert first[0]["score"] == 1.0
    newest = json.loads(citerec(*command, "title-words+newest-first", **installed).stdout)
    years = [hit["year"] for hit in newest]
    assert years == sorted(years, reverse=True)
    fused = json.loads(citerec(*command, "bm25+title-words", "--explain", **installed).stdout)
    assert "words of the title" in {reason["name"] for reason in fused[0]["reasons"]}


def test_its_settings_are_settings(citerec: Citerec, installed: dict[str, str], demo_index: Path) -> None:
    command = ["recommend", SENTENCE, "--index", demo_index, "--json", "--system", "title-words", "--set"]
    few = json.loads(citerec(*command, "title_words.least=0.9", **installed).stdout)
    assert [hit["score"] for hit in few] == [1.0]
    wrong = citerec(*command, "title_words.most=0.9", **installed)
    assert wrong.returncode == 2
    assert "Did you mean title_words.least?" in wrong.stderr


def test_its_retriever_is_held_to_filters_and_leak_rules(
    citerec: Citerec, installed: dict[str, str], demo_index: Path
) -> None:
    command = ["recommend", SENTENCE, "--index", demo_index, "-k", 50, "--json", "--system", "title-words"]
    everything = json.loads(citerec(*command, **installed).stdout)
    old = json.loads(citerec(*command, "--year-to", 2000, **installed).stdout)
    assert old
    assert {hit["paper_id"] for hit in old} == {hit["paper_id"] for hit in everything if hit["year"] <= 2000}
    best = everything[0]["paper_id"]
    without = json.loads(citerec(*command, "--citing", best, **installed).stdout)
    assert best not in {hit["paper_id"] for hit in without}
    assert all(hit["year"] <= everything[0]["year"] for hit in without)


def test_eval_measures_them(citerec: Citerec, installed: dict[str, str], demo_index: Path) -> None:
    command = ["eval", "--diagnostic", "demo/intent", "--index", demo_index, "--json", "--metrics", "mrr@10"]
    systems = ["--system", "bm25", "--system", "title-words+newest-first", "--system", "bm25+title-words"]
    value = json.loads(citerec(*command, *systems, **installed).stdout)
    assert list(value["systems"]) == ["bm25", "title-words+newest-first", "bm25+title-words"]
    assert value["systems"]["title-words+newest-first"]["settings"]["newest_first"] == {"depth": 10}
    assert value["systems"]["bm25+title-words"]["overall"]["mrr@10"] > 0.5
