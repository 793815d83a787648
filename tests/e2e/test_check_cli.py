"""`citerec check` from outside."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Citerec

BIB = """@inproceedings{vaswani,
  title = {Attention is all you need}, author = {Ashish Vaswani and Noam Shazeer and others}, year = {2009}
}
@article{stranger, title = {A paper that no index has}, author = {Nobody}, year = {1990}}
"""
DRAFT = "Attention \\cite{vaswani} helps \\cite{vaswany}.\n\\bibliography{refs}\n"


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    (tmp_path / "refs.bib").write_text(BIB)
    (tmp_path / "draft.tex").write_text(DRAFT)
    return Path("draft.tex")


def test_findings_are_listed_with_remedies(draft: Path, citerec_here: Citerec) -> None:
    run = citerec_here("check", draft)
    assert run.returncode == 1 and run.stdout.splitlines() == [
        "draft.tex:1:38: key-unknown vaswany has no entry in the bibliography",
        "    Did you mean vaswani?",
        "draft.tex: 1 error.",
    ]


def test_entries_are_compared_with_an_index(draft: Path, demo_index: Path, citerec_here: Citerec) -> None:
    run = citerec_here("check", draft, "--index", demo_index, "--ignore", "key-unknown")
    assert run.returncode == 1 and "refs.bib:1:1: year-differs vaswani is of 2009" in run.stdout
    assert "draft.tex: 1 warning." in run.stdout and not run.stderr
    run = citerec_here("check", draft, "--index", demo_index, "--select", "place-open,retracted")
    assert run.returncode == 0 and run.stdout == "draft.tex: nothing to mend.\n"


def test_json_and_sarif(draft: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    (found,) = json.loads(citerec_here("check", draft, "--format", "json").stdout)
    citerec_here("check", draft, "--format", "sarif", "--out", "found.sarif")
    assert (found["code"], found["severity"], found["path"], found["line"]) == ("key-unknown", "error", "draft.tex", 1)
    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "draft.tex" and place["region"]["startColumn"] == found["column"]


def test_notes_fail_only_if_strict(tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "note.md").write_text("Attention helps [@?].\n")
    run = citerec_here("check", "note.md", "--ignore", "retracted")
    assert run.returncode == 0 and "place-open" in run.stdout and "1 note." in run.stdout
    assert citerec_here("check", "note.md", "--strict").returncode == 1


def test_bad_input_is_one_line(draft: Path, demo_index: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    shutil.copy(tmp_path / "refs.bib", tmp_path / "more.bib")
    for arguments, told in [
        (("check", "gone.tex"), "gone.tex"),
        (("check", draft, "--select", "key-unknwn"), "Did you mean key-unknown?"),
        (("check", draft, "--index", "gone"), "gone"),
        (("check",), "FILE requires an argument"),
    ]:
        run = citerec_here(*arguments)
        assert run.returncode == 2 and told in run.stderr and run.stderr.count("\n") == 1, run.stderr
    run = citerec_here("check", draft, "--bib", "refs.bib", "--bib", "more.bib", "--select", "key-duplicate")
    assert run.returncode == 1 and "more.bib:1:1: key-duplicate the key vaswani is that of refs.bib:1 too" in run.stdout
    run = citerec_here("check", draft, "--bib", "gone.bib")
    assert run.returncode == 1 and "gone.bib:1:1: bibliography-unreadable" in run.stdout
    (tmp_path / "d.typ").write_text("Attention helps <REF>.\n")
    for arguments in (("check", "d.typ"), ("fill", "d.typ", "--bib", "refs.bib"), ("recommend", "--file", "d.typ")):
        run = citerec_here(*arguments, *(("--index", demo_index) if arguments[0] != "check" else ()))
        assert run.returncode == 2 and "d.typ is no draft that citerec reads. Give LaTeX (.tex," in run.stderr
        assert run.stderr.count("\n") == 1, run.stderr
    (tmp_path / "plain.tex").write_text("Attention \\cite{vaswani}.\n")
    run = citerec_here("check", "plain.tex")
    assert run.returncode == 0 and "names no bibliography" in run.stderr
