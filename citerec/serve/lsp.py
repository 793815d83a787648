"""The language server: completion, hover, code actions and diagnostics for the citations of a draft, over stdio."""

import asyncio
import contextlib
import functools
import itertools
import logging
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec, TextDocument

from citerec.drafts.base import Place, Source
from citerec.drafts.check import Finding, Severity
from citerec.drafts.read import is_draft
from citerec.errors import CiterecError, InputError
from citerec.files.text import one_line
from citerec.records import Paper
from citerec.serve.indexes import shown
from citerec.serve.lsp_drafts import Offer, Options, Typed, View, Workbench, typed_at
from citerec.version import __version__
from citerec.write.tldr import tldrs
from citerec.write.writers.base import Writer, default_writer, open_writer

Result = TypeVar("Result")
Changes = dict[Path, list[types.TextEdit]]
"""Edits of several files."""

LOG = logging.getLogger("citerec.lsp")
"""What happens; it is written with `citerec lsp --log`."""
ADD_ENTRY = "citerec.addEntry"
"""The command of a completion item: adds the entry of the paper that was accepted."""
_PAUSE = 0.05  # seconds in which a further key makes a completion needless
_QUIET = 0.5  # seconds without a change before a draft is checked
_MINUTE = 60.0
_HOVERED, _ACTIONS, _REMEMBERED = 3, 5, 2000
_AUTHORS, _REASONS, _WORDS = 3, 3, 5
_TITLE, _QUOTED, _START, _LONGEST = 80, 240, 300, 100  # characters that are shown
_COUNTS = 0.1  # of a score: smaller reasons are not shown
_SUFFIXES = {"latex": ".tex", "tex": ".tex", "markdown": ".md", "quarto": ".qmd", "plaintext": ".txt", "bibtex": ".bib"}
_NO_NAME = re.compile(r"[^\w.-]+")  # of an address without a file, such as untitled:Untitled-1
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|])")
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


class Lines(Source):
    """The lines of a text, for positions in the units of an editor: pygls knows other ends of lines than the protocol.

    Args:
        path: The file.
        text: Its text.
        codec: Counts the units of a line.
    """

    ends = re.compile(r"\r\n|\n|\r")

    def __init__(self, path: Path, text: str, codec: PositionCodec) -> None:
        super().__init__(path, text)
        self._codec = codec

    def offset(self, position: types.Position) -> int:
        """The offset of a position, in characters; a position that does not exist is moved to the nearest before it."""
        start, stop = self.line_span(position.line + 1)
        if self.line(start) <= position.line:
            return stop
        line = self.text[start:stop]
        units = min(position.character, self._codec.client_num_units(line))  # pygls would end a character earlier
        return start + self._codec.position_from_client_units([line], types.Position(0, units)).character

    def at(self, offset: int) -> types.Position:
        """The position of a character; one within an end of line is the end of its line."""
        start, stop = self.line_span(self.line(offset))
        return types.Position(self.line(offset) - 1, self._codec.client_num_units(self.text[start : min(offset, stop)]))

    def range(self, start: int, end: int) -> types.Range:
        """The range between two characters."""
        return types.Range(self.at(start), self.at(end))


