"""What web services know of entries: by the web API, the language server, and the tools of an assistant."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from citerec.drafts.online import OnlineSettings
from citerec.serve.indexes import ServedIndex
from citerec.serve.mcp import make_server
from tests.live.services import Records
from tests.serve.conftest import Start
from tests.serve.lsp_client import Editor
from tests.serve.test_lsp import applied, draft
from tests.serve.test_mcp import answered, in_client

BIB = """@article{lakes, title = {Counting lakes by night and by day}, author = {Roe, Ada and Lee, Wei},
  year = 2011, journal = "Lake J.", doi = {10.1000/lakes}}
@inproceedings{Roe15, title = {Dams and their Ponds in Summer}, author = {Ada Roe and Wei Lee}, year = {2015},
  booktitle = {ICML}, doi = {10.1000/dams}}
@article{Nowak20, title = {What nobody ever wrote about Glaciers}, author = {Ola Nowak}, year = 2020, journal = {Ice}}
"""
VERDICTS = {"lakes": "found", "Roe15": "differs", "Nowak20": "not found"}
LATEX = "Lakes \\cite{lakes,10.1000/seas}. Dams \\cite{Roe15}.\n\\bibliography{refs}\n"


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = Records()
    yield found
    found.stop()


def test_by_the_web_api(records: Records, start: Start, demo_index: Path) -> None:
    with start(demo_index, "--online", *records.settings("online.")) as running, running.client() as client:

        def ask(path: str, **fields: object) -> dict[str, object]:
            answer = client.post(f"/api/v1/{path}", json=fields)
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

        draft = ask("drafts/check", text=LATEX, bibliography=BIB)
        assert draft["keys"] == ["lakes", "Roe15"] and "Crossref" in draft["services"]
        assert [one["code"] for one in draft["findings"] if one["file"] == "draft"] == ["key-unknown"]
        assert not records.seen  # nothing was asked so far
        entries = {
            one["key"]: one
            for key in VERDICTS
            for one in ask("bibliography/check", bibliography=BIB, keys=[key])["entries"]
        }
        assert {key: one["verdict"] for key, one in entries.items()} == VERDICTS
        (finding,) = entries["Roe15"]["findings"]
        mended = ask("bibliography/mend", bibliography=BIB, key="Roe15", mendings=[finding["mending"]])["bibliography"]
        assert mended == BIB.replace("Ponds in Summer", "Ponds in Winter")
        for key, value in (("Roe15", "{half"), ("Roe15", "x}, note={y"), ("nobody", "x")):
            body = {"bibliography": BIB, "key": key, "mendings": [{"field": "title", "value": value}]}
            assert client.post("/api/v1/bibliography/mend", json=body).status_code == 422
        added = ask("bibliography/add", bibliography=BIB, references=["10.1000/seas", "10.1000/lakes"])
        assert added["keys"] == ["Roe19", "lakes"] and added["bibliography"].startswith(BIB + "\n@")
        lacking = client.post("/api/v1/bibliography/add", json={"references": ["10.1000/none"]})
        assert lacking.status_code == 422 and "no source has" in lacking.json()["error"]


def test_without_online_nothing_is_asked(start: Start, demo_index: Path) -> None:
    with start(demo_index) as running, running.client() as client:
        assert client.post("/api/v1/drafts/check", json={"text": LATEX, "bibliography": BIB}).json()["services"] == []
        assert (
            client.post("/api/v1/bibliography/check", json={"bibliography": BIB, "keys": ["lakes"]}).status_code == 404
        )


def test_by_the_language_server(records: Records, demo_index: Path, tmp_path: Path) -> None:
    editor = Editor(tmp_path, "--index", demo_index, "--online", *records.settings("online."))
    try:
        editor.start()
        editor.ready()
        path = draft(tmp_path, "one", LATEX, BIB)
        editor.open(path, LATEX)
        (unknown,), codes = editor.diagnostics(path, bool), {"title-differs"}
        editor.diagnostics(path.with_name("refs.bib"), lambda found: codes <= {one["code"] for one in found})
        assert "Found in Crossref" in editor.at("textDocument/hover", path, 0, 13)["contents"]["value"]
        (look_up,) = (one for one in editor.actions(path, unknown["range"], [unknown]) if "Look up" in one["title"])
        editor.ask("workspace/executeCommand", **look_up["command"])
        steps = editor.applied[-1]["documentChanges"]
        texts = {step["textDocument"]["uri"]: step["edits"] for step in steps}
        assert applied(LATEX, texts[path.as_uri()]) == LATEX.replace("10.1000/seas", "Roe19")
        assert "Seas of the Moon" in applied(BIB, texts[path.with_name("refs.bib").as_uri()])
        assert editor.stop() == 0
    finally:
        editor.kill()


def test_by_an_assistant(records: Records, demo_index: Path) -> None:
    settings = OnlineSettings.assigned(records.settings()[1::2], "online")
    with settings.opened() as services:
        server = make_server(ServedIndex(demo_index), services)

        def ask(tool: str, **arguments: object) -> dict[str, object]:
            return in_client(server, lambda client: client.call_tool(tool, arguments, raise_on_error=False))

        checked = answered(ask("check_bibliography", bibtex=BIB, online=True))
        assert {one["key"]: one["verdict"] for one in checked["verdicts"]} == VERDICTS
        assert not checked["failed"]
        (entry,) = answered(ask("look_up", references=["Seas of the Moon are Dry"], bibtex=BIB))["entries"]
        assert entry["key"] == "Roe19" and "{Roe19," in entry["untrusted_text"]
    offline = in_client(
        make_server(ServedIndex(demo_index)),
        lambda client: client.call_tool("check_bibliography", {"bibtex": BIB, "online": True}, raise_on_error=False),
    )
    assert "--online" in answered(offline)
