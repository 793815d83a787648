"""`citerec fill`: a draft filled from the command line, by a person and without questions."""

from pathlib import Path

import pytest

from tests.conftest import Citerec
from tests.e2e.test_cli import one_line

DRAFT = r"""\documentclass{article}
\title{Networks}
\begin{document}
Attention alone suffices to translate well~\citep[see][]{?}. % \cite{?}
Words are predicted from their neighbours \todo{cite word vectors}.
Images are classified by deep residual networks \cite{?}.
\bibliography{refs}
\end{document}
"""
BIB = (
    "@inproceedings{vaswani,\n  title = {Attention Is All You Need},\n  author = {Ashish Vaswani},\n  year = {2017}\n}"
)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    path = tmp_path / "paper.tex"
    path.write_bytes(DRAFT.replace("\n", "\r\n").encode())
    (tmp_path / "refs.bib").write_text(BIB)
    return path


def test_a_person_picks_searches_skips_and_goes_on(demo_index: Path, draft: Path, citerec_here: Citerec) -> None:
    bib = draft.with_name("refs.bib")
    run = citerec_here("fill", draft, "--index", demo_index, text="?\n99\nw 1,2\nn\n1\ns\nq\n", code=0)
    assert "search again, for these words" in run.stderr and "There are papers 1 to 5." in run.stderr
    assert r"\citep{vaswani}." in run.stdout and r"\citep{" in run.stdout.replace(r"\citep{vaswani}", "")
    assert "in your bibliography: vaswani" in run.stdout and f"{draft}:4: vaswani" in run.stdout
    assert "1 of 3 places filled, 2 left; 0 new entries in" in " ".join(run.stderr.split())
    assert draft.read_bytes() == DRAFT.replace("{?}. %", "{vaswani}. %").replace("\n", "\r\n").encode()
    assert bib.read_text() == BIB

    picks = "/efficient word vectors\nm\n2,1\nq\n"
    run = citerec_here("fill", draft, "--index", demo_index, "--keys", "{Auth}{shortyear}", text=picks)
    assert run.returncode == 0 and "2 new entries" in run.stderr, run.stderr
    filled = next(line for line in draft.read_text().splitlines() if line.startswith("Words"))
    first, second = filled.partition("\\citep{")[2].removesuffix("}.").split(",")
    entries = bib.read_text()
    assert entries.startswith(f"{BIB}\n\n@") and entries.index(f"{{{first},") < entries.index(f"{{{second},")
    assert entries.endswith("}\n") and first[0].isupper()


def test_a_diff_writes_nothing(demo_index: Path, draft: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    before = draft.read_bytes()
    (tmp_path / "refs.bib").unlink()
    run = citerec_here("fill", draft, "--index", demo_index, "--yes=any", "--diff", code=0)
    assert "+Attention alone suffices to translate well~\\citep[see][]{vaswani2017attention}. % \\cite{?}" in run.stdout
    assert "+@inproceedings{vaswani2017attention," in run.stdout or "+@misc{vaswani2017attention," in run.stdout
    assert "3 of 3 places would be filled, 0 left; 3 new entries" in " ".join(run.stderr.split())
    assert draft.read_bytes() == before and not (tmp_path / "refs.bib").exists()


def test_yes_only_where_it_is_sure(demo_index: Path, hybrid_index: Path, draft: Path, citerec_here: Citerec) -> None:
    run = citerec_here("fill", draft, "--index", demo_index, "--system", "bm25", "--yes")
    one_line(run, 2, "citerec train confidence --contexts FILE --index INDEX")
    text = draft.read_text()
    draft.write_text(text.replace("Words", "Qwertz yxcvb plokij uhbzgv"))
    runs = {
        yes: citerec_here("fill", draft, "--index", hybrid_index, f"--yes{yes}", "--diff") for yes in ("", "=likely")
    }
    for run in runs.values():
        assert run.returncode == 0 and "left open, nothing in the index seems to fit" in run.stderr, run.stderr
    assert runs[""].stderr.count("left open, likely: ") and "left open, likely: " not in runs["=likely"].stderr


def test_what_cannot_be_done_is_said(demo_index: Path, draft: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    fill = ("fill", draft, "--index", demo_index)
    one_line(citerec_here(*fill, "--yes=maybe"), 2, "maybe")
    one_line(citerec_here(*fill, "--bib", ".", "--diff"), 2, ". is a folder. Give a file: --bib refs.bib")
    one_line(citerec_here(*fill, "--keys", "{what}"), 2, "pattern of citation keys '{what}' is wrong")
    (tmp_path / "a.txt").write_text("Nothing is missing here.\n")
    wrong = citerec_here("fill", "a.txt", "--bib", "refs.bib", "--index", demo_index)
    one_line(wrong, 2, "has no place that wants a citation. Write <REF> where one does.")
    (tmp_path / "a.tex").write_text("Something is \\cite{?}.\n")
    one_line(citerec_here("fill", "a.tex", "--index", demo_index), 2, "names no bibliography")
    assert draft.with_name("refs.bib").read_text() == BIB
    draft.with_name("refs.bib").write_text(f"{BIB}\n\n@article{{broken, title = {{A}} year = 1}}\n")
    run = citerec_here(*fill, text="q\n")
    assert run.returncode == 0 and "refs.bib:7: not BibTeX" in run.stderr and "(this entry is not used)" in run.stderr
