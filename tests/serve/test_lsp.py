"""The language server, as an editor meets it: a process, its pipes, and the protocol."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from lsprotocol import types
from pygls.workspace import PositionCodec

from citerec.serve.lsp import Lines, typed_at
from tests.serve.lsp_client import Editor

BIB = """@article{robertson2009bm25,
  author = {Robertson, Stephen and Zaragoza, Hugo},
  title = {The Probabilistic Relevance Framework: BM25 and Beyond},
  year = {2009}
}
@article{broken, author = {Nobody}, title = {Never closed
"""
SENTENCE = "🙂 Ranking functions based on term weights are common in information retrieval "
LATEX = rf"""\documentclass{{article}}
\begin{{document}}
{SENTENCE}\cite{{?}}.

It builds on \citep[see]{{robertson2009bm25,robertson2009bm52}}.
\bibliography{{refs}}
\end{{document}}
"""


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


PLACE = units(f"{SENTENCE}\\cite{{?")  # the column behind the question mark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("editor")


@pytest.fixture(scope="module")
def editor(folder: Path, demo_index: Path) -> Iterator[Editor]:
    """One server for all tests: each has documents of its own."""
    editor = Editor(folder, "--index", demo_index, "-k", 5)
    try:
        assert editor.start()["completionProvider"]["triggerCharacters"] == ["{", ",", "@"]
        editor.ready()
        yield editor
        assert editor.stop() == 0
        assert (editor.stray, editor.errors) == (b"", b"")
    finally:
        editor.kill()


def draft(folder: Path, name: str, text: str = LATEX, bib: str = BIB) -> Path:
    """A draft in a folder of its own, with its bibliography."""
    (folder / name).mkdir()
    (folder / name / "refs.bib").write_bytes(bib.encode())
    path = folder / name / ("draft.md" if text.startswith("---") else "draft.tex")
    path.write_bytes(text.encode())
    return path


def completions(editor: Editor, path: Path, line: int = 2, column: int = PLACE) -> list[dict[str, Any]]:
    return list(editor.at("textDocument/completion", path, line, column)["items"])


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    lines = Lines(Path("a.tex"), text, PositionCodec("utf-16"))
    for edit in edits:
        start, end = (lines.offset(types.Position(**edit["range"][side])) for side in ("start", "end"))
        text = text[:start] + edit["newText"] + text[end:]
    return text


def test_a_completion_offers_what_fits_then_the_bibliography_and_adds_the_entry(editor: Editor, folder: Path) -> None:
    editor.open(path := draft(folder, "completion"), LATEX)
    items = completions(editor, path)
    assert len(items) == 6
    assert items[5]["textEdit"]["newText"] == "robertson2009bm25" and "command" not in items[5]  # the index lacks it
    new = items[1]
    shown = editor.ask("completionItem/resolve", **new)["documentation"]["value"]
    assert "**TLDR:**" in shown and "Not in your bibliography" in shown
    accepted = applied(LATEX, [new["textEdit"]])
    assert f"\\cite{{{new['textEdit']['newText']}}}." in accepted
    editor.change(path, accepted)
    editor.ask("workspace/executeCommand", **{key: new["command"][key] for key in ("command", "arguments")})
    (change,) = editor.applied.pop()["documentChanges"]
    assert change["textDocument"]["uri"] == (path.parent / "refs.bib").as_uri()
    assert f"{{{new['textEdit']['newText']}," in change["edits"][0]["newText"]
    # The file on the disk is not saved yet, but the server knows what it has sent.
    (left,) = editor.diagnostics(path, lambda all: not any(one["code"] == "place-open" for one in all))
    assert left["message"].startswith("robertson2009bm52 has no entry")


def test_what_is_typed_narrows_the_completion_also_in_a_draft_that_is_not_closed(editor: Editor, folder: Path) -> None:
    text = LATEX.replace(r"\cite{?}", r"\cite{beyond").replace(r"\citep[see]{robertson2009bm25", r"\emph{\cite{")
    editor.open(path := draft(folder, "typed", text), text)
    (found, *_) = completions(editor, path, column=units(f"{SENTENCE}\\cite{{beyond"))
    assert (found["textEdit"]["newText"], found["filterText"]) == (
        "robertson2009bm25",
        "beyond",
    )  # by a word of its title
    assert applied(text, [found["textEdit"]]).count(r"\cite{robertson2009bm25") == 1
    assert completions(editor, path, column=4) == []  # no citation there


def test_a_completion_may_be_cancelled_or_replaced_by_a_later_one(editor: Editor, folder: Path) -> None:
    editor.open(path := draft(folder, "cancelled"), LATEX)
    where = {"textDocument": {"uri": path.as_uri()}, "position": {"line": 2, "character": PLACE}}
    first, second = (editor.send("textDocument/completion", **where) for _ in range(2))
    assert first.get(timeout=30)["result"] == {"isIncomplete": True, "items": []}
    assert second.get(timeout=30)["result"]["items"]
    waiting = editor.send("textDocument/completion", **where)
    editor.tell("$/cancelRequest", id=editor.last)
    assert waiting.get(timeout=30)["error"]["code"] == -32800
    assert completions(editor, path)


def test_markdown_with_carriage_returns_and_a_bibliography_that_is_missing(editor: Editor, folder: Path) -> None:
    text = f"---\r\nbibliography: new.bib\r\n---\r\n{SENTENCE}[see @?, p. 3].\r\n"
    editor.open(path := draft(folder, "markdown", text), text, "markdown")
    (found,) = editor.diagnostics(path, bool)
    assert found["severity"] == types.DiagnosticSeverity.Hint
    assert found["range"]["start"] == {"line": 3, "character": units(SENTENCE)}
    (first, *others) = editor.actions(path, found["range"], [found])
    assert len(others) == 4 and re.match(r"Cite \S+: \w+", first["title"])
    key = first["title"].split()[1].strip(":")
    cite, make, entry = first["edit"]["documentChanges"]
    assert make == {"kind": "create", "uri": path.with_name("new.bib").as_uri(), "options": {"ignoreIfExists": True}}
    assert applied(text, cite["edits"]).endswith(f"{SENTENCE}[see @{key}, p. 3].\r\n")
    assert entry["edits"][0]["newText"].startswith("@")
    assert completions(editor, path, 3, units(f"{SENTENCE}[see @?"))[0]["textEdit"]["newText"] == key


def test_a_citation_says_what_its_paper_says(editor: Editor, folder: Path) -> None:
    bib = "@article{lakes, title={Lakes}, author={A}, abstract={Rain falls. Lakes are counted by night.}}\n"
    text = "\\documentclass{a}\\begin{document}\nWe counted lakes \\cite{lakes}.\n\\bibliography{refs}\\end{document}\n"
    editor.open(path := draft(folder, "says", text, bib), text)
    shown = editor.at("textDocument/hover", path, 1, text.splitlines()[1].index("lakes}"))["contents"]["value"]
    assert "**It says:** “Lakes are counted by night.”" in shown


def test_fields_of_entries_are_mended(editor: Editor, folder: Path) -> None:
    bib = "@article{lakes,\n title={Lakes &amp; Ponds},\n author={A}}\n"
    text = "\\documentclass{a}\\begin{document}\nWe \\cite{lakes}.\n\\bibliography{refs}\\end{document}\n"
    editor.open(path := draft(folder, "mended", text, bib), text)
    editor.open(refs := path.with_name("refs.bib"), bib)
    found = editor.diagnostics(refs, lambda all: any(one["code"] == "html-entity" for one in all))
    (action,) = editor.actions(refs, found[0]["range"], found)
    assert action["title"] == "Change title of lakes to Lakes \\& Ponds"
    (change,) = action["edit"]["documentChanges"]
    assert applied(bib, change["edits"]) == bib.replace("&amp;", "\\&")


def test_diagnostics_and_hover_follow_the_text_and_offer_fixes(editor: Editor, folder: Path) -> None:
    editor.open(path := draft(folder, "diagnostics"), LATEX)
    found = {one["code"]: one for one in editor.diagnostics(path, lambda all: len(all) == 2)}
    (fix,) = editor.actions(path, found["key-unknown"]["range"], [found["key-unknown"]])
    assert fix["title"] == "Change robertson2009bm52 to robertson2009bm25"
    (change,) = fix["edit"]["documentChanges"]
    assert r"{robertson2009bm25,robertson2009bm25}" in applied(LATEX, change["edits"])
    (broken,) = editor.diagnostics(path.with_name("refs.bib"), bool)
    assert broken["range"]["start"]["line"] == 5
    on_key = editor.at("textDocument/hover", path, 4, LATEX.splitlines()[4].index("bm25"))["contents"]["value"]
    assert "Probabilistic Relevance Framework" in on_key
    on_place = editor.at("textDocument/hover", path, 2, units(f"{SENTENCE}\\ci"))["contents"]["value"]
    assert on_place.startswith("1. **") and "3. **" in on_place
    assert editor.at("textDocument/hover", path, 0, 0) is None
    text = LATEX.replace("It builds", "🙂🙂 <REF> It builds").replace(",robertson2009bm52", "")
    editor.change(path, text)
    places = editor.diagnostics(path, lambda all: len(all) == 2 and all[1]["code"] == "place-open")
    assert places[1]["range"] == {"start": {"line": 4, "character": 5}, "end": {"line": 4, "character": 10}}
    editor.change(path, text.replace("<REF>", "{"), 3)
    (unreadable,) = editor.diagnostics(path, lambda all: all[0]["code"] == "unreadable-draft")
    assert "Close its braces" in unreadable["message"]


def test_a_key_is_followed_and_renamed(editor: Editor, folder: Path) -> None:
    path = draft(folder, "navigation")
    bib, column = path.with_name("refs.bib"), LATEX.splitlines()[4].index("bm25")
    editor.open(path, LATEX)
    (entry,) = editor.at("textDocument/definition", path, 4, column)
    assert (entry["uri"], entry["range"]["start"]) == (bib.as_uri(), {"line": 0, "character": 9})
    uses = editor.at("textDocument/references", path, 4, column, context={"includeDeclaration": True})
    assert {one["uri"] for one in uses} == {path.as_uri(), bib.as_uri()}
    edit = editor.at("textDocument/rename", path, 4, column, newName="Robertson09")
    edits = {change["textDocument"]["uri"]: change["edits"] for change in edit["documentChanges"]}
    assert applied(LATEX, edits[path.as_uri()]) == LATEX.replace("{robertson2009bm25", "{Robertson09")
    assert applied(BIB, edits[bib.as_uri()]) == BIB.replace("robertson2009bm25", "Robertson09")
    assert editor.at("textDocument/rename", path, 4, column, newName="no key, this") is None
    editor.open(bib, BIB, "bibtex")
    (symbol,) = editor.ask("textDocument/documentSymbol", textDocument={"uri": bib.as_uri()})
    assert (symbol["name"], symbol["detail"][:17]) == ("robertson2009bm25", "The Probabilistic")


def test_papers_for_a_sentence_that_nobody_marked(editor: Editor, folder: Path) -> None:
    text = LATEX.replace(r" \cite{?}", "")
    editor.open(path := draft(folder, "unmarked", text), text)
    hints = editor.diagnostics(path, lambda all: any(one["code"] == "may-want-citation" for one in all))
    (hint,) = (one for one in hints if one["code"] == "may-want-citation")
    assert hint["range"]["start"] == {"line": 2, "character": 0}
    first = editor.actions(path, hint["range"])[0]
    change = next(one for one in first["edit"]["documentChanges"] if one["textDocument"]["uri"] == path.as_uri())
    key = first["title"].removeprefix("Cite for this sentence ").partition(":")[0]
    assert applied(text, change["edits"]) == text.replace("retrieval.", rf"retrieval \citep{{{key}}}.")
    assert editor.actions(path, {"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 0}})
    shown = editor.at("citerec/recommend", path, 2, 9)
    assert shown[0]["key"] == key and len(shown) == 5
    assert shown[0]["edit"] == first["edit"] and shown[0]["about"].startswith("**") and shown[0]["isNew"]


def test_an_unsaved_bibliography_and_a_chapter_of_a_larger_draft(editor: Editor, folder: Path) -> None:
    book = "\\documentclass{book}\n\\begin{document}\n\\input{1.1-one}\n\\bibliography{refs}\n\\end{document}\n"
    path = draft(folder, "parts", book)
    chapter, text = path.with_name("1.1-one.tex"), "Unsaved work is cited \\cite{unsaved2024,lost2020}.\n"
    chapter.write_text(text, encoding="utf-8")
    (path.parent / "other.bib").touch()  # not the only one in the folder
    editor.open(path.with_name("refs.bib"), "@misc{unsaved2024, title={Unsaved}}\n", "bibtex")
    editor.open(chapter, text)
    (found,) = editor.diagnostics(chapter, bool)
    assert found["message"].startswith("lost2020 has no entry in the bibliography")


def test_two_drafts_without_a_file_are_two(editor: Editor) -> None:
    texts = {f"untitled:Untitled-{number}": "\n" * number + "Said <REF>." for number in (1, 2)}
    for uri, text in texts.items():
        document = {"uri": uri, "languageId": "latex", "version": 1, "text": text}
        editor.tell("textDocument/didOpen", textDocument=document)
    lines = {}
    while len(lines) < 2:
        heard = editor.wait(lambda one: one["method"] == "textDocument/publishDiagnostics")["params"]
        if heard["uri"] in texts and heard["diagnostics"]:
            lines[heard["uri"]] = heard["diagnostics"][0]["range"]["start"]["line"]
    assert lines == {"untitled:Untitled-1": 1, "untitled:Untitled-2": 2}
    for uri in texts:
        editor.tell("textDocument/didClose", textDocument={"uri": uri})


def test_a_client_that_counts_bytes_and_has_no_index(folder: Path) -> None:
    path = draft(folder, "bytes")
    editor = Editor(path.parent, "--index", "nowhere")
    try:
        assert editor.start(general={"positionEncodings": ["utf-8"]})["positionEncoding"] == "utf-8"
        message = editor.wait(lambda one: one["method"] == "window/showMessage")["params"]["message"]
        assert "nowhere" in message and "\n" not in message
        editor.open(path, LATEX)
        found = editor.diagnostics(path, lambda all: len(all) == 2)
        assert found[0]["range"]["start"]["character"] == len(SENTENCE.encode())
        items = completions(editor, path, column=len(f"{SENTENCE}\\cite{{?".encode()))
        (label,) = (item["label"] for item in items)
        assert label == "Robertson & Zaragoza 2009 · The Probabilistic Relevance Framework: BM25 and Beyond"
        editor.tell("exit")  # without saying goodbye
        assert editor.process.wait(30) == 1
    finally:
        editor.kill()


@given(st.text(st.sampled_from("a\n\r🙂é\f\u2028"), max_size=40), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_positions_lead_back_to_their_characters(text: str, encoding: str) -> None:
    lines = Lines(Path("a.tex"), text, PositionCodec(encoding))
    for offset in range(len(text) + 1):
        inside = text[max(0, offset - 1) : offset + 1] == "\r\n"
        assert lines.offset(lines.at(offset)) == offset - inside
    assert lines.offset(types.Position(99, 0)) == len(text)
    assert lines.offset(types.Position(0, 99)) == len(re.split(r"\r\n|\n|\r", text)[0])


@pytest.mark.parametrize(
    ("name", "text", "key", "draft"),
    [
        ("a.tex", r"x \citep[see][p. 3]{salton, ro|cc} y", "rocc", r"x \citep[see][p. 3]{salton, ?} y"),
        ("a.tex", r"x \cite{sal|, and more {text}", "sal", r"x \cite{?}, and more {text}"),
        ("a.tex", "x \\cite{a,\n  b|,c} y", "b", "x \\cite{a,\n  ?,c} y"),
        ("a.tex", r"x % \cite{|} y", None, ""),
        ("a.md", "x [see @sal|ton, p. 3] y", "salton", "x [see @?, p. 3] y"),
        ("a.md", "x @|", "", "x @?"),
        ("a.md", "x me@there|.org y", None, ""),
    ],
)
def test_what_is_typed_is_found(name: str, text: str, key: str | None, draft: str) -> None:
    typed = typed_at(Path(name), text.replace("|", ""), text.index("|"))
    assert (typed.key, typed.draft) == (key, draft) if typed else key is None


@given(st.text(st.sampled_from("\\cite{}[]@, \n%?ab"), max_size=60), st.sampled_from(["a.tex", "a.md"]))
def test_anything_may_be_typed(text: str, name: str) -> None:
    for offset in range(len(text) + 1):
        if typed := typed_at(Path(name), text, offset):
            assert typed.start <= offset <= typed.end
            assert typed.draft[: typed.start + 1] == f"{text[: typed.start]}?"
