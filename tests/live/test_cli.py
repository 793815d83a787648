"""Systems that ask a web service, on the command line, in a folder without an index."""

import json
from pathlib import Path

from tests.conftest import Citerec, write_lines
from tests.e2e.test_cli import one_line
from tests.live.services import Services, sent

SENTENCE = "Attention alone suffices to translate well <REF>."


def live(services: Services, system: str = "s2-api") -> list[str]:
    """The options with which a command asks the server."""
    return ["--system", system, *(part for setting in services.settings for part in ("-c", setting))]


def test_the_first_question_needs_no_index(citerec_here: Citerec, services: Services) -> None:
    ask = ("recommend", SENTENCE, *live(services, "s2-api+openalex-api"))
    shown = citerec_here(*ask, "-k", 2, "--explain", "--scores")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "1  Attention Is All You Need" in shown.stdout
    assert "matched: Attention (title+abstract), translate (abstract)" in shown.stdout
    assert json.loads(citerec_here(*ask, "--format", "json").stdout)[0]["external_ids"]["DOI"] == "10.5555/900000041"
    entry = citerec_here(*ask, "-k", 1, "--format", "bibtex").stdout
    assert entry.startswith("@inproceedings{vaswani2017attention,")


def test_contexts_are_answered_and_drafts_filled(citerec_here: Citerec, services: Services, tmp_path: Path) -> None:
    contexts = [{"context_id": "a", "text": SENTENCE, "citing_year": 2010}, {"context_id": "b", "text": SENTENCE}]
    write_lines(tmp_path / "contexts.jsonl", contexts)
    shown = citerec_here("run", "contexts.jsonl", *live(services), "--format", "json", "-k", 3)
    old, new = map(json.loads, shown.stdout.splitlines())
    assert new["hits"][0]["paper_id"] == 900000041
    assert all(hit["year"] <= 2010 for hit in old["hits"])
    draft = tmp_path / "draft.md"
    draft.write_text("Attention alone suffices to translate well [@?].\n")
    assert citerec_here("fill", "draft.md", "--bib", "refs.bib", "--yes=any", *live(services)).returncode == 0
    assert draft.read_text() == "Attention alone suffices to translate well [@vaswani2017attention].\n"
    assert (tmp_path / "refs.bib").read_text().startswith("@inproceedings{vaswani2017attention,")


def test_what_is_refused_and_fails_is_one_line(citerec_here: Citerec, services: Services, tmp_path: Path) -> None:
    (tmp_path / "draft.md").write_text("Attention [@?].\n")
    refused = citerec_here("recommend", SENTENCE, "--cited", "refs.bib", *live(services))
    one_line(refused, 2, "--cited goes with --index only")
    refused = citerec_here("fill", "draft.md", "--bib", "refs.bib", "--citing", "7", *live(services))
    one_line(refused, 2, "--citing goes with --index only")
    assert services.asked == []
    services.bad = [sent({"message": "Forbidden"}, 403)]
    one_line(citerec_here("recommend", SENTENCE, *live(services)), 2, "S2_API_KEY")
