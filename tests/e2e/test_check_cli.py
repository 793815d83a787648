"""`citerec check` from outside."""

import json
from pathlib import Path

import pytest

from tests.conftest import Citerec
from tests.e2e.test_cli import one_line

BIB = """@inproceedings{vaswani,
  title = {Attention is all you need}, author = {Ashish Vaswani and Noam Shazeer and others}, year = {2009}
}
@article{stranger, title = {A paper that no index has}, author = {Nobody}, year = {1990}}
"""


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    (tmp_path / "refs.bib").write_text(BIB)
    (tmp_path / "draft.tex").write_text("Attention \\cite{vaswani} helps \\cite{vaswany}.\n\\bibliography{refs}\n")
    return Path("draft.tex")


def test_findings_in_all_forms(draft: Path, citerec_here: Citerec) -> None:
    run = citerec_here("check", draft)
    assert run.returncode == 1 and run.stdout.splitlines() == [
        "draft.tex:1:38: key-unknown vaswany has no entry in the bibliography",
        "    Did you mean vaswani?",
        "draft.tex: 1 error.",
    ]
    (found,) = json.loads(citerec_here("check", draft, "--format", "json").stdout)["findings"]
    assert (found["code"], found["severity"], found["path"], found["line"]) == ("key-unknown", "error", "draft.tex", 1)
    log = json.loads(citerec_here("check", draft, "--format", "sarif").stdout)
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["key-unknown"]


def test_entries_are_compared_with_an_index(draft: Path, demo_index: Path, citerec_here: Citerec) -> None:
    run = citerec_here("check", draft, "--index", demo_index, "--ignore", "key-unknown")
    assert run.returncode == 1 and "refs.bib:1:1: year-differs vaswani is of 2009" in run.stdout
    assert "draft.tex: 1 warning." in run.stdout and not run.stderr
    run = citerec_here("check", draft, "--index", demo_index, "--select", "place-open,retracted")
    assert run.returncode == 0 and run.stdout == "draft.tex: nothing to mend.\n"


def test_notes_and_more_bibliographies(draft: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "note.md").write_text("Attention helps [@?].\n")
    run = citerec_here("check", "note.md")
    assert run.returncode == 0 and "place-open" in run.stdout
    assert citerec_here("check", "note.md", "--strict").returncode == 1
    (tmp_path / "plain.tex").write_text("Attention \\cite{vaswani}.\n")
    assert "names no bibliography" in citerec_here("check", "plain.tex").stderr
    (tmp_path / "parts.tex").write_text("\\input{plain}\\input{parts/two}\\input{}\n")
    noted = citerec_here("check", "parts.tex", "--bib", "refs.bib").stderr.splitlines()
    assert [line for line in noted if "not there" in line] == [
        f"{Path('parts/two')} is not there: the draft takes it in, and what it says is not read."
    ]
    (tmp_path / "more.bib").write_text(BIB)
    run = citerec_here("check", draft, "--bib", "refs.bib", "--bib", "more.bib", "--select", "key-duplicate")
    assert run.returncode == 1 and "more.bib:1:1: key-duplicate the key vaswani is that of refs.bib:1 too" in run.stdout
    run = citerec_here("check", draft, "--bib", "gone.bib")
    assert run.returncode == 1 and "gone.bib:1:1: bibliography-unreadable" in run.stdout


def test_bad_input_is_one_line(draft: Path, demo_index: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    one_line(citerec_here("check", "gone.tex"), 2, "gone.tex")
    one_line(citerec_here("check", draft, "--select", "key-unknwn"), 2, "Did you mean key-unknown?")
    (tmp_path / "d.epub").write_text("Attention helps <REF>.\n")
    index = ("--index", demo_index)
    for command in (("check",), ("fill", "--bib", "refs.bib", *index), ("recommend", *index, "--file")):
        one_line(citerec_here(*command, "d.epub"), 2, "d.epub is no draft that citerec reads. Give LaTeX (.tex,")
