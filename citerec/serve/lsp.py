"""The language server: completion, hover, code actions and diagnostics for the citations of a draft, over stdio."""

import asyncio
import contextlib
import logging
import os
import sys
from typing import Any

from lsprotocol import types

from citerec.records import Paper
from citerec.serve import lsp_shown
from citerec.serve.lsp_drafts import Offer, Options, View
from citerec.serve.lsp_server import LOG, Changes, Server
from citerec.serve.lsp_text import Typed, typed_at

ADD_ENTRY = "citerec.addEntry"
"""The command of a completion item: adds the entry of the paper that was accepted."""
_PAUSE = 0.05  # seconds in which a further key makes a completion needless
_QUIET = 0.5  # seconds without a change before a draft is checked
_HOVERED, _ACTIONS = 3, 5


async def opened(ls: Server, _params: types.InitializedParams) -> None:
    """Opens the index in the background, and says when it is open."""
    ls.note("citerec is opening its index. Until then only your bibliography is offered.")
    token, window = "citerec/index", ls.client_capabilities.window
    shows = bool(window and window.work_done_progress)
    if shows:
        with contextlib.suppress(Exception):  # an editor that promises progress and has none
            await ls.work_done_progress.create_async(token)
            ls.work_done_progress.begin(token, types.WorkDoneProgressBegin("citerec: opening the index"))
    recommender = await ls.tried(ls.bench.open)
    ls.is_failed = recommender is None
    if shows:
        ls.work_done_progress.end(token, types.WorkDoneProgressEnd())
    if recommender:
        ls.note(f"citerec has opened {recommender.path}: {recommender.manifest.counts.papers:,} papers.")
        ls.check_all(0)  # which also finds the papers of the entries, before they are asked for
        await ls.tried(lsp_shown.warm_up)


async def completion(ls: Server, params: types.CompletionParams) -> types.CompletionList:
    """Entries and papers for the citation that is being typed."""
    uri = params.text_document.uri
    turn = ls.turns[uri] = ls.turns.get(uri, 0) + 1
    await asyncio.sleep(_PAUSE)
    view = ls.view(uri)
    if view is None or ls.turns[uri] != turn:
        return types.CompletionList(is_incomplete=view is not None, items=[])
    lines = ls.lines(view.text)
    typed = typed_at(view.path, view.text, lines.offset(params.position))
    if typed is None:
        return types.CompletionList(is_incomplete=False, items=[])
    if ls.bench.recommender is None and not ls.is_failed:
        ls.note("citerec is still opening its index: papers are not recommended yet.")
    offers = await ls.tried(ls.bench.completions, view, typed) or []
    ls.remember(view.path, offers)
    span = lines.range(typed.start, typed.end)
    items = [_item(ls, view, typed, span, number, offer) for number, offer in enumerate(offers)]
    return types.CompletionList(is_incomplete=True, items=items)


def _item(ls: Server, view: View, typed: Typed, span: types.Range, number: int, offer: Offer) -> types.CompletionItem:
    uri = ls.uri(view.path)
    command = (
        types.Command("Add the entry", ADD_ENTRY, arguments=[uri, offer.key, offer.paper_id]) if offer.is_new else None
    )
    return types.CompletionItem(
        label=offer.key,
        kind=types.CompletionItemKind.Reference,
        detail=lsp_shown.in_line(offer.paper),
        label_details=types.CompletionItemLabelDetails(description=offer.paper.title[:60]),
        # What matches is decided here, by authors and titles too: the editor must keep all items, in this order.
        filter_text=typed.text or None,
        sort_text=f"{number:04}",
        text_edit=types.TextEdit(span, offer.key),
        command=command,
        data={"uri": uri, "key": offer.key},
    )


async def resolved(ls: Server, item: types.CompletionItem) -> types.CompletionItem:
    """The documentation of a completion item."""
    data = item.data if isinstance(item.data, dict) else {}
    if offer := ls.offers.get((ls.path(data.get("uri", "")), data.get("key", ""))):
        text = await ls.tried(_documentation, ls, offer) or ""
        item.documentation = types.MarkupContent(types.MarkupKind.Markdown, text)
    return item


def _documentation(ls: Server, offer: Offer) -> str:
    hit = ls.bench.explained(offer)
    known = ls.bench.paper(offer.paper_id) if offer.paper_id else None
    titles = ls.bench.recommender.titles([hit]) if hit and ls.bench.recommender else {}
    return lsp_shown.documentation(offer, hit, known, titles)


