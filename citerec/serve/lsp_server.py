"""The language server as an editor's partner: its documents, messages and edits, and what it says of a draft."""

import asyncio
import contextlib
import itertools
import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from citerec.drafts.base import Source
from citerec.drafts.check import Options, check_draft, read_entries
from citerec.drafts.checks.base import Finding, Severity
from citerec.drafts.read import is_draft
from citerec.errors import CiterecError, InputError
from citerec.files.text import one_line
from citerec.records import Paper
from citerec.serve import lsp_drafts
from citerec.serve.lsp_drafts import Offer, View, Workbench
from citerec.serve.lsp_text import Lines
from citerec.version import __version__

Result = TypeVar("Result")
Changes = dict[Path, list[types.TextEdit]]
"""Edits of several files."""

LOG = logging.getLogger("citerec.lsp")
"""What happens; it is written with `citerec lsp --log`."""
_SUFFIXES = {"latex": ".tex", "tex": ".tex", "markdown": ".md", "quarto": ".qmd", "plaintext": ".txt", "bibtex": ".bib"}
_NO_NAME = re.compile(r"[^\w.-]+")  # of an address without a file, such as untitled:Untitled-1
_LONGEST = 100
_REMEMBERED = 2000
_MINUTE = 60.0
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
_CHECKED = Options(ignore=frozenset({"not-in-index"}))  # while someone writes, what the index lacks is no fault
_OTHER_KEYS = re.compile(r"(?:fig|tbl|tab|sec|eq|lst|thm|def|lem|exm)[-:]")  # cross-references of pandoc and Quarto
_LINE = re.compile(r", line (\d+)")


