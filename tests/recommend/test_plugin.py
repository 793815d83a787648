"""Parts of another package: named in entry points, used by every command, without a line changed in citerec."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

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


def test_its_parts_are_listed(citerec: Citerec, installed: dict[str, str]) -> None:
    shown = citerec("systems", **installed).stdout
    assert "title-words" in shown and "hybrid+newest-first" in shown
    assert "title-words" not in citerec("systems").stdout


def test_recommend_asks_them(citerec: Citerec, installed: dict[str, str], demo_index: Path) -> None:
    command = ["recommend", SENTENCE, "--index", demo_index, "-k", 5, "--format", "json", "--system"]
    first = json.loads(citerec(*command, "title-words", **installed).stdout)
    assert first[0]["title"] == "Attention Is All You Need"
    assert first[0]["score"] == 1.0
    newest = json.loads(citerec(*command, "title-words+newest-first", **installed).stdout)
    years = [hit["year"] for hit in newest]
    assert years == sorted(years, reverse=True)
    fused = json.loads(citerec(*command, "bm25+title-words", "--explain", **installed).stdout)
    assert "words of the title" in {reason["name"] for reason in fused[0]["reasons"]}


def test_its_settings_are_settings(citerec: Citerec, installed: dict[str, str], demo_index: Path) -> None:
    command = ["recommend", SENTENCE, "--index", demo_index, "--format", "json", "--system", "title-words", "-c"]
    few = json.loads(citerec(*command, "title_words.least=0.9", **installed).stdout)
    assert [hit["score"] for hit in few] == [1.0]
    wrong = citerec(*command, "title_words.most=0.9", **installed)
    assert wrong.returncode == 2
    assert "Did you mean title_words.least?" in wrong.stderr


def test_its_retriever_is_held_to_filters_and_leak_rules(
    citerec: Citerec, installed: dict[str, str], demo_index: Path
) -> None:
    command = ["recommend", SENTENCE, "--index", demo_index, "-k", 50, "--format", "json", "--system", "title-words"]
    everything = json.loads(citerec(*command, **installed).stdout)
    old = json.loads(citerec(*command, "--year-to", 2000, **installed).stdout)
    assert old
    assert {hit["paper_id"] for hit in old} == {hit["paper_id"] for hit in everything if hit["year"] <= 2000}
    best = everything[0]["paper_id"]
    without = json.loads(citerec(*command, "--citing", best, **installed).stdout)
    assert best not in {hit["paper_id"] for hit in without}
    assert all(hit["year"] <= everything[0]["year"] for hit in without)


def test_eval_measures_them(citerec: Citerec, installed: dict[str, str], demo_index: Path) -> None:
    command = ["eval", "--diagnostic", "demo/intent", "--index", demo_index, "--format", "json", "--metrics", "mrr@10"]
    systems = ["--system", "bm25", "--system", "title-words+newest-first", "--system", "bm25+title-words"]
    value = json.loads(citerec(*command, *systems, **installed).stdout)
    assert list(value["systems"]) == ["bm25", "title-words+newest-first", "bm25+title-words"]
    assert value["systems"]["title-words+newest-first"]["settings"]["newest_first"] == {"depth": 10}
    (mean,) = [
        one["value"] for one in value["means"] if (one["system"], one["class"]) == ("bm25+title-words", "overall")
    ]
    assert mean > 0.5


def test_index_build_reads_its_format(citerec: Citerec, installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_text("p1\tAttention Is All You Need\t2017\nno cells\np2\tOther things\t2001\n")
    built = citerec("index", "build", "mine.tsv", "--out", "mine", "--max-bad", 0.5, **installed)
    assert built.returncode == 0, built.stderr
    assert (
        "mine.tsv, line 2" in built.stderr
        or json.loads((tmp_path / "mine/1/quarantine.jsonl").read_text())["line"] == 2
    )
    hits = json.loads(citerec("recommend", SENTENCE, "--index", "mine", "--format", "json", **installed).stdout)
    assert (hits[0]["paper_id"], hits[0]["year"]) == ("p1", 2017)
    without = citerec("index", "build", "mine.tsv", "--read-as", "tsv", "--out", "other")
    assert without.returncode == 2
    assert "there is no format 'tsv'" in without.stderr


class Library(BaseHTTPRequestHandler):
    """A library of one paper."""

    def do_GET(self) -> None:
        paper = {"paper_id": "p1", "title": "Attention Is All You Need", "year": 2017}
        address = urlsplit(self.path)
        is_known = address.path in ("/search", "/doi/10.1/known")
        value = {"papers": [paper], "next": False} if address.path == "/search" else paper
        self.send_response(200 if is_known else 404)
        self.end_headers()
        self.wfile.write(json.dumps(value if is_known else {}).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_its_look_up_is_asked_by_name(installed: dict[str, str], tmp_path: Path) -> None:
    """The client, its pace, its errors and its cache are citerec's."""
    code = """
import sys
from citerec.sources.look_up import LOOK_UPS, Manners
library = LOOK_UPS["group-library"](Manners(url=sys.argv[1], pace=0.0))
print([paper.title for paper in library.search("attention").papers])
print(library.paper("10.1/known").year, library.paper("10.1/unknown"))
"""
    with ThreadingHTTPServer(("127.0.0.1", 0), Library) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        environment = {**os.environ, **installed, "XDG_CACHE_HOME": str(tmp_path)}
        result = subprocess.run(
            [sys.executable, "-c", code, url], env=environment, capture_output=True, text=True, timeout=120
        )
        server.shutdown()
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["['Attention Is All You Need']", "2017 None"]
