"""A corpus whose every text tries to control the terminal: nothing of it gets there."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import CITEREC, Citerec, s2ag_paper, write_lines

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\x9d0;x\x9c\x7f\x08"
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
ENTRY = f"@Article{{own ,\r\n title={{Okapi own{ESCAPES}}},\tauthor={{Lee{ESCAPES}, Kim}}, journal={{J{ESCAPES}}}\r\n}}"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    text = f"okapi{ESCAPES} words"
    release = tmp_path / "release"
    named = {"authors": [{"name": text}], "externalids": {"DOI": text}, "s2fieldsofstudy": [{"category": text}]}
    write_lines(release / "papers" / "p.jsonl", [s2ag_paper(1, text, venue=text, year=2001, **named)])
    write_lines(release / "abstracts" / "a.jsonl", [{"corpusid": 1, "abstract": f"{text}. {text}."}])
    write_lines(release / "tldrs" / "t.jsonl", [{"corpusid": 1, "text": text}])
    citation = {"citationid": 1, "citingcorpusid": 9, "citedcorpusid": 1, "contexts": [text], "intents": None}
    write_lines(release / "citations" / "c.jsonl", [citation])
    (tmp_path / "own.bib").write_bytes(ENTRY.encode())
    fields = ("before", "after", "citing_key", "section", "source", "intent", "marker", "style", "citing_title")
    context = {"text": f"{text} <REF>", "labels": {text: text}, **dict.fromkeys(fields, text)}
    write_lines(tmp_path / "contexts.jsonl", [context])
    return release


def test_no_control_character_reaches_the_terminal(citerec_here: Citerec, corpus: Path) -> None:
    citerec_here("index", "build", corpus, "own.bib", "--out", "index", code=0)
    sentence = f"The okapi{ESCAPES} words <REF>."
    ask, run, info = ("recommend", "--index", "index"), ("run", "contexts.jsonl", "--index", "index"), ("index", "info")
    commands: list[tuple[str, ...]] = [(*ask, sentence), (*ask, sentence, "--explain", "--tldr")]
    commands += [(*ask, sentence, "--format", "json", "--explain"), (*ask, sentence, "--sort", "venue")]
    commands += [(*run, "--format", "json"), run, info, (*info, "index"), (*info, "index", "--format", "json")]
    shown = [citerec_here(*one) for one in [*commands, ("recommend", "x", "--index", f"index{ESCAPES}")]]
    for result in shown:
        assert not CONTROLS.search(result.stdout + result.stderr), result.args
    assert [result.returncode for result in shown] == [0] * (len(shown) - 1) + [2]
    assert "Okapi own ]0;owned" in shown[0].stdout
    assert json.loads(shown[2].stdout)[0]["title"].startswith("okapi ]0;owned")


def test_an_own_entry_is_whole_in_a_pipe_only(citerec_here: Citerec, corpus: Path, tmp_path: Path) -> None:
    citerec_here("index", "build", "own.bib", "--out", "index", code=0)
    command = [CITEREC, "recommend", "okapi own", "--index", "index", "--format", "bibtex"]
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    assert piped.stdout == ENTRY.encode() + b"\n"
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        subprocess.run(command, cwd=tmp_path, stdout=theirs, stderr=subprocess.DEVNULL, timeout=120, check=True)
        os.close(theirs)
        seen = terminal.read(10_000).decode()
    assert "Okapi own" in seen
    assert not CONTROLS.search(seen.replace("\r\n", "\n"))
