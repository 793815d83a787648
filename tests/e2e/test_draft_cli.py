"""Drafts given to `recommend`: their places, and what they cite already."""

import json
from pathlib import Path

import pytest

from tests.conftest import Citerec
from tests.e2e.test_cli import one_line

BIB = """
@inproceedings{vaswani, title = {Attention is all you need}, author = {Ashish Vaswani and Noam Shazeer}, year = {2017}}
@article{stranger, title = {A paper that no index has}, author = {Nobody}, year = {1990}}
"""
RIS = "TY  - GEN\nTI  - Attention is all you need\nPY  - 2017\nER  - \nTY  - GEN\nTI  - Zebras\nER  - \n"
CSL = '[{"type": "article", "title": "Attention is all you need"}, {"type": "article", "title": "Zebras"}]'
SENTENCE = "Deep networks learn representations <REF>."


@pytest.mark.parametrize(
    ("name", "text"), [("refs.bib", BIB), ("refs.ris", RIS), ("refs.json", CSL), ("ids.txt", "900000041\nnone-such\n")]
)
def test_cited_ones_are_raised(hybrid_index: Path, tmp_path: Path, citerec_here: Citerec, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    asked = ("recommend", SENTENCE, "--index", hybrid_index, "--system", "hybrid", "-k", 5)
    run = citerec_here(*asked, "--cited", name)
    assert run.returncode == 0 and "has 1 of the 2 papers that the draft cites" in run.stderr
    assert "you cite it already, 1 time" in " ".join(run.stdout.split())
    hits = json.loads(citerec_here(*asked, "--cited", name, "--format", "json").stdout)
    assert [hit["title"] for hit in hits if hit.get("cited_before") == 1] == ["Attention Is All You Need"]
    assert "cited_before" not in citerec_here(*asked, "--format", "json").stdout


def test_a_draft_is_answered_place_by_place(hybrid_index: Path, tmp_path: Path, citerec_here: Citerec) -> None:
    (tmp_path / "refs.bib").write_text(BIB)
    draft = tmp_path / "draft.tex"
    draft.write_text(
        "\\title{Networks}\n\\begin{document}\nAttention alone suffices to translate well \\cite{?}. % <REF>\n"
        "\\begin{equation} a \\cite{?} \\end{equation}\n\nIt \\cite{vaswani} is shown \\cite{vaswani}. \n\n"
        "Words are predicted from their neighbours \\todo{cite}.\n\\end{document}\n"
    )
    asked = ("recommend", "--file", draft, "--index", hybrid_index, "--cited", "refs.bib", "--system", "hybrid")
    run = citerec_here(*asked, "-k", 1, code=0)
    shown = " ".join(run.stdout.split())
    assert "draft.tex:3] Attention alone suffices to translate well <REF>." in shown
    assert "draft.tex:8] Words are predicted from their neighbours <REF>." in shown and shown.count("<REF>") == 2
    answers = json.loads(citerec_here(*asked, "-k", 20, "--format", "json").stdout)
    assert [(one["file"], one["line"]) for one in answers] == [(str(draft), 3), (str(draft), 8)]
    times = [{hit.get("cited_before", 0) for hit in one["hits"]} for one in answers]
    assert times == [{0, 1}, {0, 2}]  # as often as the text before the place cites it, but at least once
    draft.write_text("All is well \\cite{known}.\n")
    one_line(citerec_here(*asked), 2, "no place that wants a citation", "\\cite{?}")