class Server(LanguageServer):
    """The language server: the documents of an editor, messages to it, and what it shows of their findings.

    Args:
        options: What it was started with.
    """

    def __init__(self, options: Options) -> None:
        # The whole text at each change: pygls and editors do not agree on what ends a line.
        super().__init__("citerec", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.bench = Workbench(options)
        self.is_shut_down = self.is_failed = False
        self.offers: dict[tuple[Path, str], Offer] = {}
        self.turns: dict[str, int] = {}
        self._checks: dict[str, asyncio.Task[None]] = {}
        self._findings = defaultdict[Path, list[Finding]](list)
        self._said: dict[str, float] = {}
        self._pool = ThreadPoolExecutor(2, "citerec")

    async def tried(self, work: Callable[..., Result], *arguments: Any) -> Result | None:
        """The result of a function that runs in a thread; what fails is said in a line, and the result is None."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        except CiterecError as error:
            self.say(str(error))
        except Exception as error:  # a fault of ours must not end the server
            LOG.exception("failed")
            self.say(f"citerec failed: {error!r:.200}. Start `citerec lsp --log` to see where.")
        return None

    def say(self, message: str) -> None:
        """Shows an error in the editor; the same one not twice in a minute: editors ask again at each move."""
        message, now = one_line(message), time.monotonic()
        LOG.info("%s", message)
        if now - self._said.get(message, -_MINUTE) >= _MINUTE:
            self._said[message] = now
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, message))

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

    def documents(self) -> dict[Path, TextDocument]:
        """The documents that are open."""
        return {self.path(uri): document for uri, document in list(self.workspace.text_documents.items())}

    def uri(self, path: Path) -> str:
        """The address of a file, as the editor writes it if it is open there."""
        document = self.documents().get(path)
        return document.uri if document else from_fs_path(str(path)) or ""

    def view_of(self, path: Path) -> View:
        """A file and all open texts."""
        return self.bench.view(path, {one: document.source for one, document in self.documents().items()})

    def view(self, uri: str) -> View | None:
        """A draft and all open texts; None if it is no draft that is open."""
        path = self.path(uri)
        return self.view_of(path) if path in self.documents() and is_draft(path) else None

    def lines(self, path: Path, text: str) -> Lines:
        """The lines of a text, counted as the editor does."""
        return Lines(path, text, self.workspace.position_codec)

    def remember(self, path: Path, offers: Iterable[Offer]) -> None:
        """Remembers offers, to say more of them and to add their entries."""
        for offer in offers:
            self.offers.pop((path, offer.key), None)
            self.offers[path, offer.key] = offer
        for old in list(self.offers)[:-_REMEMBERED]:
            del self.offers[old]

    def check(self, uri: str | None, pause: float = 0) -> None:
        """Checks a draft when it has not changed for some seconds; without an address, or for a bibliography, all."""
        drafts = {path: one.uri for path, one in self.documents().items() if path.suffix.lower() != ".bib"}
        for path, address in drafts.items():
            if uri is None or path == self.path(uri) or self.path(uri) not in drafts:
                self.stop_check(address)
                self._checks[address] = asyncio.get_running_loop().create_task(self._check(path, pause))

    def stop_check(self, uri: str) -> None:
        """Does not check a draft that waits for it."""
        if task := self._checks.pop(uri, None):
            task.cancel()

    async def _check(self, path: Path, pause: float) -> None:
        await asyncio.sleep(pause)
        if path in self.documents() and path.suffix:  # of any other kind that is no draft, that is said
            self.publish(path, await self.tried(self.bench.findings, self.view_of(path)) or [])

    def publish(self, draft: Path, findings: list[Finding]) -> None:
        """Shows the findings of a draft, each at its file, and removes those that it had before."""
        before, self._findings[draft] = self._findings[draft], findings
        files, opened = self.view_of(draft).files(), self.documents()
        for path in dict.fromkeys([draft, *(finding.path.resolve() for finding in (*before, *findings))]):
            is_open_draft = path in opened and is_draft(path)
            if is_open_draft and path != draft:  # its own check tells what is in it
                continue
            of_all = findings if is_open_draft else itertools.chain(*self._findings.values())
            text = ""
            with contextlib.suppress(InputError):  # that it is missing, or cannot be read, may be the finding
                text = files.text(path)
            source, lines = Source(path, text), self.lines(path, text)
            here = dict.fromkeys(one for one in of_all if one.path.resolve() == path)
            diagnostics = [_diagnostic(finding, source, lines) for finding in here]
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(self.uri(path), diagnostics))

    def edit(self, changes: Changes) -> types.WorkspaceEdit:
        """An edit of several files, which makes those that are missing if the editor can."""
        known = self.client_capabilities.workspace and self.client_capabilities.workspace.workspace_edit
        if not known or not known.document_changes:
            return types.WorkspaceEdit(changes={self.uri(path): edits for path, edits in changes.items()})
        can_create = types.ResourceOperationKind.Create in (known.resource_operations or ())
        steps = list[Any]()
        for path, edits in changes.items():
            uri = self.uri(path)
            version = self.workspace.get_text_document(uri).version
            if version is None and not path.exists() and can_create:
                steps.append(types.CreateFile(uri, options=types.CreateFileOptions(ignore_if_exists=True)))
            steps.append(types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version), [*edits]))
        return types.WorkspaceEdit(document_changes=steps)

    def entry_edit(self, view: View, offer: Offer) -> Changes:
        """The edit that adds the entry of a paper to the bibliography of a draft.

        Raises:
            InputError: It names none, or it cannot be read.
        """
        if not self.bench.paths(view):
            remedy = r"Write \bibliography{refs}, or start citerec lsp with --bib."
            raise InputError(f"{view.path.name} names no bibliography", remedy)
        bibliography = self.bench.bibliography(view)
        end = self.lines(bibliography.path, bibliography.text).at(len(bibliography.text))
        return {
            bibliography.path: [types.TextEdit(types.Range(end, end), bibliography.addition(offer.paper, offer.key))]
        }

    def close_all(self) -> None:
        """Stops the threads, and closes the index."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.bench.index.close()


def _diagnostic(finding: Finding, source: Source, lines: Lines) -> types.Diagnostic:
    start = source.line_span(finding.line)[0] + finding.column - 1
    end = source.line_span(finding.end_line)[0] + finding.end_column - 1
    severity = types.DiagnosticSeverity.Hint if finding.code == "place-open" else _SEVERITIES[finding.severity]
    message = f"{finding.message}. {finding.remedy}"
    return types.Diagnostic(lines.range(start, end), message, severity, finding.code, source="citerec")


async def opened(ls: Server, _params: types.InitializedParams) -> None:
    """Opens the index in the background, and says when it is open."""
    ls.note("citerec is opening its index. Until then only your bibliography is offered.")
    token, window, shows = "citerec/index", ls.client_capabilities.window, False
    if window and window.work_done_progress:
        with contextlib.suppress(Exception):  # an editor that promises progress and has none
            await ls.work_done_progress.create_async(token)
            ls.work_done_progress.begin(token, types.WorkDoneProgressBegin("citerec: opening the index"))
            shows = True
    recommender = await ls.tried(ls.bench.index.open)
    ls.is_failed = recommender is None
    if shows:
        ls.work_done_progress.end(token, types.WorkDoneProgressEnd())
    if recommender:
        ls.note(f"citerec has opened {recommender.path}: {recommender.manifest.counts.papers:,} papers.")
        ls.check(None)  # which also finds the papers of the entries, before they are asked for
        # Loads what the first text needs, before someone waits for it.
        await ls.tried(_summary, Paper("", abstract="One sentence. Another sentence."))


async def completion(ls: Server, params: types.CompletionParams) -> types.CompletionList:
    """Entries and papers for the citation that is being typed."""
    uri = params.text_document.uri
    turn = ls.turns[uri] = ls.turns.get(uri, 0) + 1
    await asyncio.sleep(_PAUSE)
    view = ls.view(uri)
    if view is None or ls.turns[uri] != turn:
        return types.CompletionList(is_incomplete=view is not None, items=[])
    lines = ls.lines(view.path, view.text)
    typed = typed_at(view.path, view.text, lines.offset(params.position))
    if typed is None:
        return types.CompletionList(is_incomplete=False, items=[])
    if ls.bench.recommender is None and not ls.is_failed:
        ls.note("citerec is still opening its index: papers are not recommended yet.")
    offers = await ls.tried(ls.bench.completions, view, typed) or []
    ls.remember(view.path, offers)
    span = lines.range(typed.start, typed.end)
    items = [_item(uri, typed, span, number, offer) for number, offer in enumerate(offers)]
    return types.CompletionList(is_incomplete=True, items=items)


def _item(uri: str, typed: Typed, span: types.Range, number: int, offer: Offer) -> types.CompletionItem:
    add_entry = types.Command("Add the entry", ADD_ENTRY, arguments=[uri, offer.key, offer.paper_id])
    return types.CompletionItem(
        label=offer.key,
        kind=types.CompletionItemKind.Reference,
        detail=_in_line(offer.paper),
        label_details=types.CompletionItemLabelDetails(description=shown(offer.paper.title, _TITLE)),
        # What matches is decided here, by authors and titles too: the editor must keep all items, in this order.
        filter_text=typed.text or None,
        sort_text=f"{number:04}",
        text_edit=types.TextEdit(span, offer.key),
        command=add_entry if offer.is_new else None,
        data={"uri": uri, "key": offer.key},
    )


async def resolved(ls: Server, item: types.CompletionItem) -> types.CompletionItem:
    """The documentation of a completion item."""
    data = item.data if isinstance(item.data, dict) else {}
    if offer := ls.offers.get((ls.path(data.get("uri", "")), data.get("key", ""))):
        text = await ls.tried(_about, ls.bench, offer) or ""
        item.documentation = types.MarkupContent(types.MarkupKind.Markdown, text)
    return item


async def add_entry(ls: Server, uri: str, key: str, paper_id: str) -> None:
    """Adds the entry of a paper that was accepted in a completion."""
    view = ls.view(uri)
    offer = await ls.tried(ls.bench.offer_of, view, key, paper_id) if view else None
    if view is None or offer is None or not offer.is_new or not (edit := await ls.tried(ls.entry_edit, view, offer)):
        return
    answer = await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(ls.edit(edit), f"Add {key}"))
    if answer.applied:
        await ls.tried(ls.bench.note_added, view, offer)
    else:
        ls.say(f"The editor did not add {key} to the bibliography. {answer.failure_reason or 'Add its entry by hand.'}")
    ls.check(uri, _QUIET)


