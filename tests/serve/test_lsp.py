"""The language server, as an editor meets it: a process, its pipes, and the protocol."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from lsprotocol import types
from pygls.workspace import PositionCodec

from citerec.recommend import Recommender
from citerec.serve.lsp import Lines, Options, View, Workbench, typed_at
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
        assert editor.stray == b""
        assert editor.errors == b""
    finally:
        editor.kill()


def draft(folder: Path, name: str, text: str, bib: str = BIB) -> Path:
    """A draft in a folder of its own, with its bibliography."""
    (folder / name).mkdir()
    (folder / name / "refs.bib").write_bytes(bib.encode())
    path = folder / name / ("draft.md" if text.startswith("---") else "draft.tex")
    path.write_bytes(text.encode())
    return path


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def applied(text: str, edits: list[dict[str, Any]], encoding: str = "utf-16") -> str:
    lines = Lines(Path("a.tex"), text, PositionCodec(encoding))
    for edit in edits:
        start, end = (lines.offset(types.Position(**edit["range"][side])) for side in ("start", "end"))
        text = text[:start] + edit["newText"] + text[end:]
    return text


def test_a_completion_offers_what_fits_then_the_bibliography_and_adds_the_entry(editor: Editor, folder: Path) -> None:
    path = draft(folder, "completion", LATEX)
    editor.open(path, LATEX)
    column = units(f"{SENTENCE}\\cite{{?")
    items = editor.at("textDocument/completion", path, 2, column)["items"]
    assert items[5]["label"] == "robertson2009bm25"  # the index lacks it
    assert "Robertson" in items[5]["detail"]
    assert "command" not in items[5]
    assert len(items) == 6
    new = items[1]
    shown = editor.ask("completionItem/resolve", **new)["documentation"]["value"]
    assert "**TLDR:**" in shown
    assert "Not in your bibliography" in shown
    accepted = applied(LATEX, [new["textEdit"]])
    assert f"\\cite{{{new['label']}}}." in accepted
    editor.change(path, accepted)
    editor.ask("workspace/executeCommand", **{key: new["command"][key] for key in ("command", "arguments")})
    (change,) = editor.applied.pop()["documentChanges"]
    assert change["textDocument"]["uri"] == (path.parent / "refs.bib").as_uri()
    assert f"{{{new['label']}," in change["edits"][0]["newText"]
    # The file on the disk is not saved yet, but the server knows what it has sent.
    found = editor.diagnostics(path, lambda all: not any(one["code"] == "place-open" for one in all))
    assert [one["message"].partition(". ")[0] for one in found] == [
        "robertson2009bm52 has no entry in the bibliography"
    ]


def test_own_papers_that_fit_come_first_in_completion_hover_and_actions(
    editor: Editor, folder: Path, demo_index: Path
) -> None:
    with Recommender.open(demo_index) as system:
        second = system.search(f"{SENTENCE}<REF>.", 2, fold=True)[1].paper
    entry = f"@misc{{mine, title = {{{second.title}}}, year = {second.year}}}\n{BIB}"
    path = draft(folder, "own", LATEX, entry)
    editor.open(path, LATEX)
    column = units(f"{SENTENCE}\\cite{{?")
    items = editor.at("textDocument/completion", path, 2, column)["items"]
    assert [item["label"] for item in items].index("mine") == 0 and "command" not in items[0]
    assert "command" in items[1] and items[-1]["label"] == "robertson2009bm25"
    hover = editor.at("textDocument/hover", path, 2, column)["contents"]["value"].splitlines()
    assert hover[0].endswith("(`mine`, in your bibliography)")
    (place,) = [one for one in editor.diagnostics(path, bool) if one["code"] == "place-open"]
    assert editor.actions(path, place["range"])[0]["title"].startswith("Cite mine: ")
    as_ranked = Workbench(Options(index=demo_index, own_first=False))
    as_ranked.index.open()
    try:
        view = View(path.resolve(), ((path.resolve(), LATEX),))
        typed = typed_at(view.path, view.text, view.text.index("?"))
        assert typed
        assert [one.key for one in as_ranked.completions(view, typed)].index("mine") == 1
    finally:
        as_ranked.index.close()


def test_what_is_typed_narrows_the_completion_also_in_a_draft_that_is_not_closed(editor: Editor, folder: Path) -> None:
    text = LATEX.replace(r"\cite{?}", r"\cite{beyond").replace(r"\citep[see]{robertson2009bm25", r"\emph{\cite{")
    path = draft(folder, "typed", text)
    editor.open(path, text)
    found = editor.at("textDocument/completion", path, 2, units(f"{SENTENCE}\\cite{{beyond"))
    assert found["isIncomplete"]
    assert found["items"][0]["label"] == "robertson2009bm25"  # by a word of its title
    assert applied(text, [found["items"][0]["textEdit"]]).count(r"\cite{robertson2009bm25") == 1
    assert found["items"][0]["filterText"] == "beyond"
    assert editor.at("textDocument/completion", path, 2, 4)["items"] == []  # no citation there


def test_a_later_completion_replaces_one_that_waits(editor: Editor, folder: Path) -> None:
    path = draft(folder, "cancelled", LATEX)
    editor.open(path, LATEX)
    where = {
        "textDocument": {"uri": path.as_uri()},
        "position": {"line": 2, "character": units(f"{SENTENCE}\\cite{{?")},
    }
    first, second = (editor.send("textDocument/completion", **where) for _ in range(2))
    assert first.get(timeout=30)["result"] == {"isIncomplete": True, "items": []}
    assert second.get(timeout=30)["result"]["items"]


def test_markdown_with_carriage_returns_and_a_bibliography_that_is_missing(editor: Editor, folder: Path) -> None:
    text = f"---\r\nbibliography: new.bib\r\n---\r\n{SENTENCE}[see @?, p. 3].\r\n"
    path = draft(folder, "markdown", text)
    editor.open(path, text, "markdown")
    (found,) = editor.diagnostics(path, bool)
    assert found["severity"] == types.DiagnosticSeverity.Hint
    assert found["range"]["start"] == {"line": 3, "character": units(SENTENCE)}
    actions = editor.actions(path, found["range"], [found])
    assert len(actions) == 5
    assert re.match(r"Cite \S+: \w+", actions[0]["title"])
    key = actions[0]["title"].split()[1].strip(":")
    cite, make, entry = actions[0]["edit"]["documentChanges"]
    assert make == {"kind": "create", "uri": path.with_name("new.bib").as_uri(), "options": {"ignoreIfExists": True}}
    assert applied(text, cite["edits"]).endswith(f"{SENTENCE}[see @{key}, p. 3].\r\n")
    assert entry["edits"][0]["newText"].startswith("@")
    items = editor.at("textDocument/completion", path, 3, units(f"{SENTENCE}[see @?"))["items"]
    assert items[0]["label"] == key


def test_hover_on_a_key_and_on_a_place(editor: Editor, folder: Path) -> None:
    path = draft(folder, "hover", LATEX)
    editor.open(path, LATEX)
    on_key = editor.at("textDocument/hover", path, 4, LATEX.splitlines()[4].index("bm25"))["contents"]["value"]
    assert "Probabilistic Relevance Framework" in on_key
    assert "index" in on_key
    on_place = editor.at("textDocument/hover", path, 2, units(f"{SENTENCE}\\ci"))["contents"]["value"]
    assert on_place.startswith("1. **")
    assert "3. **" in on_place
    assert editor.at("textDocument/hover", path, 0, 0) is None


def test_diagnostics_follow_the_text_and_offer_fixes(editor: Editor, folder: Path) -> None:
    path = draft(folder, "diagnostics", LATEX)
    editor.open(path, LATEX)
    found = {one["code"]: one for one in editor.diagnostics(path, lambda all: len(all) == 2)}
    missing = found["key-unknown"]
    (fix,) = editor.actions(path, missing["range"], [missing])
    assert fix["title"] == "Change robertson2009bm52 to robertson2009bm25"
    (change,) = fix["edit"]["documentChanges"]
    assert r"{robertson2009bm25,robertson2009bm25}" in applied(LATEX, change["edits"])
    (broken,) = editor.diagnostics(path.with_name("refs.bib"), bool)
    assert broken["range"]["start"]["line"] == 5
    text = LATEX.replace("It builds", "🙂🙂 <REF> It builds").replace(",robertson2009bm52", "")
    editor.change(path, text)
    places = editor.diagnostics(path, lambda all: len(all) == 2 and all[1]["code"] == "place-open")
    assert places[1]["range"] == {"start": {"line": 4, "character": 5}, "end": {"line": 4, "character": 10}}
    editor.change(path, text.replace("<REF>", "{"), 3)
    (unreadable,) = editor.diagnostics(path, lambda all: all[0]["code"] == "unreadable-draft")
    assert "Close its braces" in unreadable["message"]


def test_an_entry_with_the_doi_of_another_and_a_draft_of_an_unknown_kind(editor: Editor, folder: Path) -> None:
    bib = (
        "@misc{trees, title = {Forests of Trees}, author = {Ada Roe}, doi = {10.1/x}}\n"
        "@misc{seas, title = {Seas of the Moon}, author = {Ola Nowak}, doi = {10.1/x}}\n"
    )
    path = draft(folder, "doi", "Rain \\cite{trees,seas}.\\bibliography{refs}\n", bib)
    editor.open(path, path.read_text())
    (found,) = editor.diagnostics(path.with_name("refs.bib"), bool)
    assert (found["code"], found["severity"]) == ("other-work", types.DiagnosticSeverity.Error)
    assert "seas and trees" in found["message"] and found["range"]["start"]["line"] == 1
    typst = path.with_name("d.typ")
    editor.open(typst, "Rain <REF>.", "typst")
    (refused,) = editor.diagnostics(typst, bool)
    assert refused["code"] == "unreadable-draft" and "Give LaTeX (.tex," in refused["message"]


def test_an_unsaved_bibliography_and_a_chapter_of_a_larger_draft(editor: Editor, folder: Path) -> None:
    path = draft(
        folder,
        "parts",
        "\\documentclass{book}\n\\begin{document}\n\\input{1.1-one}\n\\bibliography{refs}\n\\end{document}\n",
    )
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


def test_an_entry_that_the_editor_did_not_add_is_offered_again(editor: Editor, folder: Path) -> None:
    path = draft(folder, "refused", LATEX)
    editor.open(path, LATEX)
    item = editor.at("textDocument/completion", path, 2, units(f"{SENTENCE}\\cite{{?"))["items"][1]
    editor.accepts = False
    editor.ask("workspace/executeCommand", command="citerec.addEntry", arguments=item["command"]["arguments"])
    editor.accepts = True
    assert any("did not add" in message for message in editor.messages)
    editor.change(path, applied(LATEX, [item["textEdit"]]))
    missing = editor.diagnostics(path, lambda all: len(all) == 2 and all[0]["code"] == "key-unknown")[0]
    titles = [action["title"] for action in editor.actions(path, missing["range"], [missing])]
    assert titles[0] == f"Add the entry {item['label']}"


def test_a_draft_without_a_bibliography_and_one_that_cannot_be_read(editor: Editor, folder: Path) -> None:
    path = draft(folder, "none", LATEX.replace("refs", "none"))
    path.with_name("other.bib").touch()
    text = path.read_text(encoding="utf-8").replace("\\bibliography{none}", "")
    editor.open(path, text)
    (place,) = editor.diagnostics(path, bool)
    for _ in range(2):
        assert editor.actions(path, place["range"]) == []
    assert len([one for one in editor.messages if "names no bibliography" in one]) == 1
    assert len(editor.at("textDocument/completion", path, 2, units(f"{SENTENCE}\\cite{{?"))["items"]) == 5
    path.with_name("none.bib").write_bytes(b"@misc{a, title={\xff}}")
    editor.change(path, path.read_text(encoding="utf-8"))
    (found,) = editor.diagnostics(path.with_name("none.bib"), bool)
    assert found["code"] == "bibliography-unreadable" and "none.bib is not UTF-8" in found["message"]


def test_a_request_may_be_cancelled(editor: Editor, folder: Path) -> None:
    path = draft(folder, "taken-back", LATEX)
    editor.open(path, LATEX)
    where = {
        "textDocument": {"uri": path.as_uri()},
        "position": {"line": 2, "character": units(f"{SENTENCE}\\cite{{?")},
    }
    waiting = editor.send("textDocument/completion", **where)
    editor.tell("$/cancelRequest", id=editor.last)
    assert waiting.get(timeout=30)["error"]["code"] == -32800
    assert editor.at("textDocument/completion", path, 2, where["position"]["character"])["items"]


def test_a_paragraph_has_the_same_context_as_in_the_draft_as_a_whole(demo_index: Path, tmp_path: Path) -> None:
    paragraph = f"{SENTENCE}\\cite{{robertson2009bm25}}, \\emph{{as all}} know \\citep{{lost}}.\n\n"
    text = LATEX.replace("It builds", 300 * paragraph + "\\begin{center}\nIt \\todo{cite trees}builds").replace(
        "{refs}", "{refs}\n\n\\end{center}"
    )
    text = text.replace("robertson2009bm52", "?").replace("robertson2009bm25", "900000032")
    path = draft(tmp_path, "long", text).resolve()
    bench = Workbench(Options(index=demo_index))
    store = bench.index.open().store
    try:
        view = View(path, ((path, path.read_text(encoding="utf-8")),))
        whole = bench.draft(view)
        assert len(whole.places) == 3
        for place, expected in zip(whole.places, whole.contexts(store, {}), strict=True):
            context = bench.context(view, place.start)
            assert context == expected
        assert context is not None
        assert len(context.cited_before or ()) == 301
        # A brace that is not closed hides nothing of the sentence.
        open_text = text.replace("\\emph{as all}", "\\emph{as all", 1)
        view = View(path, ((path, open_text),))
        assert bench.places(view) == []
        broken = bench.context(view, open_text.index("?"))
        assert broken is not None
        assert (broken.text, broken.cited_before) == (whole.contexts(store, {})[0].text, ())
    finally:
        bench.index.close()


def test_a_sentence_that_does_not_end_is_offered_the_bibliography(demo_index: Path, tmp_path: Path) -> None:
    refs = "@misc{mine, title={My own work}}"
    bench = Workbench(Options(index=demo_index))
    bench.index.open()
    try:
        for length in (10_000, 40_000):
            text = f"\\bibliography{{refs}} {'word ' * (length // 5)}\\cite{{"
            view = View(path := tmp_path / "a.tex", ((path, text), (tmp_path / "refs.bib", refs)))
            typed = typed_at(path, text, len(text))
            assert typed
            assert "mine" in [offer.key for offer in bench.completions(view, typed)]
    finally:
        bench.index.close()


def test_a_client_that_counts_bytes_and_has_no_index(folder: Path) -> None:
    path = draft(folder, "bytes", LATEX)
    editor = Editor(path.parent, "--index", "nowhere")
    try:
        answer = editor.start(general={"positionEncodings": ["utf-8"]})
        assert answer["positionEncoding"] == "utf-8"
        message = editor.wait(lambda one: one["method"] == "window/showMessage")["params"]["message"]
        assert "nowhere" in message
        assert "\n" not in message
        editor.open(path, LATEX)
        found = editor.diagnostics(path, lambda all: len(all) == 2)
        assert found[0]["range"]["start"]["character"] == len(SENTENCE.encode())
        items = editor.at("textDocument/completion", path, 2, len(f"{SENTENCE}\\cite{{?".encode()))["items"]
        assert [item["label"] for item in items] == ["robertson2009bm25"]
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


@given(st.text(st.sampled_from("ab\n🙂é"), max_size=20), st.integers(0, 5), st.integers(0, 30))
def test_any_position_is_within_its_line(text: str, line: int, character: int) -> None:
    lines = Lines(Path("a.tex"), text, PositionCodec())
    offset = lines.offset(types.Position(line, character))
    assert 0 <= offset <= len(text)
    assert lines.at(offset).line <= line
    assert lines.offset(types.Position(0, 99)) == len(text.split("\n")[0])


@pytest.mark.parametrize(
    ("name", "text", "key", "draft"),
    [
        ("a.tex", r"x \citep[see][p. 3]{salton, ro|cc} y", "rocc", r"x \citep[see][p. 3]{salton, ?} y"),
        ("a.tex", r"x \cite{sal|, and more {text}", "sal", r"x \cite{?}, and more {text}"),
        ("a.tex", r"x \Textcite*{|} y", "", r"x \Textcite*{?} y"),
        ("a.tex", "x \\cite{a,\n  b|,c} y", "b", "x \\cite{a,\n  ?,c} y"),
        ("a.tex", r"x % \cite{|} y", None, ""),
        ("a.tex", r"x \emph{|} y", None, ""),
        ("a.md", "x [see @sal|ton, p. 3] y", "salton", "x [see @?, p. 3] y"),
        ("a.md", "x @|", "", "x @?"),
        ("a.md", "x [@?|] y", "?", "x [@?] y"),
        ("a.md", "x me@there|.org y", None, ""),
    ],
)
def test_what_is_typed_is_found(name: str, text: str, key: str | None, draft: str) -> None:
    at = text.index("|")
    typed = typed_at(Path(name), text.replace("|", ""), at)
    assert (typed.key, typed.draft) == (key, draft) if typed else key is None


@given(st.text(st.sampled_from("\\cite{}[]@, \n%?ab"), max_size=60), st.sampled_from(["a.tex", "a.md"]))
def test_anything_may_be_typed(text: str, name: str) -> None:
    for offset in range(len(text) + 1):
        if typed := typed_at(Path(name), text, offset):
            assert typed.start <= offset <= typed.end
            assert typed.draft[: typed.start + 1] == f"{text[: typed.start]}?"
