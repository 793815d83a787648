"""`citerec fill`: a draft filled from the command line, by a person and without questions."""

import shutil
from pathlib import Path

import pytest

from citerec.confidence import calibration_folder
from citerec.recommend import Recommender
from citerec.systems import Recipe
from tests.conftest import Citerec

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


def test_a_person_picks_searches_again_skips_and_goes_on_later(demo_index: Path, draft: Path, citerec: Citerec) -> None:
    bib = draft.with_name("refs.bib")
    run = citerec("fill", draft, "--index", demo_index, text="?\n99\nw 1,2\nn\n1\ns\nq\n")
    assert run.returncode == 0, run.stderr
    assert "search again, for these words" in run.stderr and "There are papers 1 to 5." in run.stderr
    assert r"\cite{vaswani}." in run.stdout and r"\cite{" in run.stdout.replace(r"\cite{vaswani}", "")
    assert "in your bibliography: vaswani" in run.stdout and f"{draft}:4: vaswani" in run.stdout
    assert "1 of 3 places filled, 2 left; 0 new entries in" in " ".join(run.stderr.split())
    assert draft.read_bytes() == DRAFT.replace("{?}. %", "{vaswani}. %").replace("\n", "\r\n").encode()
    assert bib.read_text() == BIB

    run = citerec(
        "fill", draft, "--index", demo_index, "--keys", "{Auth}{shortyear}", text="/efficient word vectors\nm\n2,1\nq\n"
    )
    assert run.returncode == 0 and "2 new entries" in run.stderr, run.stderr
    filled = next(line for line in draft.read_text().splitlines() if line.startswith("Words"))
    first, second = filled.partition("\\citep{")[2].removesuffix("}.").split(",")
    entries = bib.read_text()
    assert entries.startswith(f"{BIB}\n\n@") and entries.index(f"{{{first},") < entries.index(f"{{{second},")
    assert entries.endswith("}\n") and first[0].isupper()


def test_a_generated_text_is_inserted_behind_the_sentence(demo_index: Path, draft: Path, citerec: Citerec) -> None:
    run = citerec("fill", draft, "--index", demo_index, text="s\ns\nw 1,2\ny\n")
    assert run.returncode == 0, run.stderr
    said = next(line for line in run.stdout.splitlines() if line.count("\\cite") == 2)
    assert "It is generated from their abstracts: check it." in run.stderr
    assert "1 of 3 places filled, 2 left; 2 new entries in" in " ".join(run.stderr.split())
    filled = next(line for line in draft.read_text().splitlines() if line.startswith("Images"))
    sentence, _, behind = filled.partition("}. ")
    first, second = sentence.partition("\\cite{")[2].split(",")
    assert behind == said and f"{{{first}}}" in said and f"{{{second}}}" in said
    assert draft.with_name("refs.bib").read_text().count("@") == 3


def test_own_papers_that_fit_come_first_and_yes_goes_by_the_system(
    demo_index: Path, draft: Path, citerec: Citerec
) -> None:
    with Recommender.open(demo_index) as system:
        second = system.search("Images are classified by deep residual networks <REF>.", 2)[1].paper
    own = f"{BIB}\n@misc{{own, title = {{{second.title}}}, year = {{{second.year}}}}}\n"
    draft.write_text(draft.read_text().replace("?}. %", "vaswani}. %").replace("\\todo{cite word vectors}", ""))
    draft.with_name("refs.bib").write_text(own)
    shown = citerec("fill", draft, "--index", demo_index, text="q\n").stdout
    assert shown.index("in your bibliography: own") < shown.index("\n2  ")
    as_ranked = citerec("fill", draft, "--index", demo_index, "--no-own-first", text="q\n").stdout
    assert as_ranked.index("\n2  ") < as_ranked.index("in your bibliography: own")
    assert "\\cite{own}" in citerec("fill", draft, "--index", demo_index, "--diff", text="1\n").stdout
    by_system = citerec("fill", draft, "--index", demo_index, "--diff", "--yes").stdout
    assert "\\cite{" in by_system and "\\cite{own}" not in by_system