async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """What a key is, or the best papers for a place."""
    view = ls.view(params.text_document.uri)
    return await ls.tried(_hover, ls, view, params.position) if view else None


def _hover(ls: Server, view: View, position: types.Position) -> types.Hover | None:
    offset, text = ls.lines(view.path, view.text).offset(position), ""
    typed = typed_at(view.path, view.text, offset)
    places = [place for place in ls.bench.places(view) if place.start <= offset <= place.end]
    if typed and typed.key and (offer := ls.bench.offer_of(view, typed.key) or ls.offers.get((view.path, typed.key))):
        text = _about(ls.bench, offer)
    elif places:
        text = _about_place(ls.bench, view, places[0])
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None


async def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """Papers to cite at a place, and what to do about a key without an entry."""
    view = ls.view(params.text_document.uri)
    return await ls.tried(_actions, ls, view, params) if view else None


def _actions(ls: Server, view: View, params: types.CodeActionParams) -> list[types.CodeAction]:
    unknown = [one for one in params.context.diagnostics if one.code == "key-unknown"]
    actions = [action for diagnostic in unknown for action in _key_actions(ls, view, diagnostic)]
    return actions + _place_actions(ls, view, params.range)


def _place_actions(ls: Server, view: View, span: types.Range) -> list[types.CodeAction]:
    actions, lines = [], ls.lines(view.path, view.text)
    start, end = lines.offset(span.start), lines.offset(span.end)
    for place in ls.bench.places(view):
        if place.start > end or place.end < start:
            continue
        offers, _ = ls.bench.best(view, place, _ACTIONS)
        ls.remember(view.path, offers)
        for offer in offers:
            citation = ls.bench.draft(view).citation(place, [offer.key])
            changes = {view.path: [types.TextEdit(lines.range(place.start, place.end), citation)]}
            if offer.is_new:
                changes |= ls.entry_edit(view, offer)
            title = f"Cite {offer.key}: {shown(_title(offer.paper), _TITLE)}"
            actions.append(types.CodeAction(title, types.CodeActionKind.QuickFix, edit=ls.edit(changes)))
    return actions


