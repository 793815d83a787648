"""Sentences that nobody marked: which are suggested, where their citations go, and what `fill` makes of them."""

from pathlib import Path

import pytest

from citerec.drafts import Files, read_draft
from citerec.drafts.filling import Filling
from citerec.drafts.suggest import suggestions
from citerec.recommend import Recommender
from citerec.records import Paper
from tests.conftest import Citerec

SEQUENCES = "Recurrent networks with gated memory cells learn dependencies across long sequences"
ATTENTION = "The Transformer dispenses with recurrence and relies on attention alone to translate sentences"
LINKS = "The pages of the web can be ranked by the links between them"
OWN = "We describe our own system in the present paper"


@pytest.fixture(scope="module")
def recommender(hybrid_index: Path) -> Recommender:
    return Recommender.open(hybrid_index)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tex", rf"{OWN}. {SEQUENCES}. {ATTENTION} \citep{{a}}. {LINKS} \emph{{too}} \citep{{?}}."),
        ("a.md", f"{OWN}.\n\n{SEQUENCES}. {ATTENTION} [@a]. {LINKS} [@?].\n"),
        ("a.txt", f"{OWN}.\n\n{SEQUENCES}. {ATTENTION} (Roe, 2001; Lee and Roe, 2003). {LINKS} <REF>.\n"),
    ],
)
def test_only_sentences_without_a_citation_and_with_a_likely_paper(
    name: str, text: str, recommender: Recommender
) -> None:
    path = Path(name)
    files = Files(texts={path: text}, disk=False)
    draft = read_draft(path, files)
    (found,) = suggestions(draft, recommender, files)
    assert (found.sentence, found.answer.hits[0].paper.title) == (f"{SEQUENCES}.", "Long Short-Term Memory")
    assert text[found.place.start : found.place.end] == found.sentence and 0 < found.score < 1
    assert text[found.end] == "." and text[: found.end].endswith("long sequences")
    files.change(path, found.end, found.end, found.marker)
    marked = read_draft(path, files)
    assert len(marked.places) == len(draft.places) + 1 and len(marked.cited) == len(draft.cited)


@pytest.mark.parametrize(
    ("name", "note"), [("a.tex", r"\footnote{A note.}"), ("a.md", "[^1]"), ("a.org", "[fn:1]"), ("a.typ", "")]
)
def test_the_citation_stays_in_its_sentence(name: str, note: str, recommender: Recommender) -> None:
    path, text = Path(name), f"{SEQUENCES}.{note} Nobody else came to the party on that Sunday.\n"
    files = Files(texts={path: text}, disk=False)
    (found,) = suggestions(read_draft(path, files), recommender, files)
    assert text[: found.end] == SEQUENCES
    text = f"{SEQUENCES}, as was shown by Vaswani et al.\nSupport vectors are another matter altogether. {OWN}.\n"
    files = Files(texts={path: text}, disk=False)
    for found in suggestions(read_draft(path, files), recommender, files):
        assert text[found.end] == "." and not text[: found.end].endswith(" al")


def test_what_was_marked_and_cited_in_a_chapter_is_taken_back(tmp_path: Path) -> None:
    (main := tmp_path / "main.tex").write_text("\\input{one}\n\\bibliography{refs}\n")
    (chapter := tmp_path / "one.tex").write_text(f"{SEQUENCES}.\n")
    filling = Filling(main)
    texts = filling.files.state()
    filling.cite(filling.mark(chapter, len(SEQUENCES), r" \cite{?}"), [Paper("1", title="Sequences", year=2001)])
    filling.files.write()
    assert chapter.read_text() == f"{SEQUENCES} \\cite{{anonymous2001sequences}}.\n"
    filling.restore(texts)
    filling.files.write()
    assert chapter.read_text() == f"{SEQUENCES}.\n" and (tmp_path / "refs.bib").read_text() == ""


def test_the_abstract_is_left_alone(recommender: Recommender) -> None:
    path = Path("a.tex")
    files = Files(texts={path: f"\\begin{{abstract}}{SEQUENCES}.\\end{{abstract}} {LINKS}."}, disk=False)
    assert [one.sentence for one in suggestions(read_draft(path, files), recommender, files)] == [f"{LINKS}."]


def test_by_the_commands(tmp_path: Path, hybrid_index: Path, citerec_here: Citerec) -> None:
    text = f"{SEQUENCES}. {OWN}.\n{ATTENTION}. {LINKS}.\n\\bibliography{{refs}}\n"
    (tmp_path / "a.tex").write_text(text)
    shown = citerec_here("recommend", "--file", "a.tex", "--suggest", "--index", hybrid_index, "-k", 1)
    assert shown.returncode == 0 and "[a.tex:1]" in shown.stdout and "Long Short-Term Memory" in shown.stdout
    filled = citerec_here("fill", "a.tex", "--suggest", "--index", hybrid_index, text="1\ns\n1\n")
    assert filled.returncode == 0 and "2 suggested sentences cite" in filled.stderr
    found = (tmp_path / "a.tex").read_text()
    assert found.count("\\cite{") == 2 and "{?}" not in found
    assert len(found) == len(text) + sum(len(f" \\cite{{{key}}}") for key in keys(tmp_path / "refs.bib"))
    nothing = citerec_here("recommend", "--file", "refs.txt", "--suggest", "--index", hybrid_index)
    assert nothing.returncode == 2
    (tmp_path / "b.md").write_text(f"{OWN}.\n")
    nothing = citerec_here("recommend", "--file", "b.md", "--suggest", "--index", hybrid_index)
    assert nothing.returncode == 0 and "No sentence seems to want a citation" in nothing.stderr


def keys(bib: Path) -> list[str]:
    return [line.partition("{")[2].rstrip(",") for line in bib.read_text().splitlines() if line.startswith("@")]
