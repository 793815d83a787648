"""Drafts: their places, with lines, and the running text around them."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citerec.drafts import Draft, read_draft
from citerec.errors import InputError

LATEX = r"""\documentclass{article} % \cite{?} in the preamble
\usepackage[numbers]{natbib}
\title{Terms \emph{Weighted}}
\begin{document}
\maketitle
\begin{abstract}
We weigh terms \cite{TODO}.
\end{abstract}
\section{Introduction \label{intro}}
Retrieval has a long history~\citep[see][p.~3]{salton,rocchio}, and $k_1 < 2$ is usual <REF>. % <REF> is a comment
Na\"ive \textbf{models of language}\footnote{Smoothing helps \cite{?}. It is old.} do well \cite{ponte,?}.

As \verb|\cite{?}| shows, \todo{add a citation for this} this holds. \todo{rewrite} 100\% of it.
\begin{equation} x = \cite{?} \end{equation}
\begin{figure}\includegraphics{a}\caption{A plot of weights \cite{??}.}\end{figure}
\begin{verbatim} \cite{?} \end{verbatim}
\begin{itemize} \item First \citet{}. \item Second. \end{itemize}
\end{document}
\cite{?}
"""

MARKDOWN = """---
title: "Terms, weighted"
---
# Ranking [@?]
Retrieval is old [see @salton, p. 3; @rocchio], and so is smoothing [@?].
Mail me@there.org, `[@?]`, $x [@?]$ <!-- [@?] --> and @TODO says so.

```python
cite("[@?]")
```
Both @ponte and others <REF> agree [@croft; @?].
"""


def draft_of(tmp_path: Path, text: str, name: str = "draft.tex") -> Draft:
    (tmp_path / name).write_bytes(text.encode())
    return read_draft(tmp_path / name)


def shown(draft: Draft, text: str) -> list[tuple[int, str]]:
    return [(place.line, text[place.start : place.end]) for place in draft.places]


def test_places_and_text_of_latex(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, LATEX)
    assert shown(draft, LATEX) == [
        (7, r"\cite{TODO}"),
        (10, "<REF>"),
        (11, r"\cite{ponte,?}"),
        (11, r"\cite{?}"),
        (13, r"\todo{add a citation for this}"),
        (15, r"\cite{??}"),
        (17, r"\citet{}"),
    ]
    assert draft.title == "Terms Weighted"
    assert draft.text.split("\n\n") == [
        "We weigh terms <REF>.",
        r"Retrieval has a long history \cite{salton,rocchio}, and is usual <REF>. Naïve models of language do well "
        r"\cite{ponte}<REF>.",
        "Smoothing helps <REF>. It is old.",
        "As shows, <REF> this holds. 100% of it.",
        "A plot of weights <REF>.",
        "First <REF>.",
        "Second.",
    ]


def test_places_and_text_of_markdown(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, MARKDOWN, "draft.qmd")
    assert shown(draft, MARKDOWN) == [(5, "[@?]"), (6, "@TODO"), (11, "<REF>"), (11, "[@croft; @?]")]
    assert draft.title == "Terms, weighted"
    assert draft.text.split("\n\n") == [
        "Retrieval is old [@salton; @rocchio], and so is smoothing <REF>. Mail me@there.org, , and <REF> says so.",
        "Both [@ponte] and others <REF> agree [@croft]<REF>.",
    ]


def test_files_that_a_file_takes_in(tmp_path: Path) -> None:
    (tmp_path / "one.tex").write_text("Said before \\cite{?}.\n")
    draft = draft_of(tmp_path, "First \\cite{?}.\n\n\\input{one}\n\n\\input{draft}\\input{missing}")
    assert [(place.path.name, place.line) for place in draft.places][:2] == [("draft.tex", 1), ("one.tex", 1)]
    assert "Said before <REF>." in draft.text


def test_plain_text_stays_as_it_is(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, "One <REF>.\r\nTwo % <REF>.\n", "draft.txt")
    assert draft.text == "One <REF>.\r\nTwo % <REF>.\n"
    assert [str(place) for place in draft.places] == [f"{tmp_path / 'draft.txt'}:1", f"{tmp_path / 'draft.txt'}:2"]


@pytest.mark.parametrize(("name", "hint"), [("a.tex", r"\\cite\{\?\}"), ("a.md", r"\[@\?\]")])
def test_a_draft_without_a_place_says_how_to_write_one(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(InputError, match="has no place that wants a citation") as error:
        draft_of(tmp_path, "All is well \\cite{salton}.", name)
    assert error.match(hint) or hint.replace("\\", "") in str(error.value.remedy)


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tex").write_bytes("Naïve \\cite{?}".encode("latin-1"))
    with pytest.raises(InputError, match=r"a\.tex is not UTF-8 \(byte 2\)"):
        read_draft(tmp_path / "a.tex")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mangled_drafts_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    name, text = data.draw(st.sampled_from([("draft.tex", LATEX), ("draft.md", MARKDOWN)]))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(text)))
        until = data.draw(st.integers(at, min(len(text), at + 40)))
        new = data.draw(
            st.sampled_from(["", "{", "}", "\\", "%", "$", "\\begin{x}", "\\end{y}", "\\cite{", "[@", "<REF>", "ü"])
        )
        text = text[:at] + new + text[until:]
    try:
        draft = draft_of(tmp_path, text, name)
    except InputError:
        return
    assert draft.text.count("<REF>") == len(draft.places)
    for place in draft.places:
        assert 0 <= place.start < place.end <= len(text)
        assert place.line == text.count("\n", 0, place.start) + 1
