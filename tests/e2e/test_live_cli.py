"""Systems that ask a web service, on the command line, in a folder without an index."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Citerec
from tests.live.services import Services, demo_papers, sent

SENTENCE = "Attention alone suffices to translate well <REF>."


@pytest.fixture
def services() -> Iterator[Services]:
    found = Services(demo_papers())
    yield found
    found.stop()


def live(services: Services, system: str = "s2-api") -> list[str]:
    """The options with which a command asks the server."""
    return ["--system", system, *(part for setting in services.settings for part in ("-c", setting))]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("S2_API_KEY", "OPENALEX_API_KEY", "CITEREC_EMAIL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("system", ["s2-api", "openalex-api", "s2-api+openalex-api"])
def test_the_first_question_needs_no_index(citerec_here: Citerec, services: Services, system: str) -> None:
    shown = citerec_here("recommend", SENTENCE, *live(services, system), "-k", 2, "--explain")
    assert shown.returncode == 0
    assert "1  Attention Is All You Need" in shown.stdout
    assert "matched: Attention (title+abstract), translate (abstract)" in shown.stdout
    assert shown.stderr == ""
    (first, *_) = json.loads(citerec_here("recommend", SENTENCE, *live(services, system), "--format", "json").stdout)
    assert first["external_ids"] == {"DOI": "10.5555/900000041"} | ({"MAG": "17"} if system == "openalex-api" else {})
    entry = citerec_here("recommend", SENTENCE, *live(services, system), "-k", 1, "--format", "bibtex").stdout
    assert entry.startswith("@inproceedings{vaswani2017attention,")


def test_contexts_are_answered_too(citerec_here: Citerec, services: Services, tmp_path: Path) -> None:
    contexts = [{"context_id": "a", "text": SENTENCE, "citing_year": 2010}, {"context_id": "b", "text": SENTENCE}]
    (tmp_path / "contexts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in contexts))
    shown = citerec_here("run", "contexts.jsonl", *live(services), "--format", "json", "-k", 3)
    old, new = map(json.loads, shown.stdout.splitlines())
    assert new["hits"][0]["paper_id"] == 900000041
    assert all(hit["year"] <= 2010 for hit in old["hits"])


def test_a_draft_is_filled(citerec_here: Citerec, services: Services, tmp_path: Path) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text("Attention alone suffices to translate well [@?].\n")
    filled = citerec_here("fill", "draft.md", "--bib", "refs.bib", "--yes", *live(services))
    assert filled.returncode == 0
    assert draft.read_text() == "Attention alone suffices to translate well [@vaswani2017attention].\n"
    assert (tmp_path / "refs.bib").read_text().startswith("@inproceedings{vaswani2017attention,")


def test_what_is_about_an_index_is_refused(citerec_here: Citerec, services: Services, tmp_path: Path) -> None:
    (tmp_path / "draft.md").write_text("Attention [@?].\n")
    for command in (
        ["recommend", SENTENCE, "--sort", "newest"],
        ["recommend", SENTENCE, "--cited", "refs.bib"],
        ["recommend", SENTENCE, "--citing", "7"],
        ["recommend", SENTENCE, "--min-confidence", "0.5"],
        ["fill", "draft.md", "--bib", "refs.bib", "--citing", "7"],
    ):
        refused = citerec_here(*command, *live(services))
        assert refused.returncode == 2
        assert f"{command[-2]} goes with --index only" in refused.stderr
    assert services.asked == []


def test_failures_are_one_line(citerec: Citerec, services: Services, silent_port: int) -> None:
    services.bad = [sent({"message": "Forbidden"}, 403)]
    refused = citerec("recommend", SENTENCE, *live(services))
    offline = citerec("recommend", SENTENCE, *live(services), "-c", f"s2_api.url=http://127.0.0.1:{silent_port}")
    wrong = citerec("recommend", SENTENCE, "--system", "s2-api", "-c", "s2_api.url=here")
    for failed, remedy in ((refused, "S2_API_KEY"), (offline, "citerec index build"), (wrong, "systems --settings")):
        assert failed.returncode == 2
        assert failed.stdout == ""
        assert len(failed.stderr.splitlines()) == 1
        assert remedy in failed.stderr


def test_help_says_what_is_sent(citerec_here: Citerec) -> None:
    shown = " ".join(citerec_here("recommend", "--help").stdout.split())
    assert "Those that end in -api send words of your text to a web service, and need no index" in shown


def test_java_and_models_are_not_loaded(services: Services, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from citerec import Recipe, Recommender\n"
        f"recipe = Recipe.load('s2-api', {services.settings!r})\n"
        f"assert Recommender.open(system=recipe).search({SENTENCE!r}, 1)\n"
        "print(sorted({'torch', 'transformers', 'jpype', 'sklearn', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ), check=True, timeout=120
    )
    assert done.stdout == "[]\n"