def test_a_diff_writes_nothing(demo_index: Path, draft: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    before = draft.read_bytes()
    (tmp_path / "refs.bib").unlink()
    run = citerec_here("fill", draft, "--index", demo_index, "--yes", "--diff")
    assert run.returncode == 0, run.stderr
    assert "+Attention alone suffices to translate well~\\citep[see][]{vaswani2017attention}. % \\cite{?}" in run.stdout
    assert "+@inproceedings{vaswani2017attention," in run.stdout or "+@misc{vaswani2017attention," in run.stdout
    assert "3 of 3 places would be filled, 0 left; 3 new entries" in " ".join(run.stderr.split())
    assert draft.read_bytes() == before and not (tmp_path / "refs.bib").exists()


def test_without_questions_only_where_it_is_sure(
    demo_index: Path, draft: Path, tmp_path: Path, citerec_here: Citerec, citerec: Citerec
) -> None:
    run = citerec_here("fill", draft, "--index", demo_index, "--yes", "--min-confidence", "0.8", "--system", "bm25")
    assert run.returncode != 0 and "citerec train confidence" in run.stderr
    index = tmp_path / "index"
    shutil.copytree(demo_index, index)
    demo = Path(__file__).parents[2] / "diagnostics" / "demo" / "contexts.jsonl"
    made = citerec("train", "confidence", "--contexts", demo, "--index", index, "--system", "bm25")
    assert made.returncode == 0 and calibration_folder(index, Recipe.load("bm25")).is_dir(), made.stderr
    before = draft.read_bytes()
    run = citerec_here("fill", draft, "--index", index, "--yes", "--min-confidence", "1", "--system", "bm25")
    assert run.returncode == 0 and "0 of 3 places filled, 3 left" in " ".join(run.stderr.split())
    assert run.stderr.count("left open, not sure enough (the first is right with") == 3
    assert draft.read_bytes() == before
    run = citerec_here("fill", draft, "--index", index, "--yes", "--min-confidence", "0.3", "--system", "bm25")
    assert run.returncode == 0 and f"{draft}:4: vaswani" in run.stdout, run.stderr


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        ("\\bibliography{refs}", [], "names no bibliography"),
        ("\\end{document}", ["--min-confidence", "0.5"], "--min-confidence goes with --yes only"),
        ("\\citep[see][]{?}", ["--keys", "{what}"], "pattern of citation keys '{what}' is wrong"),
        ("alone", ["--encoding", "latin-nine"], "knows no encoding"),
    ],
)
def test_what_cannot_be_done_is_said(
    demo_index: Path, draft: Path, citerec_here: Citerec, change: str, arguments: list[str], said: str
) -> None:
    draft.write_text(draft.read_text().replace(change, "", 1) if not arguments else draft.read_text())
    run = citerec_here("fill", draft, "--index", demo_index, *arguments)
    assert run.returncode == 2 and said in run.stderr
    assert draft.with_name("refs.bib").read_text() == BIB


def test_plain_text_without_a_place_is_refused(demo_index: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "draft.txt").write_text("Nothing is missing here.\n")
    run = citerec_here("fill", tmp_path / "draft.txt", "--bib", tmp_path / "refs.bib", "--index", demo_index)
    assert run.returncode == 2 and "has no place that wants a citation. Write <REF> where one does." in run.stderr


def test_a_bad_entry_of_the_bibliography_is_named(demo_index: Path, draft: Path, citerec: Citerec) -> None:
    draft.with_name("refs.bib").write_text(f"{BIB}\n\n@article{{broken, title = {{A}} year = 1}}\n")
    run = citerec("fill", draft, "--index", demo_index, text="q\n")
    assert run.returncode == 0 and "refs.bib:7: not BibTeX" in run.stderr
    assert "(this entry is not used)" in run.stderr