def _key_actions(ls: Server, view: View, diagnostic: types.Diagnostic) -> list[types.CodeAction]:
    fix, actions, lines = types.CodeActionKind.QuickFix, [], ls.lines(view.path, view.text)
    key = view.text[lines.offset(diagnostic.range.start) : lines.offset(diagnostic.range.end)]
    offer = ls.offers.get((view.path, key)) or ls.bench.offer_of(view, key)
    if offer and offer.is_new:
        edit = ls.edit(ls.entry_edit(view, offer))
        actions.append(types.CodeAction(f"Add the entry {key}", fix, [diagnostic], is_preferred=True, edit=edit))
    for near in ls.bench.near_keys(view, key):
        edit = ls.edit({view.path: [types.TextEdit(diagnostic.range, near)]})
        actions.append(types.CodeAction(f"Change {key} to {near}", fix, [diagnostic], edit=edit))
    return actions


async def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Checks a draft that was opened; a bibliography concerns all drafts."""
    ls.check(params.text_document.uri)


async def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Checks a draft that has changed, after a pause."""
    ls.check(params.text_document.uri, _QUIET)


async def did_save(ls: Server, _params: types.DidSaveTextDocumentParams) -> None:
    """Checks all drafts again: files that they take in may have changed."""
    ls.bench.forget()
    ls.check(None)


