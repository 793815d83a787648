"""Makes the picture of the README from the real program: a place filled in an editor, then the page.

    python docs/picture.py INDEX OUT.svg

It asks `citerec lsp` and `citerec serve` with the index of `citerec demo`. It needs Chromium, and the extra `dev`.
"""

import asyncio
import base64
import shutil
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path

from lsprotocol import types
from playwright.sync_api import Error as PlaywrightError, sync_playwright
from pygls.lsp.client import LanguageClient

SENTENCE = "Attention alone suffices to translate well "
DRAFT = rf"""\documentclass{{article}}
\begin{{document}}
\section{{Introduction}}
{SENTENCE}\cite{{?}}.
\bibliography{{refs}}
\end{{document}}
"""
LINE, COLUMN = 3, len(SENTENCE) + len(r"\cite{?")
SCENE_SECONDS = 4
WIDTH, HEIGHT, ROW, TOP = 960, 480, 24, 84
PORT = 8799
SCENES = ("offer", "filled", "page")


async def ask_the_editor(index: Path, folder: Path) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """The offered completions (label and detail), the draft with the first of them, and the bibliography after it."""
    client, entries, opened = LanguageClient("picture", "1"), [], asyncio.Event()

    @client.feature(types.WINDOW_LOG_MESSAGE)
    def _log(message: types.LogMessageParams) -> None:
        if "has opened" in message.message:
            opened.set()

    @client.feature(types.WORKSPACE_APPLY_EDIT)
    def _apply(change: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        for document in change.edit.document_changes or ():
            entries.extend(edit.new_text for edit in getattr(document, "edits", ()))
        return types.ApplyWorkspaceEditResult(applied=True)

    path = folder / "draft.tex"
    path.write_text(DRAFT, encoding="utf-8")
    (folder / "refs.bib").write_text("", encoding="utf-8")
    await client.start_io(sys.executable, "-m", "citerec.cli.main", "lsp", "--index", str(index.resolve()), "-k", "4")
    edits = types.WorkspaceEditClientCapabilities(document_changes=True)
    can = types.ClientCapabilities(workspace=types.WorkspaceClientCapabilities(apply_edit=True, workspace_edit=edits))
    await client.initialize_async(types.InitializeParams(capabilities=can))
    client.initialized(types.InitializedParams())
    document = types.TextDocumentItem(path.as_uri(), "latex", 1, DRAFT)
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    await opened.wait()
    place = types.CompletionParams(types.TextDocumentIdentifier(path.as_uri()), types.Position(LINE, COLUMN))
    items = (await client.text_document_completion_async(place)).items
    first = items[0]
    lines = DRAFT.splitlines()
    edit = first.text_edit
    lines[LINE] = lines[LINE][: edit.range.start.character] + edit.new_text + lines[LINE][edit.range.end.character :]
    command = types.ExecuteCommandParams(first.command.command, first.command.arguments)
    await client.workspace_execute_command_async(command)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return [(item.label, item.detail or "") for item in items], lines, "".join(entries).strip().splitlines()


def photograph_the_page(index: Path) -> bytes:
    """The page as a JPEG, with the papers for the first place of its example."""
    server = subprocess.Popen(
        [sys.executable, "-m", "citerec.cli.main", "serve", "--port", str(PORT), f"demo={index}"],
        stderr=subprocess.DEVNULL,
    )
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1440, "height": 1440 * (HEIGHT - 36) // WIDTH})
            for _ in range(60):
                try:
                    page.goto(f"http://127.0.0.1:{PORT}")
                    break
                except PlaywrightError:  # it does not listen yet
                    time.sleep(0.5)
            page.click("#first")
            page.locator("#papers h3").first.wait_for()
            picture = page.screenshot(type="jpeg", quality=80)
            browser.close()
            return picture
    finally:
        server.terminate()


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def rows(lines: list[str], top: int = TOP, colour: str = "#d8dee9") -> str:
    """Lines of a text, with their numbers."""
    return "".join(
        f'<text x="24" y="{top + number * ROW}" fill="#5c6773">{number + 1}</text>'
        f'<text x="56" y="{top + number * ROW}" fill="{colour}" xml:space="preserve">{escape(line)}</text>'
        for number, line in enumerate(shortened(line, 96) for line in lines)
    )


def menu(items: list[tuple[str, str]]) -> str:
    """The list of completions below the place."""
    left, top = 56 + 9 * 20, TOP + LINE * ROW + 14
    height = len(items) * ROW + 8
    box = f'<rect x="{left}" y="{top}" width="650" height="{height}" rx="6" fill="#2b3340" stroke="#4a5568"/>'
    chosen = f'<rect x="{left + 2}" y="{top + 4}" width="646" height="{ROW}" rx="4" fill="#35507a"/>'
    texts = "".join(
        f'<text x="{left + 12}" y="{top + 21 + number * ROW}" fill="#88c0d0">{escape(label)}</text>'
        f'<text x="{left + 250}" y="{top + 21 + number * ROW}" fill="#a0aab8">{escape(shortened(detail, 42))}</text>'
        for number, (label, detail) in enumerate(items)
    )
    return box + chosen + texts


def window(name: str, title: str, body: str) -> str:
    """A scene: a window with its title."""
    return (
        f'<g class="scene" id="{name}"><rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#1e242e"/>'
        '<circle cx="22" cy="18" r="6" fill="#ff5f57"/><circle cx="42" cy="18" r="6" fill="#febc2e"/>'
        f'<circle cx="62" cy="18" r="6" fill="#28c840"/><text x="{WIDTH / 2}" y="23" text-anchor="middle" '
        f'fill="#8a94a3">{title}</text>{body}</g>'
    )


def drawn(items: list[tuple[str, str]], filled: list[str], entry: list[str], page: bytes) -> str:
    """The picture: three scenes, one after the other, without end."""
    bib_top = TOP + (len(filled) + 2) * ROW
    bib = f'<text x="56" y="{bib_top - ROW}" fill="#8a94a3">refs.bib</text>' + rows(entry[:7], bib_top, "#a3be8c")
    image = base64.b64encode(page).decode()
    scenes = [
        window("offer", "draft.tex, in an editor with citerec lsp", rows(DRAFT.splitlines()) + menu(items)),
        window("filled", "draft.tex and refs.bib", rows(filled) + bib),
        window(
            "page",
            "citerec serve",
            f'<image x="0" y="36" width="{WIDTH}" height="{HEIGHT - 36}" href="data:image/jpeg;base64,{image}"/>',
        ),
    ]
    whole, share = SCENE_SECONDS * len(scenes), 100 / len(scenes)
    style = (
        ".scene{opacity:0;animation:show " + f"{whole}s infinite" + "}"
        f"@keyframes show{{0%,{share - 1:.1f}%{{opacity:1}}{share:.1f}%,100%{{opacity:0}}}}"
        + "".join(f"#{name}{{animation-delay:{at * SCENE_SECONDS}s}}" for at, name in enumerate(SCENES))
        + "@media (prefers-reduced-motion:reduce){.scene{animation:none}#offer{opacity:1}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="15">'
        f"<style>{style}</style>{''.join(scenes)}</svg>\n"
    )


def main() -> None:
    """Makes the picture."""
    index, out = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        items, filled, entry = asyncio.run(ask_the_editor(index, Path(folder)))
    out.write_text(drawn(items, filled, entry, photograph_the_page(index)), encoding="utf-8")


if __name__ == "__main__":
    main()