async def add_entry(ls: Server, uri: str, key: str, paper_id: str) -> None:
    """Adds the entry of a paper that was accepted in a completion."""
    view = ls.view(uri)
    if view is None:
        return
    made = await ls.tried(_entry, ls, view, key, paper_id)
    if made is None:
        return
    paper, changes = made
    answer = await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(ls.edit(changes), f"Add {key}"))
    if answer.applied:
        await ls.tried(ls.bench.note_added, view, paper, key)
    else:
        ls.say(f"The editor did not add {key} to the bibliography. {answer.failure_reason or 'Add its entry by hand.'}")
    ls.check_later(uri, _QUIET)


def _entry(ls: Server, view: View, key: str, paper_id: str) -> tuple[Paper, Changes] | None:
    paper, bibliography = ls.bench.paper(paper_id), ls.bench.bibliography(view)
    if paper is None or (bibliography and key in bibliography.entries):
        return None
    return paper, ls.entry_edit(view, paper, key)


async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """What a key is, or the best papers for a place."""
    if (view := ls.view(params.text_document.uri)) is None:
        return None
    offset = ls.lines(view.text).offset(params.position)
    text = await ls.tried(_hovered, ls, view, offset)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None


def _hovered(ls: Server, view: View, offset: int) -> str:
    typed = typed_at(view.path, view.text, offset)
    if typed and typed.key and (offer := ls.bench.offer_of(view, typed.key) or ls.offers.get((view.path, typed.key))):
        known = ls.bench.paper(offer.paper_id) if offer.paper_id else None
        return lsp_shown.about_key(offer, known, is_open=ls.bench.recommender is not None)
    for place in ls.bench.places(view):
        if place.start <= offset <= place.end:
            if ls.bench.recommender is None:
                return "The index is not open."
            return lsp_shown.about_place(*ls.bench.best(view, place, _HOVERED))
    return ""


async def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Papers to cite at a place, and what to do about a key without an entry."""
    if (view := ls.view(params.text_document.uri)) is None:
        return []
    lines = ls.lines(view.text)
    start, end = lines.offset(params.range.start), lines.offset(params.range.end)
    actions: list[types.CodeAction] = []
    for diagnostic in params.context.diagnostics:
        if diagnostic.code == "key-unknown":
            span = (lines.offset(diagnostic.range.start), lines.offset(diagnostic.range.end))
            actions += await ls.tried(_key_actions, ls, view, diagnostic, view.text[slice(*span)]) or []
    return actions + (await ls.tried(_place_actions, ls, view, start, end) or [])


def _place_actions(ls: Server, view: View, start: int, end: int) -> list[types.CodeAction]:
    actions = []
    lines = ls.lines(view.text)
    for place in ls.bench.places(view):
        if place.start > end or place.end < start:
            continue
        offers, _ = ls.bench.best(view, place, _ACTIONS)
        ls.remember(view.path, offers)
        for offer in offers:
            cite = types.TextEdit(
                lines.range(place.start, place.end), ls.bench.draft(view).citation(place, [offer.key])
            )
            changes = {view.path: [cite]} | (ls.entry_edit(view, offer.paper, offer.key) if offer.is_new else {})
            title, kind = lsp_shown.action_title(offer), types.CodeActionKind.QuickFix
            actions.append(types.CodeAction(title, kind, edit=ls.edit(changes)))
    return actions


def _key_actions(ls: Server, view: View, diagnostic: types.Diagnostic, key: str) -> list[types.CodeAction]:
    fix = types.CodeActionKind.QuickFix
    actions = []
    offer = ls.offers.get((view.path, key)) or ls.bench.offer_of(view, key)
    if offer and offer.is_new:
        edit = ls.edit(ls.entry_edit(view, offer.paper, key))
        actions.append(types.CodeAction(f"Add the entry {key}", fix, [diagnostic], is_preferred=True, edit=edit))
    for near in ls.bench.near_keys(view, key):
        edit = ls.edit({view.path: [types.TextEdit(diagnostic.range, near)]})
        actions.append(types.CodeAction(f"Change {key} to {near}", fix, [diagnostic], edit=edit))
    return actions


async def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Checks a draft that was opened; a bibliography concerns all drafts."""
    _changed(ls, params.text_document.uri, 0)


async def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Checks a draft that has changed, after a pause."""
    _changed(ls, params.text_document.uri, _QUIET)


async def did_save(ls: Server, _params: types.DidSaveTextDocumentParams) -> None:
    """Checks all drafts again: files that they take in may have changed."""
    ls.bench.forget()
    ls.check_all(0)


async def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Removes what was said of a draft."""
    ls.closed(params.text_document.uri)


async def shut_down(ls: Server, _params: Any) -> None:
    """Notes that the editor has said goodbye."""
    ls.is_shut_down = True


def _changed(ls: Server, uri: str, pause: float) -> None:
    if ls.path(uri).suffix.lower() == ".bib":
        ls.check_all(pause)
    else:
        ls.check_later(uri, pause)


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
