"""A text is put behind the sentence of a place, and breaks nothing."""

from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from citerec.drafts import Files, read_draft
from citerec.drafts.filling import Filling, as_source, sentence_end
from citerec.errors import InputError
from citerec.records import Paper
from tests.drafts.mangled import mangled


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tex", r"Trees |, as in \emph{a. b}, vote.# \emph{Next} one."),
        ("a.tex", r"\footnote{Trees |.# See b.} Next."),
        ("a.tex", "Trees |:\n\\begin{equation}\nx. Y\n\\end{equation}\nwith z.# Next."),
        ("a.tex", "Trees |#\n\nNext."),
        ("a.tex", "Trees | % c. D\n and forests.# Next."),
        ("a.tex", r"Trees |, and (b.)# \end{document}"),
        ("a.tex", "Trees | by Smith et al. in 2002, e.g. forests.# Next."),
        ("a.md", "- Trees |#\n- Next. One."),
        ("a.md", "Trees |#\n```python\nprint. This\n```"),
        ("a.md", "Trees | of 5% & more, `a. B`, [see. This](x).# Next."),
        ("a.md", "Trees | cost $5 a year.# Next\nyear $6."),
        ("a.md", 'He said "Trees |."# Next'),
    ],
)
def test_where_a_sentence_ends(name: str, text: str) -> None:
    at, plain = text.index("|"), text.replace("|", "")
    end = plain.index("#")
    assert sentence_end(Path(name), plain.replace("#", ""), at) == end


@given(given_draft=mangled(), said=st.text("ab\\\\{}$&#^_~%[]@?<>REF`*!- é", max_size=20))
@example(("draft.tex", r"Trees \cite{?}."), r"}$%&#_^~\cite{?}<REF>{")
@example(("draft.typ", "Trees @?."), "<REF>")
@example(("draft.org", "Trees [cite:@?]\n#+begin_src+end_src\nSnow is white."), "")
@example(("draft.md", "Trees [@?]."), "[@?] <REF> `$ <!--")
@example(("draft.md", "Trees [@?]\nand [see @salton, p. 3\nat `x`, $x [@{ --> and @TODO says so."), "]")
@example(("draft.md", "Cost$ [see @salton; @rocchio], and smoothing [@?]."), "$")
def test_a_text_breaks_no_draft_and_is_all_that_is_new(given_draft: tuple[str, str], said: str) -> None:
    name, text = given_draft
    path, bib, source = Path(name), Path("refs.bib"), f"Said so. {as_source(Path(name), said)} That is all."
    try:
        before = read_draft(path, Files(texts={path: text}, disk=False))
    except InputError:
        return
    places = before.places
    if not places:
        return
    filling = Filling(path, bib, Files(texts={path: text, bib: ""}, disk=False))
    filling.cite(0, [Paper("1", "Trees", year=2000)], source)
    filled = filling.files.text(path)
    assert filled.count(source) == 1
    assert (
        filled.replace(f" {source}", "")
        == text[: places[0].start] + filling.draft.citation(places[0], ["anonymous2000trees"]) + text[places[0].end :]
    )
    assert len(filling.draft.places) == len(places) - 1
    if not name.endswith(".txt"):
        assert "That is all." in filling.draft.text
        assert len(filling.draft.cited) == len(before.cited) + 1
