"""`citerec diagnostics build` from outside: stopped and its options, and whatever is given wrong."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Citerec, s2ag_paper, write_lines
from tests.e2e.test_cli import one_line
from tests.unit.test_build import MAX_BAD, World, digests, lines_of, write_strangers, write_truth


def test_what_was_built_is_told_and_can_be_used(citerec_here: Citerec, tmp_path: Path, s2_release: Path) -> None:
    write_truth(tmp_path / "contexts.jsonl", World(s2_release))  # from contexts: quick
    contexts = ("diagnostics", "build", "--papers", s2_release / "papers", "--from", "contexts.jsonl", "--workers", 1)
    result = citerec_here(*contexts, "--out", "mine", "-c", "oversample=1000", code=0)
    assert "There is no spaCy model en_core_web_sm" in result.stderr and len(result.stderr.splitlines()) == 1
    place = tmp_path / "diagnostics" / "mine"
    assert f"diagnostics/mine  {len(lines_of(place / 'contexts.jsonl')):,} contexts chosen" in result.stdout
    assert re.search(r"^1,500 +papers of the corpus *$", result.stdout, re.MULTILINE)
    assert re.search(r"citerec eval --set mine$", result.stdout, re.MULTILINE)
    assert re.search(r"^mine/location +\d+ ", citerec_here("diagnostics", "show").stdout, re.MULTILINE)
    assert "the marker is the last word" in citerec_here("diagnostics", "show", "mine/length").stdout

    # It is replaced by one with other options, and by nothing if anything else lies in it.
    options = ["--quota", 2, "--quota", "length=3", "--quota", "intent=0", "-c", "conditions=false", "-c", "seed=3"]
    result = citerec_here(*contexts, "--out", "mine", *options, code=0)
    manifest = json.loads((place / "manifest.json").read_bytes())
    quota = {"length": 3, "location": 2, "intent": 0, "pos_before": 2, "pos_after": 2, "low_resource": 2}
    sampling = manifest["sampling"]
    assert (sampling["quota"], sampling["seed"]) == (quota, 3)
    assert "intent" not in manifest["families"] and manifest["families"]["length"]["conditions"] == []
    (place / "notes.txt").write_text("precious")
    before = digests(place)
    one_line(citerec_here(*contexts, "--out", "mine"), 2, "holds other things too, such as notes.txt")
    assert digests(place) == before


@pytest.fixture
def place(tmp_path: Path, s2_release: Path) -> Path:
    """A folder with all that can be given wrong, and `texts`, `papers` that are right."""
    (tmp_path / "texts").symlink_to(s2_release / "s2orc_v2")
    (tmp_path / "papers").symlink_to(s2_release / "papers")
    (tmp_path / "both").symlink_to(s2_release)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("precious")
    write_strangers(tmp_path)
    art = {"authors": [{"name": "A. B"}], "s2fieldsofstudy": [{"category": "Art", "source": "external"}]}
    uncounted = [s2ag_paper(number, f"Title {number}", year=2001, venue="V", **art) for number in range(1, 40)]
    write_lines(tmp_path / "uncounted" / "papers" / "p.jsonl", uncounted)
    return tmp_path


TEXTS, PAPERS = ["--s2orc", "texts"], ["--papers", "papers"]


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        ([*PAPERS], 2, ["give full texts with --s2orc, or contexts with --from"]),
        ([*PAPERS, "--s2orc", "both"], 2, ["both holds both versions of S2ORC", "both/s2orc or both/s2orc_v2"]),
        (["--papers", "uncounted/papers", *TEXTS], 2, ["citation count", "citerec diagnostics label"]),
        ([*PAPERS, "--from", "strangers.jsonl"], 2, ["of 1 papers that the texts cite, the corpus has 0"]),
        ([*PAPERS, *TEXTS, "--max-bad", "0"], 1, ["are bad, more than", "--max-bad"]),
        ([*PAPERS, *TEXTS, "--out", "./thesis"], 2, ["exists and is no diagnostic set"]),
        ([*PAPERS, *TEXTS, "--quota", "unknown=1"], 2, ["'unknown' has no quota of its own", "length"]),
        ([*PAPERS, *TEXTS, "--spacy-model", "en_core_web_nope"], 2, ["en_core_web_nope cannot be loaded"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and "--" in "".join(value) else "",
)
def test_wrong_input(citerec_here: Citerec, place: Path, arguments: list[str], code: int, parts: list[str]) -> None:
    out = [] if "--out" in arguments else ["--out", "./mine"]
    allowed = [] if "--max-bad" in arguments else ["--max-bad", MAX_BAD]
    one_line(citerec_here("diagnostics", "build", "--workers", 1, *allowed, *arguments, *out), code, *parts)
    assert not (place / "mine").exists()
    assert [path.name for path in (place / "thesis").iterdir()] == ["thesis.tex"]
    if "cannot be loaded" in parts[0]:  # told before any work: with a real release the papers alone take an hour
        assert not list(place.glob(".mine.work/*/*"))


def test_fields_of_other_names_are_mapped(citerec_here: Citerec, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("key,name,when\na1,Neural ranking,2019\na2,Citation graphs,2018\n")
    write_lines(tmp_path / "mine.jsonl", [{"key": "a3", "name": "Rhetorical roles", "when": 2020}])
    names = ["--map", "paper_id=key", "--map", "title=name", "--map", "year=when"]
    citerec_here("index", "build", "mine.csv", *names, "--out", "mine", code=0)
    citerec_here("index", "add", "mine", "mine.jsonl", *names, code=0)
    assert re.search(r"^years +2018–2020 *$", citerec_here("index", "info", "mine").stdout, re.MULTILINE)
    answer = citerec_here("recommend", "Roles <REF>", "--index", "mine", "--format", "json", code=0)
    assert json.loads(answer.stdout)[0]["paper_id"] == "a3"
    one_line(citerec_here("index", "build", "mine.csv", "--map", "nam=name", "--out", "x"), 2, "papers have no 'nam'")
    wrong = citerec_here("index", "build", "mine.csv", "--read-as", "ris", *names, "--out", "x")
    one_line(wrong, 2, "the names of ris are fixed")