class Server(LanguageServer):
    """The language server.

    Args:
        options: What it was started with.
    """

    def __init__(self, options: lsp_drafts.Options) -> None:
        # The whole text at each change: pygls and editors do not agree on what ends a line.
        super().__init__("citerec", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.bench = Workbench(options)
        self.is_shut_down = self.is_failed = False
        self.offers: dict[tuple[Path, str], Offer] = {}
        self.turns: dict[str, int] = {}
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._reported: dict[str, set[str]] = {}
        self._said: dict[str, float] = {}
        self._pool = ThreadPoolExecutor(2, "citerec")

    async def work(self, what: Callable[..., Result], *arguments: Any) -> Result:
        """Runs a function in a thread, so that messages are read meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, what, *arguments)

    async def tried(self, what: Callable[..., Result], *arguments: Any) -> Result | None:
        """The same; what fails is said in a line, and the result is None."""
        try:
            return await self.work(what, *arguments)
        except CiterecError as error:
            self.say(str(error))
        except Exception as error:  # a fault of ours must not end the server
            LOG.exception("failed")
            self.say(f"citerec failed: {error!r:.200}. Start `citerec lsp --log` to see where.")
        return None

    def say(self, message: str, kind: types.MessageType = types.MessageType.Error) -> None:
        """Shows a message in the editor; the same one not twice in a minute: editors ask again at each move."""
        message, now = one_line(message), time.monotonic()
        LOG.info("%s", message)
        if now - self._said.get(message, -_MINUTE) >= _MINUTE:
            self._said[message] = now
            self.window_show_message(types.ShowMessageParams(kind, message))

    def note(self, message: str) -> None:
        """Writes a message into the editor's log."""
        LOG.info("%s", message)
        self.window_log_message(types.LogMessageParams(types.MessageType.Info, message))

    def path(self, uri: str) -> Path:
        """The path of a document; one that has no file yet lies in the folder of the server."""
        document = self.workspace.get_text_document(uri)
        named = to_fs_path(uri) if uri.startswith("file:") else None
        suffix = _SUFFIXES.get(document.language_id or "", "")
        return Path(named or f"{_NO_NAME.sub('-', uri)[-_LONGEST:]}{suffix}").resolve()

    def uri(self, path: Path) -> str:
        """The address of a file, as the editor writes it if it is open there."""
        found = (uri for uri in list(self.workspace.text_documents) if self.path(uri) == path)
        return next((self.workspace.text_documents[uri].uri for uri in found), None) or from_fs_path(str(path)) or ""

    def view(self, uri: str) -> View | None:
        """A draft and all open texts; None if it is no draft that is open."""
        view = self._view(uri)
        return view if view and is_draft(view.path) else None

    def _view(self, uri: str) -> View | None:
        texts = {self.path(one): document.source for one, document in self.workspace.text_documents.items()}
        path = self.path(uri)
        return View(path, tuple(texts.items())) if path in texts else None

    def lines(self, text: str) -> Lines:
        """The lines of a text, counted as the editor does."""
        return Lines(text, str(getattr(encoding := self.workspace.position_encoding, "value", encoding) or "utf-16"))

    def remember(self, path: Path, offers: Iterable[Offer]) -> None:
        """Remembers offers, to say more of them and to add their entries."""
        for offer in offers:
            self.offers.pop((path, offer.key), None)
            self.offers[path, offer.key] = offer
        for old in list(self.offers)[:-_REMEMBERED]:
            del self.offers[old]

    def check_later(self, uri: str, pause: float) -> None:
        """Checks a draft when it has not changed for some seconds."""
        if task := self._checks.pop(uri, None):
            task.cancel()
        self._checks[uri] = asyncio.get_running_loop().create_task(self._check(uri, pause))

    def closed(self, uri: str) -> None:
        """Removes what was said of a draft that is closed, and does not go on to check it."""
        if task := self._checks.pop(uri, None):
            task.cancel()
        self.publish(uri, None, [])

    def check_all(self, pause: float) -> None:
        """Checks all open drafts."""
        for document in self.workspace.text_documents.values():
            self.check_later(document.uri, pause)

    async def _check(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        view = self._view(uri)
        if view and view.path.suffix.lower() not in ("", ".bib"):  # of any other that is no draft, that is said
            self.publish(uri, view, await self.tried(_findings, self.bench, view) or [])

    def publish(self, uri: str, view: View | None, findings: list[Finding]) -> None:
        """Shows findings, each at its file, and removes those that this draft had before."""
        shown: dict[str, list[types.Diagnostic]] = {one: [] for one in (uri, *self._reported.pop(uri, ()))}
        if view:
            files = view.files()
            for path, of_file in itertools.groupby(findings, lambda finding: finding.path.resolve()):
                text = ""
                with contextlib.suppress(InputError):  # that it is missing, or cannot be read, may be the finding
                    text = files.text(path)
                source = Source(path, text)
                lines = self.lines(text)
                shown.setdefault(self.uri(path), []).extend(_diagnostic(one, source, lines) for one in of_file)
        for one, diagnostics in shown.items():
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(one, diagnostics))
        self._reported[uri] = {one for one, diagnostics in shown.items() if diagnostics}

    def edit(self, changes: Changes) -> types.WorkspaceEdit:
        """An edit of several files, which makes those that are missing if the editor can."""
        known = self.client_capabilities.workspace and self.client_capabilities.workspace.workspace_edit
        if not known or not known.document_changes:
            return types.WorkspaceEdit(changes={self.uri(path): edits for path, edits in changes.items()})
        steps: list[types.TextDocumentEdit | types.CreateFile | types.RenameFile | types.DeleteFile] = []
        for path, edits in changes.items():
            uri = self.uri(path)
            version = self.workspace.get_text_document(uri).version
            if (
                version is None
                and not path.exists()
                and types.ResourceOperationKind.Create in (known.resource_operations or ())
            ):
                steps.append(types.CreateFile(uri, options=types.CreateFileOptions(ignore_if_exists=True)))
            document = types.OptionalVersionedTextDocumentIdentifier(uri, version)
            steps.append(types.TextDocumentEdit(document, list(edits)))
        return types.WorkspaceEdit(document_changes=steps)

    def entry_edit(self, view: View, paper: Paper, key: str) -> Changes:
        """The edit that adds an entry to the bibliography of a draft.

        Raises:
            InputError: It names none, or it cannot be read.
        """
        bibliography = self.bench.bibliography(view)
        if bibliography is None:
            raise InputError(
                f"{view.path.name} names no bibliography",
                r"Write \bibliography{refs}, or start citerec lsp with --bib.",
            )
        files = view.files()
        text = files.text(bibliography.path) if files.exists(bibliography.path) else ""
        end = self.lines(text).position(len(text))
        added = types.TextEdit(types.Range(end, end), bibliography.addition(paper, key))
        return {bibliography.path: [added]}

    def close_all(self) -> None:
        """Stops the threads, and closes the index."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.bench.close()


def _diagnostic(finding: Finding, source: Source, lines: Lines) -> types.Diagnostic:
    span = lines.range(*_span_of(finding, source))
    hint = types.DiagnosticSeverity.Hint if finding.code == "place-open" else None
    severity = hint or _SEVERITIES[finding.severity]
    message = f"{finding.message}. {finding.remedy}"
    return types.Diagnostic(span, message, severity, finding.code, source="citerec")


def _findings(bench: Workbench, view: View) -> list[Finding]:
    """What `citerec check` finds in a draft, or why it cannot be understood; what needs the index, once this is open.

    Places and keys of files that it takes in are told where these are open.
    """
    try:
        draft = bench.draft(view)
    except InputError as error:
        source = Source(view.path, view.text)
        start, end = source.line_span(int(at[1]) if (at := _LINE.search(error.message)) else 1)
        places = (*source.position(start), *source.position(end))
        return [Finding("unreadable-draft", Severity.NOTE, view.path, *places, error.message, error.remedy)]
    files, paths = view.files(), bench.paths(view)
    entries = read_entries([path for path in paths if files.exists(path)], files) if paths else None
    cited = {one.key for one in draft.cited}
    papers = (
        {one.paper.paper_id: one.paper for one in entries.entries if one.paper.paper_id in cited} if entries else {}
    )
    index = bench.recommender.index if bench.recommender else None
    found = check_draft(draft, entries, index, _CHECKED, files, bench.matches(papers))
    return list(_of_view(found, bench, view))


def _of_view(found: list[Finding], bench: Workbench, view: View) -> Iterator[Finding]:
    """Without places and keys of other files, and without keys that are no faults."""
    known: Collection[str] = ()
    with contextlib.suppress(InputError):  # a bibliography that cannot be read is a finding of its own
        if bibliography := bench.bibliography(view):
            known = bibliography.entries
    source = Source(view.path, view.text)
    for one in found:
        if one.code in ("place-open", "key-unknown") and one.path.resolve() != view.path:
            continue
        if one.code == "key-unknown":
            key = view.text[slice(*_span_of(one, source))]
            if key in known or _OTHER_KEYS.match(key):  # `known` has entries that are not on the disk yet
                continue
        yield one


def _span_of(finding: Finding, source: Source) -> tuple[int, int]:
    """Where a finding begins and ends in the text of its file, in characters."""
    begin, end = source.line_span(finding.line)[0], source.line_span(finding.end_line)[0]
    return begin + finding.column - 1, end + finding.end_column - 1