async def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Removes what was said of a draft."""
    ls.stop_check(params.text_document.uri)
    ls.publish(ls.path(params.text_document.uri), [])


async def shut_down(ls: Server, _params: Any) -> None:
    """Notes that the editor has said goodbye."""
    ls.is_shut_down = True


def _about(bench: Workbench, offer: Offer) -> str:
    """A paper in Markdown: what it is, why it is offered, what supports it, and where it is."""
    found, known = offer.found, bench.paper(offer.paper_id)
    parts = [_summary(known or offer.paper)]
    if found:
        reasons = [one.name for one in found.hit.reasons if one.score >= _COUNTS][:_REASONS]
        words = ", ".join(match.word for match in found.hit.matches[:_WORDS])
        if reasons or words:
            parts.append(f"**Why:** {_plain(', '.join(reasons) or f'shares {words}')}")
        if citance := found.hit.citance:
            titles = bench.recommender.titles([found.hit]) if bench.recommender else {}
            by = titles.get(citance.citing_id) or citance.citing_id
            parts.append(f"**Cited so:** “{_plain(shown(citance.text, _QUOTED))}” ({_plain(by)})")
        elif sentence := found.support:
            parts.append(f"**It says:** “{_plain(shown(sentence, _QUOTED))}”")
    if known:
        cited = "" if known.citation_count is None else f", {known.citation_count:,} citations"
        parts.append(_plain(f"In the index: {known.paper_id}{cited}"))
    elif bench.recommender:
        parts.append("Not in the index.")
    if offer.is_new:
        parts.append("*Not in your bibliography: its entry is added.*")
    return "\n\n".join(parts)


def _about_place(bench: Workbench, view: View, place: Place) -> str:
    """The best papers for a place, in Markdown, and how sure the system is."""
    if bench.recommender is None:
        return "The index is not open."
    offers, answer = bench.best(view, place, _HOVERED)
    if not offers:
        return "No paper found for this place."
    lines = [
        f"{number}. **{_plain(_title(offer.paper))}** {_plain(_in_line(offer.paper))} (`{offer.key}`"
        f"{'' if offer.is_new else ', in your bibliography'})"
        for number, offer in enumerate(offers, 1)
    ]
    stated = "How sure the system is, is not known for this index: run `citerec train confidence`."
    if sure := answer.confidence if answer else None:
        best = next(offer for offer in offers if offer.rank == 1)
        named = "The first paper" if best is offers[0] else f"`{best.key}`, which the system ranks first,"
        stated = f"{named} is right with {sure.first:.0%}, one of the first ten with {sure.among_ten:.0%}."
    return "\n".join([*lines, "", stated])


def _summary(paper: Paper) -> str:
    """Title, authors, year, venue, TLDR and the start of the abstract of a paper, in Markdown."""
    (tldr,) = tldrs([paper], _tldr_writer())
    parts = [f"**{_plain(_title(paper))}**", _plain(_in_line(paper))]
    parts += [f"**TLDR:** {_plain(tldr.text)}" if tldr.text else "", _plain(shown(paper.abstract or "", _START))]
    return "\n\n".join(filter(None, parts))


@functools.cache
def _tldr_writer() -> Writer:
    return open_writer(default_writer("tldr"), "tldr")


def _title(paper: Paper) -> str:
    return paper.title or "(untitled)"


def _in_line(paper: Paper) -> str:
    """Authors, year and venue of a paper."""
    names = ", ".join(paper.authors[:_AUTHORS]) + (" et al." if len(paper.authors) > _AUTHORS else "")
    return one_line(" · ".join(filter(None, (names, str(paper.year or ""), paper.venue))))


def _plain(text: str) -> str:
    """A text in which nothing is Markdown."""
    return _MARKUP.sub(r"\\\1", one_line(text))


def make_server(options: Options) -> Server:
    """A language server, not started."""
    server = Server(options)
    triggers = types.CompletionOptions(trigger_characters=["{", ",", "@"], resolve_provider=True)
    actions = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    server.feature(types.INITIALIZED)(opened)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, triggers)(completion)
    server.feature(types.COMPLETION_ITEM_RESOLVE)(resolved)
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, actions)(code_action)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(did_change)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(did_save)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(did_close)
    server.feature(types.SHUTDOWN)(shut_down)
    server.command(ADD_ENTRY)(add_entry)
    return server


def serve(options: Options, *, log: bool = False) -> int:
    """Serves an editor over standard input and output until it says goodbye.

    Args:
        options: What the server is started with.
        log: Whether to write what happens to standard error.

    Returns:
        The exit code: 1 if the editor left without a goodbye.
    """
    handler = logging.StreamHandler(sys.stderr) if log else logging.NullHandler()
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    LOG.setLevel(logging.INFO)
    # Nothing but the protocol may reach standard output: a library or the Java machine might print.
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = make_server(options)
    try:
        server.start_io(sys.stdin.buffer, protocol)
    finally:
        server.close_all()
    return 0 if server.is_shut_down else 1
