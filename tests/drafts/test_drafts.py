"""Drafts: their places, with lines, and the running text around them."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import example, given

from citerec.drafts import Draft, Files, read_draft
from citerec.errors import InputError
from citerec.index.manifest import open_store
from tests.drafts.mangled import LATEX, MARKDOWN, mangled


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


def test_addresses_and_groups_of_keys_in_latex(tmp_path: Path) -> None:
    text = r"""\begin{document}
See \url{http://a.org/b%20c}, \href{http://x.y/%7e{a}}{the page}, \path|a%b| \cite{?}.
Many \autocites{one}{two} and \cites(see)()[12]{three}{four}; \textcites{?}{one} and \Autocites[3]{?}[4]{two}.
\end{document}
"""
    draft = draft_of(tmp_path, text)
    assert shown(draft, text) == [(2, r"\cite{?}"), (3, r"\textcites{?}{one}"), (3, r"\Autocites[3]{?}[4]{two}")]
    assert [one.key for one in draft.cited] == ["one", "two", "three", "four", "one", "two"]
    assert [draft.citation(place, ["new"]) for place in draft.places[1:]] == [
        r"\textcites{new}{one}",
        r"\Autocites[3]{new}[4]{two}",
    ]
    assert "the page" in draft.text and "a.org" not in draft.text


def test_what_stands_in_a_definition_need_not_be_whole(tmp_path: Path) -> None:
    text = r"""\begin{document}
\newcommand{\be}{\begin{equation}}\newcommand*{\vect}[2][x]{\mathbf{#1_{#2}}}
\def\ee#1{\end{equation} \cite{no}}
Lakes freeze \cite{?}. \be x \ee Snow falls \cite{snow}.
\end{document}
"""
    draft = draft_of(tmp_path, text)
    assert shown(draft, text) == [(4, r"\cite{?}")] and [one.key for one in draft.cited] == ["snow"]
    assert "Lakes freeze <REF>." in draft.text and "equation" not in draft.text


def test_a_drawing_is_no_address(tmp_path: Path) -> None:
    drawing = (
        "\\begin{tikzpicture}\n\\path (a) node {x (b)};\n\\path[draw] (0,0) -- (1,1) node {$x$};\n\\end{tikzpicture}"
    )
    draft = draft_of(tmp_path, f"Lakes freeze \\cite{{?}}.\n{drawing}\nSnow falls.\n")
    assert draft.text.split("\n\n")[0].split("\n")[0] == "Lakes freeze <REF>. Snow falls."


def test_what_a_draft_cites_later_does_not_count_before(tmp_path: Path, demo_index: Path) -> None:
    draft = draft_of(tmp_path, r"Bases pair \cite{?}. Later \cite{watson}. Trees \cite{?}.")
    with contextlib.closing(open_store(demo_index)) as store:
        before = [one.cited_before for one in draft.contexts(store, {"watson": "900000001"})]
        listed = [one.cited_before for one in draft.contexts(store, {"watson": "900000001"}, are_in_text=False)]
    assert (before, listed) == ([(), ("900000001",)], [("900000001",), ("900000001",)])


def test_places_and_text_of_markdown(tmp_path: Path) -> None:
    draft = draft_of(tmp_path, MARKDOWN, "draft.qmd")
    assert shown(draft, MARKDOWN) == [(5, "[@?]"), (6, "@TODO"), (11, "<REF>"), (11, "[@croft; @?]")]
    assert draft.title == "Terms, weighted"
    assert draft.text.split("\n\n") == [
        "Retrieval is old [@salton; @rocchio], and so is smoothing <REF>. Mail me@there.org, , and <REF> says so.",
        "Both [@ponte] and others <REF> agree [@croft]<REF>.",
    ]


def test_a_command_without_its_arguments_has_no_text(tmp_path: Path) -> None:
    for command in ("textcolor", "footnote", "frac", "hspace", "cite", "todo", "section"):
        for text in (f'a <REF> \\"\\{command}', f"a <REF> \\'{{\\{command}}} b"):
            assert "<REF>" in draft_of(tmp_path, text).text


def test_files_that_a_file_takes_in(tmp_path: Path) -> None:
    (tmp_path / "2.1-intro.tex").write_text("Said before \\cite{?}.\n")
    (tmp_path / "numbers.txt").write_text("Said after \\cite{?}.\n")
    odd = "\\input{draft}\\input{missing}\\input{}\\input{.}\\input{a\0b}\\bibliography{, re\0fs}"
    draft = draft_of(tmp_path, f"First \\cite{{?}}.\n\n\\input{{2.1-intro}}\n\\input{{numbers.txt}}\n\n{odd}")
    assert [place.path.name for place in draft.places] == ["draft.tex", "2.1-intro.tex", "numbers.txt"]
    assert [place.line for place in draft.places] == [1, 1, 1]
    assert "Said before <REF>." in draft.text and draft.bibliographies == (tmp_path / "refs.bib",)
    assert draft_of(tmp_path, "\\bibliography{refs.v2}").bibliographies == (tmp_path / "refs.v2.bib",)


@pytest.mark.parametrize(
    "fields", ["bibliography: ['', \"a\\0b\"]", "bibliography: [1, {a: b}]", "date: 2001-99-99", "[" * 5000]
)
def test_odd_front_matter_is_left_out(tmp_path: Path, fields: str) -> None:
    draft = draft_of(tmp_path, f"---\n{fields}\n---\nTrees vote [@?].", "draft.md")
    assert (len(draft.places), draft.bibliographies) == (1, ())


@pytest.mark.parametrize("text", ["<!--" * 100_000, "~" * 300_000, "`" * 300_000, "[" + "@" * 300_000])
def test_long_markdown_takes_linear_time(tmp_path: Path, text: str) -> None:
    assert len(draft_of(tmp_path, text, "draft.md").places) <= 1  # quadratic time would end in the timeout


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("refs.bib", b"@misc{a, title = {A}}", r"is a bibliography, not a draft"),
        ("a.tex", b"PK\x03\x04\x00\xff", r"a\.tex is not a text file"),
        ("a.tex", "Naïve \\cite{?}".encode("latin-1"), r"a\.tex is not UTF-8 \(byte 2\)"),
    ],
)
def test_what_is_no_draft_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_draft(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.tex", r"a \cite{?} b", r"a \cite{x,y} b"),
        ("a.tex", r"a \citep[see][p. 3]{ salton , TODO } b", r"a \citep[see][p. 3]{ salton ,x,y} b"),
        ("a.tex", r"a \cite{?,salton,?} b", r"a \cite{x,y,salton} b"),
        ("a.tex", r"a~\citet{} and \citet{salton}", r"a~\citet{x,y} and \citet{salton}"),
        ("a.tex", r"a \parencite{salton} \todo{cite this} b", r"a \parencite{salton} \parencite{x,y} b"),
        ("a.tex", "a <REF>.", r"a \cite{x,y}."),
        ("a.md", "a [see @salton, p. 3; @?] b", "a [see @salton, p. 3; @x; @y] b"),
        ("a.md", "a [@?; @salton; @TODO] b", "a [@x; @y; @salton] b"),
        ("a.md", "a [see @?, p. 3; also @?] b", "a [see @x; @y, p. 3] b"),
        ("a.md", "a @TODO b <REF>", "a [@x; @y] b [@x; @y]"),
    ],
)
def test_a_filled_place(tmp_path: Path, name: str, before: str, after: str) -> None:
    path, files = tmp_path / name, Files()
    path.write_text(before)
    draft = read_draft(path, files)
    for place in sorted(draft.places, key=lambda one: -one.start):
        files.change(path, place.start, place.end, draft.citation(place, ["x", "y"]))
    assert files.text(path) == after


def test_a_note_says_what_is_wanted(tmp_path: Path, demo_index: Path) -> None:
    draft = draft_of(tmp_path, r"Readers trust \todo{cite an eye tracking study!} it. So \todo{CITE}.")
    assert [place.note for place in draft.places] == ["an eye tracking study", ""]
    with contextlib.closing(open_store(demo_index)) as store:
        texts = [context.text for context in draft.contexts(store)]
    assert texts == ["Readers trust <REF> it. (an eye tracking study)", "So <REF>."]


def test_what_a_draft_says_of_itself(tmp_path: Path) -> None:
    text = r"""\title{On Terms}\addbibresource{mine.bib}
\begin{document}
\begin{abstract}We weigh terms \cite{a}.\end{abstract}
\section{Related \emph{Work}}
They too \cite{b,c} <REF>. \nocite{d} \begin{table}x & \cite{e} \caption{Weights \citep{f}.}\end{table}
\begin{lstlisting}
if (x) { \cite{g}
\end{lstlisting}
\bibliography{one,two}
\end{document}
"""
    draft = draft_of(tmp_path, text)
    assert [one.key for one in draft.cited] == ["a", "b", "c", "d", "e", "f"]
    assert [one.line for one in draft.cited] == [3, 5, 5, 5, 5, 5]
    assert (draft.title, draft.paragraphs[0].section) == ("On Terms", "Abstract")
    assert [path.name for path in draft.bibliographies] == ["mine.bib", "one.bib", "two.bib"]
    assert [place.section for place in draft.places] == ["Related Work"]
    assert [(one.line, one.text[:6]) for one in draft.paragraphs] == [(3, "We wei"), (5, "They t"), (5, "Weight")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16-le", "utf-16"])
def test_a_draft_keeps_its_encoding(tmp_path: Path, encoding: str) -> None:
    text = "\\usepackage[latin1]{inputenc}\r\n\\begin{document}\r\nNaïve \\cite{?}.\r\n\\end{document}\r\n"
    path = tmp_path / "a.tex"
    path.write_bytes(text.encode(encoding) if encoding != "utf-16-le" else b"\xff\xfe" + text.encode(encoding))
    files = Files()
    (place,) = read_draft(path, files).places
    files.change(path, place.start, place.end, r"\cite{x}")
    files.write()
    assert path.read_bytes().decode(encoding).lstrip("\ufeff") == text.replace("?", "x")


def test_an_encoding_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "a.tex").write_bytes(b"Na\xefve \\cite{?}")
    assert read_draft(tmp_path / "a.tex", Files("cp1250")).text == "Naďve <REF>"
    for name, told in (("latin-nine", "knows no encoding"), ("rot13", "knows no"), ("idna", "cannot be kept|is not")):
        with pytest.raises(InputError, match=told):
            read_draft(tmp_path / "a.tex", Files(name))


def test_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    draft, bib = tmp_path / "a.tex", tmp_path / "refs.bib"
    draft.write_text("a <REF>")
    files = Files()
    files.change(draft, 2, 7, r"\cite{x}")
    files.change(bib, 0, 0, "@misc{x}\n")
    assert files.diff().count("\n+") >= 2 and draft.read_text() == "a <REF>" and not bib.exists()
    draft.write_text("b <REF>")
    with pytest.raises(InputError, match="was changed while it was open"):
        files.write()
    assert draft.read_text() == "b <REF>" and not bib.exists()
    draft.write_text("one\x0ctwo\u2028three\nfour <REF>\n")  # a form feed ends no line of a diff
    (files := Files()).change(draft, 19, 24, r"\cite{x}")
    changed = " one\x0ctwo\u2028three\n-four <REF>\n+four \\cite{x}\n"
    assert files.diff().endswith(f"@@ -1,2 +1,2 @@\n{changed}")


@example(given_draft=("draft.typ", "Ponds say so @?ü, and @?-based ones, too @?[p. 3]: @?.\n"))
@given(given_draft=mangled())
def test_mangled_drafts_are_refused_or_changed_at_places_only(tmp_path: Path, given_draft: tuple[str, str]) -> None:
    name, text = given_draft
    path, files = tmp_path / name, Files()
    path.write_bytes(text.encode())
    try:
        draft = read_draft(path, files)
    except InputError:
        assert path.read_bytes() == text.encode()
        return
    assert draft.text.count("<REF>") == len(draft.places)
    places = sorted(draft.places, key=lambda one: one.start)
    expected, at = "", 0
    for place in places:
        assert at <= place.start < place.end and place.line == text.count("\n", 0, place.start) + 1
        expected += text[at : place.start] + draft.citation(place, ["new"])
        at = place.end
    for place in reversed(places):
        files.change(path, place.start, place.end, draft.citation(place, ["new"]))
    files.write()
    assert path.read_bytes() == (expected + text[at:]).encode()
    if name != "draft.txt":  # the draft cites it then, and wants nothing more
        again = read_draft(path)
        assert not again.places and [one.key for one in again.cited].count("new") == len(places)


@pytest.mark.parametrize(
    "text", ["a <RE% comment\nF> <<REF>REF> <REF> b", "<RE<!-- x -->F> <REF>", "[@<RE<REF>F>; @?]"]
)
def test_pieces_of_a_marker_make_no_place(tmp_path: Path, text: str) -> None:
    draft = draft_of(tmp_path, text, "a.tex" if "%" in text else "a.md")
    assert draft.text.count("<REF>") == len(draft.places) >= 1
