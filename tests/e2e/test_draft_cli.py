"""What a draft cites already, given to `recommend`: as a bibliography, as ids, and by the keys in the draft itself."""

import json
from pathlib import Path

import pytest

from tests.conftest import Citerec

BIB = """
@inproceedings{vaswani, title = {Attention is all you need}, author = {Ashish Vaswani and Noam Shazeer}, year = {2017}}
@article{stranger, title = {A paper that no index has}, author = {Nobody}, year = {1990}}
"""
SENTENCE = "Deep networks learn representations <REF>."


@pytest.fixture
def bibliography(tmp_path: Path) -> Path:
    (tmp_path / "refs.bib").write_text(BIB)
    return tmp_path / "refs.bib"


def hits(citerec_here: Citerec, index: Path, *arguments: object) -> list[dict[str, object]]:
    run = citerec_here("recommend", *arguments, "--index", index, "--system", "hybrid", "--format", "json", "-k", "5")
    assert run.returncode == 0, run.stderr
    found: list[dict[str, object]] = json.loads(run.stdout)
    return found


def test_a_bibliography_is_matched_and_raises_what_it_names(
    hybrid_index: Path, bibliography: Path, citerec_here: Citerec
) -> None:
    run = citerec_here("recommend", SENTENCE, "--index", hybrid_index, "--cited", bibliography, "--system", "hybrid")
    assert run.returncode == 0 and "has 1 of the 2 papers that the draft cites" in run.stderr
    assert "you cite it already, 1 time" in " ".join(run.stdout.split())
    found = hits(citerec_here, hybrid_index, SENTENCE, "--cited", bibliography)
    assert [hit["title"] for hit in found if hit.get("cited_before") == 1] == ["Attention Is All You Need"]
    assert all("cited_before" not in hit for hit in hits(citerec_here, hybrid_index, SENTENCE))


def test_ids_do_as_well_and_unknown_ones_are_counted(hybrid_index: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "ids.txt").write_text("900000041\nnone-such\n")
    found = hits(citerec_here, hybrid_index, SENTENCE, "--cited", tmp_path / "ids.txt")
    assert [hit["paper_id"] for hit in found if hit.get("cited_before")] == [900000041]
    run = citerec_here("recommend", SENTENCE, "--index", hybrid_index, "--cited", tmp_path / "ids.txt")
    assert "1 of the 2 papers" in run.stderr


def test_places_of_a_draft_know_what_was_cited_before_them(
    hybrid_index: Path, bibliography: Path, tmp_path: Path, citerec_here: Citerec
) -> None:
    draft = tmp_path / "draft.tex"
    draft.write_text(
        "Deep networks learn representations <REF>. Attention helps \\cite{vaswani}, it was \\cite{vaswani} shown. "
        "Deep networks translate <REF>.\n"
    )
    run = citerec_here(
        "recommend",
        "--file",
        draft,
        "--index",
        hybrid_index,
        "--cited",
        bibliography,
        "--system",
        "hybrid",
        "--format",
        "json",
    )
    assert run.returncode == 0, run.stderr
    times = [{hit.get("cited_before", 0) for hit in one["hits"]} for one in json.loads(run.stdout)]
    assert times == [{0, 1}, {0, 2}]


def test_a_latex_draft_is_answered_place_by_place(hybrid_index: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    draft = tmp_path / "draft.tex"
    draft.write_text(
        "\\title{Networks}\n\\begin{document}\nAttention alone suffices to translate well \\cite{?}. % <REF>\n"
        "\\begin{equation} a \\cite{?} \\end{equation}\n\nWords are predicted from their neighbours \\todo{cite}.\n"
        "\\end{document}\n"
    )
    run = citerec_here("recommend", "--file", draft, "--index", hybrid_index, "-k", "1")
    assert run.returncode == 0, run.stderr
    shown = " ".join(run.stdout.split())
    assert "draft.tex:3] Attention alone suffices to translate well <REF>." in shown
    assert "draft.tex:6] Words are predicted from their neighbours <REF>." in shown and shown.count("<REF>") == 2
    run = citerec_here("recommend", "--file", draft, "--index", hybrid_index, "-k", "1", "--format", "json")
    assert [(one["file"], one["line"]) for one in json.loads(run.stdout)] == [(str(draft), 3), (str(draft), 6)]
    draft.write_text("All is well \\cite{known}.\n")
    run = citerec_here("recommend", "--file", draft, "--index", hybrid_index)
    assert run.returncode != 0 and "no place that wants a citation" in run.stderr and "\\cite{?}" in run.stderr
