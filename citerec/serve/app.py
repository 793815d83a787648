"""The app: its endpoints, the page, the guard and the metrics; and the server that runs it in one or more processes."""

import asyncio
import contextlib
import functools
import hmac
import ipaddress
import logging
import math
import mimetypes
import os
import re
import signal
import socket
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import orjson
import uvicorn
from fastapi import APIRouter, FastAPI, Path as InPath, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.supervisors.multiprocess import Multiprocess

from citerec.contexts.read import context_of_sentence
from citerec.corpus.base import entries_of
from citerec.drafts import Files, place_marker
from citerec.drafts.bibliography import Bibliography, Entry, Mending, draft_of, mend_entries, read_entries
from citerec.drafts.check import WRITING, Finding, Material, check_draft, findings_by_entry, findings_of
from citerec.drafts.filling import Filling
from citerec.drafts.online import OnlineMatcher, add_references, verdicts_json
from citerec.drafts.suggest import suggestions
from citerec.errors import BuildError, CiterecError, FilterError, InputError, QueryError, SettingsError, WriterError
from citerec.files.parallel import end_with
from citerec.recommend import Recommender
from citerec.records import MARKER, Context, Filters, paper_to_json
from citerec.serve import schemas
from citerec.serve.indexes import NotFoundError, find_papers, known_papers, log, shown
from citerec.serve.schemas import draft_hits_json, place_json
from citerec.serve.service import METRICS_FOLDER, BusyError, Call, CallOf, Service, ServiceOf, of_index
from citerec.version import __version__
from citerec.write.drafting import draft_json, in_draft, with_citations

PAGE = Path(__file__).parent / "page"
_BIBLIOGRAPHY = Path("refs.bib")
_MOST_PLACES, _MOST_KEYS = 200, 5000

_REQUEST_ID = re.compile(r"[\w.:-]{1,100}")
_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_SEE = "See /api/v1/openapi.json for what this address takes."

mimetypes.add_type("text/javascript", ".js")  # browsers run no other, and a registry may say otherwise


class RequestError(InputError):
    """A request goes over a limit, or has a draft or a bibliography that cannot be used."""


_STATUS: dict[type[CiterecError], int] = {
    NotFoundError: 404,
    RequestError: 422,
    QueryError: 422,
    FilterError: 422,
    SettingsError: 422,
    BusyError: 503,
    WriterError: 503,
}
"""The errors that are shown as they are. All others may name files of this machine: they are logged."""

_TEXTS = {
    400: ("the body is not JSON", "Send one JSON object in UTF-8."),
    401: ("a token is needed", "Send it: Authorization: Bearer TOKEN"),
    404: ("there is nothing at this address", "See /api/v1/openapi.json for the addresses."),
    405: ("this address does not take this method", _SEE),
    408: ("the body took too long to arrive", "Send it at once."),
    413: ("the body is too long", "Send less text at a time."),
    415: ("the body must be JSON", "Send the header Content-Type: application/json"),
    500: ("this is a fault of citerec", "Please report it: the log of the server has the details."),
    503: ("the index or a model cannot be used now", "The log of the server says why."),
}
_OTHER = ("the request cannot be answered", _SEE)
# No "close" for 413: a client that still sends would never see the answer.
_HEADERS = {408: {"Connection": "close"}, 503: {"Retry-After": "1"}}


class ErrorAnswer(BaseModel):
    """An error: what is wrong, and what to do."""

    error: str
    remedy: str


ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorAnswer, "description": "A token is needed"},
    422: {"model": ErrorAnswer, "description": "The request is wrong"},
    503: {"model": ErrorAnswer, "description": "Too busy, or an index cannot be used"},
}
"""The errors that every endpoint may answer with."""


def error_response(
    status: int, error: str = "", remedy: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """An error as JSON: `{"error": …, "remedy": …}`; in the words of its status where no others are given."""
    if not error:
        error, remedy = _TEXTS.get(status, _OTHER)
    texts = {"error": shown(error), "remedy": shown(remedy)}
    return Response(orjson.dumps(texts), status, {**_HEADERS.get(status, {}), **(headers or {})}, "application/json")


async def _answer_to(_: Request, error: Exception) -> Response:
    """The answer to a request that failed."""
    match error:
        case RequestValidationError():
            return _invalid(error.errors()[0])
        case HTTPException():
            return error_response(error.status_code, headers=error.headers)
        case CiterecError():
            for kind in type(error).__mro__:
                if kind in _STATUS:
                    wait = {"Retry-After": str(error.retry_seconds)} if isinstance(error, BusyError) else None
                    return error_response(_STATUS[kind], error.message, error.remedy, wait)
            log.error("%s", error)
            return error_response(503)
    return error_response(500)


def _invalid(fault: Mapping[str, Any]) -> Response:
    """The answer to a request with a wrong field."""
    if fault["type"] == "json_invalid":
        return error_response(400)
    field = ".".join(str(part) for part in fault["loc"][1:])
    if fault["type"] == "extra_forbidden":
        return error_response(422, f"there is no field {field!r}", _SEE)
    message = str(fault["msg"]).removeprefix("Value error, ")
    return error_response(422, f"{field or 'the body'}: {message[:1].lower()}{message[1:]}", _SEE)


router = APIRouter()
api = APIRouter(prefix="/api/v1", responses=ERRORS)
online = APIRouter(prefix="/api/v1", responses=ERRORS)
"""What asks web services: only a server that may ask them has it."""


def _limits(request: Any, system: Recommender) -> tuple[int, Filters]:
    """How many papers to ask a system for, and which."""
    return min(request.k, system.manifest.counts.papers), request.filters.to_filters()


@api.post("/recommend", response_model=schemas.RecommendAnswer, tags=["recommend"])
@of_index
def recommend(request: schemas.RecommendRequest, call: CallOf) -> dict[str, Any]:
    """Papers to cite at each `<REF>` of a text."""
    by_key = request.cited if isinstance(request.cited, dict) else {paper_id: paper_id for paper_id in request.cited}
    papers = call.system.store.papers(by_key.values(), texts=False)
    cited = {key: paper_id for key, paper_id in by_key.items() if paper_id in papers}
    options: dict[str, Any] = {"explain": request.explain, "fold": request.fold, "cited": cited if by_key else None}
    answers = call.system.search_text(
        request.text, *_limits(request, call.system), citing_id=request.citing, citing_title=request.title, **options
    )
    unknown = sorted(set(by_key.values()) - papers.keys())
    return {"system": call.system_name, "answers": list(map(place_json, answers)), "unknown_cited": unknown}


@api.post("/generate", response_model=schemas.GenerateAnswer, tags=["generate"])
@of_index
def generate(request: schemas.GenerateRequest, call: CallOf) -> dict[str, Any]:
    """A text that cites papers for the `<REF>` of a sentence, written from their abstracts."""
    context, system = context_of_sentence(request.text), call.system
    own = known_papers(system.store, [request.citing])[0] if request.citing is not None else None
    if request.papers:
        papers = known_papers(system.store, request.papers)
    else:
        place = replace(context, citing_id=request.citing, citing_title=request.title)
        papers = [hit.paper for hit in system.search(place, *_limits(request, system))]
    written = call.service.write(context, papers, own)
    return {
        "system": None if request.papers else call.system_name,
        "sentence": with_citations(context, papers),
        **draft_json(written, form="bibtex" if request.bibtex else None),
    }


@contextlib.contextmanager
def _filling(request: schemas.DraftRequest, call: Call, *, match: bool = True, **options: Any) -> Iterator[Filling]:
    """The draft, with the place that is asked for; errors are the client's. Papers of entries are found on demand."""
    path = Path(PureWindowsPath(request.name).name or "draft")  # without the folders of either operating system
    if path.suffix.lower() == ".bib":
        raise RequestError("a .bib file is no draft", "Send its text as `bibliography`.")
    files = Files(texts={path: request.text, _BIBLIOGRAPHY: request.bibliography}, disk=False)
    find = functools.partial(call.service.matches.find, system=call.system) if match else None
    try:
        filling = Filling(path, _BIBLIOGRAPHY, files, find, **options)
        if (places := len(filling.draft.places)) > _MOST_PLACES:
            raise RequestError(f"the draft has {places:,} places, more than {_MOST_PLACES}", "Send a part of it.")
        if (keys := len(filling.draft.cited)) > _MOST_KEYS:
            raise RequestError(f"the draft cites {keys:,} keys, more than {_MOST_KEYS:,}", "Send a part of it.")
        if (place := getattr(request, "place", None)) is not None and place >= places:
            raise RequestError(f"there is no place {place}", f"The draft has {places} places; the first one is 0.")
        yield filling
    except (InputError, BuildError) as error:
        if type(error) not in (InputError, BuildError):  # such as an index that cannot be used
            raise
        raise RequestError(error.message, error.remedy) from error


@api.post("/drafts", response_model=schemas.DraftAnswer, tags=["drafts"])
@of_index
def drafts(request: schemas.DraftRequest, call: CallOf) -> dict[str, Any]:
    """The places of a draft that want a citation, and what it cites."""
    with _filling(request, call, match=False) as filling:
        draft, entries = filling.draft, filling.bibliography.entries
        contexts = draft.contexts(call.system.store, filling.cited, citing_title=request.title) if draft.places else []
        return {
            "title": request.title or draft.title,
            "marker": place_marker(filling.path),
            "bibliographies": [path.name for path in draft.bibliographies],
            "places": [
                {"number": number, **_part(place, "line", "start", "end", "section")}
                | _part(context, "text", "before", "after")
                for number, (place, context) in enumerate(zip(draft.places, contexts, strict=True))
            ],
            "cited": [
                _part(one, "key", "line", "start", "end")
                | {"title": entries[one.key].title if one.key in entries else None}
                for one in draft.cited
            ],
            "entries": len(entries),
            "unreadable": filling.bibliography.unreadable,
        }


def _part(record: object, *names: str) -> dict[str, Any]:
    """Some attributes of a record, by name."""
    return {name: getattr(record, name) for name in names}


@api.post("/drafts/recommend", response_model=schemas.DraftRecommendAnswer, tags=["drafts"])
@of_index
def recommend_in_draft(request: schemas.DraftRecommendRequest, call: CallOf) -> dict[str, Any]:
    """Papers to cite at a place of a draft."""
    system = call.system
    with _filling(request, call) as filling:
        context = _context(request, filling, system)
        beside = () if request.place is None else filling.beside(filling.draft.places[request.place])
    k, filters = _limits(request, system)
    filters = replace(filters, exclude=(*filters.exclude, *beside))
    answer = system.search(context, k, filters, explain=True, fold=True)
    papers = draft_hits_json(answer, filling.bibliography, system.titles(answer.hits), own_first=request.own_first)
    return {"system": call.system_name, **papers}


def _context(request: schemas.PlaceRequest, filling: Filling, system: Recommender) -> Context:
    """The context of the place; with other words in it if there are some."""
    if request.place is None and request.words is None:
        raise RequestError("there is neither a place nor words", "Give the number of a place, or words to search for.")
    draft = filling.draft if filling.draft.text.strip() else replace(filling.draft, text=request.words or "")
    contexts = draft.contexts(system.store, filling.cited, citing_id=request.citing, citing_title=request.title)
    context = contexts[-1 if request.place is None else request.place]
    if request.words is None:
        return context
    return replace(context, text=request.words.replace(MARKER, " "), before="", after="")


@api.post("/drafts/suggest", response_model=schemas.DraftSuggestAnswer, tags=["drafts"])
@of_index
def suggest(request: schemas.DraftSuggestRequest, call: CallOf) -> dict[str, Any]:
    """Sentences of a draft that may want a citation, and for which the index has a likely paper."""
    system = call.system
    with _filling(request, call) as filling:
        options: dict[str, Any] = {"citing_id": request.citing, "citing_title": request.title, "most": request.most}
        found = suggestions(filling.draft, system, filling.files, filling.cited, **options)
    return {
        "system": call.system_name,
        "suggestions": [
            _part(one, "sentence", "marker", "score")
            | {"line": one.place.line, "start": one.place.start, "at": one.end}
            | {"title": one.answer.hits[0].paper.title, "verdict": one.answer.hits[0].verdict}
            for one in found
        ],
    }


@api.post("/drafts/cite", response_model=schemas.DraftCiteAnswer, tags=["drafts"])
@of_index
def cite(request: schemas.DraftCiteRequest, call: CallOf) -> dict[str, Any]:
    """A draft and its bibliography, with papers cited at a place."""
    papers = known_papers(call.system.store, request.papers)
    with _filling(request, call, pattern=request.keys) as filling:
        keys = filling.cite(request.place, papers)
        return {"text": filling.files.text(filling.path), "bibliography": filling.bibliography.text, "keys": keys}


@api.post("/drafts/say", response_model=schemas.DraftSayAnswer, tags=["drafts"])
@of_index
def say(request: schemas.DraftSayRequest, call: CallOf) -> dict[str, Any]:
    """A generated text that cites papers by their keys, and the draft with it."""
    papers = known_papers(call.system.store, request.papers)
    with _filling(request, call, pattern=request.keys) as filling:
        written = call.service.write(_context(request, filling, call.system), papers)
        text = in_draft(written, filling)
        if request.place is None:
            keys = list(dict.fromkeys(map(filling.bibliography.add, papers)))
        else:
            keys = filling.cite(request.place, papers, text)
        record = draft_json(written, form=None)
        for one, paper in zip(record["papers"], papers, strict=True):
            one["key"] = filling.bibliography.key_of(paper)
        record["draft"] = None if request.place is None else filling.files.text(filling.path)
        return record | {"text": text, "keys": keys, "bibliography": filling.bibliography.text}


@api.post("/drafts/check", response_model=schemas.DraftCheckAnswer, tags=["drafts"])
@of_index
def check(request: schemas.DraftCheckRequest, call: CallOf) -> dict[str, Any]:
    """What should be looked at in a draft and its bibliography, without asking web services."""
    with _filling(request, call, match=False) as filling:
        read = read_entries([_BIBLIOGRAPHY], filling.files)
        draft = filling.draft if filling.draft.cited or filling.draft.places else draft_of(read)
        options = replace(WRITING, support=request.support)
        material = Material(draft, read, call.system.index, options, filling.files)
        return {
            "findings": _findings_json(read.entries, findings_of(material)),
            "citations": [
                _part(one, "key", "sentence", "verdict", "says") | {"line": one.place.line}
                for one in (material.judgements if request.support else ())
            ],
            "keys": list(material.cited),
            "services": [service.title for service in call.service.services],
        }


def _findings_json(entries: Sequence[Entry], findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings, each with the key of the entry that it is of."""
    keys = {(entry.path, entry.line): entry.paper.paper_id for entry in entries}
    return [
        {name: value for name, value in one.to_json().items() if name != "path"}
        | {"key": keys.get((one.path, one.line)), "file": "bibliography" if one.path == _BIBLIOGRAPHY else "draft"}
        for one in findings
    ]


@online.post("/bibliography/check", response_model=schemas.VerifyAnswer, tags=["bibliography"])
@of_index
def verify(request: schemas.VerifyRequest, call: CallOf) -> dict[str, Any]:
    """What web services know of entries. Only ids, title, first author and venue of these are sent to them."""
    matcher, files = OnlineMatcher(call.service.services, call.system.index), _files(request)
    read = read_entries([_BIBLIOGRAPHY], files)
    chosen = read._replace(entries=tuple(one for one in read.entries if one.paper.paper_id in request.keys))
    options = replace(WRITING, online=True)
    findings = check_draft(draft_of(chosen), chosen, call.system.index, options, files, matcher)
    of_entry = findings_by_entry(chosen.entries, findings)
    verdicts = verdicts_json(chosen.entries, findings, matcher.matches)
    return {
        "entries": [
            verdict | {"path": None, "findings": _findings_json([entry], of_entry[entry])}
            for entry, verdict in zip(chosen.entries, verdicts, strict=True)
        ],
        "failed": matcher.faults,
    }


@api.post("/bibliography/mend", response_model=schemas.BibliographyAnswer, tags=["bibliography"])
@of_index
def mend(request: schemas.MendRequest, call: CallOf) -> dict[str, Any]:  # noqa: ARG001 - as all endpoints
    """A bibliography with right values of fields of an entry, byte for byte the same otherwise."""
    files = _files(request)
    mendings = [Mending(one.field, one.value) for one in request.mendings]
    entries = [one for one in read_entries([_BIBLIOGRAPHY], files).entries if one.paper.paper_id == request.key]
    if not entries:
        raise RequestError(f"the bibliography has no entry {request.key!r:.80}", "Give a key that it has.")
    mend_entries(files, dict.fromkeys(entries, mendings))
    return {"bibliography": files.text(_BIBLIOGRAPHY), "keys": [request.key]}


@online.post("/bibliography/add", response_model=schemas.BibliographyAnswer, tags=["bibliography"])
@of_index
def add(request: schemas.AddRequest, call: CallOf) -> dict[str, Any]:
    """A bibliography with entries of papers that web services know by id or title."""
    bibliography = Bibliography([_BIBLIOGRAPHY], _files(request))
    try:
        additions = add_references(request.references, bibliography, call.service.services)
    except InputError as error:
        raise RequestError(error.message, error.remedy) from error
    return {"bibliography": bibliography.text, "keys": [one.key for one in additions]}


def _files(request: Any) -> Files:
    """The bibliography of a request."""
    return Files(texts={_BIBLIOGRAPHY: request.bibliography}, disk=False)


@api.get("/papers", response_model=schemas.PapersAnswer, tags=["papers"])
@of_index
def list_papers(request: Annotated[schemas.PapersQuery, Query()], call: CallOf) -> dict[str, Any]:
    """Papers that `q` names by title, authors, venue, year or id, best first; without it all, in order of id."""
    index, filters = call.system.index, request.to_filters()
    end = request.offset + request.limit
    # One more than is shown: it says whether there is another page.
    if request.q.strip():
        papers = find_papers(index, request.q, end + 1, filters)[request.offset :]
    else:
        papers = known_papers(index.store, index.find("", filters, limit=request.limit + 1, offset=request.offset))
    following = end if len(papers) > request.limit else None
    return {"papers": list(map(paper_to_json, papers[: request.limit])), "next_offset": following}


@api.get("/papers/{paper_id:path}", response_model=schemas.OnePaperAnswer, tags=["papers"])
@of_index
def one_paper(
    paper_id: Annotated[str, InPath(max_length=500, examples=["900000158"])],
    request: Annotated[schemas.IndexQuery, Query()],  # noqa: ARG001 - it names the index
    call: CallOf,
) -> dict[str, Any]:
    """One paper, with its BibTeX entry."""
    (paper,) = known_papers(call.system.store, [paper_id])
    return {**paper_to_json(paper), "bibtex": "\n\n".join(entries_of([paper]))}


@api.get("/indexes", response_model=schemas.IndexesAnswer, tags=["state"])
async def indexes(service: ServiceOf) -> Any:
    """The indexes that are served; the first one is the default."""
    return {"indexes": [_described(service, name) for name in service.indexes]}


def _described(service: Service, name: str) -> dict[str, Any]:
    index, system = service.open(name)
    return {
        "name": name,
        **_part(system.manifest.counts, "papers", "with_abstract", "citances"),
        "system": index.system,
        "has_confidence": system.calibration is not None,
        "fingerprint": system.manifest.fingerprint,
    }


@router.get("/health", response_model=dict[str, str], tags=["state"])
async def health() -> Any:
    """Whether the server runs."""
    return {"status": "ok"}


@router.get("/ready", response_model=dict[str, str], responses={503: ERRORS[503]}, tags=["state"])
async def ready(service: ServiceOf) -> Any:
    """Whether the server takes further requests: 503 if too many wait, and when it is about to stop."""
    if service.is_draining:
        raise BusyError("the server is about to stop", "Ask another one.")
    if service.threads.is_full:
        raise BusyError("too many requests wait already", "Try again in a moment.")
    return {"status": "ok"}


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}}, tags=["state"])
async def metrics(service: ServiceOf) -> Response:
    """Metrics in the format of Prometheus."""
    for name in service.indexes:
        index, system = service.open(name)
        service.metrics.papers.labels(name).set(system.manifest.counts.papers)
        service.metrics.loaded.labels(name).set(not index.fault)
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


class JsonLines(logging.Formatter):
    """Each record as a line of JSON, with the id of the request that it is of."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = {"time": datetime.fromtimestamp(record.created, UTC).isoformat()}
        fields |= {"level": record.levelname.lower(), "message": record.getMessage(), "request_id": _request_id.get()}
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(fields).decode()


_LOG = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonLines}},
    "handlers": {"lines": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["lines"]},
    "loggers": {"citerec": {"level": "INFO"}, "uvicorn": {"level": "INFO"}},
}

API = "/api/"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_LEAST_TOKEN = 16
_SECURITY = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    with contextlib.suppress(ValueError):
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    return False


def read_tokens(file: Path | None, value: str | None) -> tuple[bytes, ...]:
    """The tokens of a file, one a line, or else the given one; empty if there is neither.

    Raises:
        InputError: The file cannot be read, or has no token.
        SettingsError: A token is too short, or not plain ASCII.
    """
    try:
        lines = file.read_text(encoding="utf-8").split() if file else (value or "").split()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the tokens of {file}: {error}", "Give a text file, one token a line.") from error
    if file and not lines:
        raise InputError(f"{file} has no token", "Write one in it, for example from: openssl rand -hex 32")
    for token in lines:
        if len(token) < _LEAST_TOKEN or not token.isascii():
            fault = f"a token has fewer than {_LEAST_TOKEN} characters, or others than ASCII's"
            raise SettingsError(fault, "Make one: openssl rand -hex 32")
    return tuple(token.encode() for token in lines)


def has_token(header: str, tokens: Collection[bytes]) -> bool:
    """Whether an Authorization header has one of the tokens. Takes equally long for every wrong token."""
    scheme, _, token = header.partition(" ")
    sent = token.strip().encode("utf-8", "replace")
    same = [hmac.compare_digest(sent, one) for one in tokens]
    return any(same) and scheme.lower() == "bearer"


def host_of(header: str) -> str | None:
    """The name in a Host header, without its port; None if it is not a name."""
    with contextlib.suppress(ValueError):
        return urlsplit(f"//{header}").hostname
    return None


class Guard:
    """Wraps the app, and measures it. All refusals are JSON.

    Args:
        app: The app.
        service: Its settings are the limits; its metrics count and time the requests.
        tokens: Whoever calls must have one of them, unless there is none.
        hosts: What the Host header may name; anything if empty.
    """

    def __init__(self, app: ASGIApp, service: Service, tokens: Collection[bytes], hosts: Collection[str]) -> None:
        self._app, self._tokens, self._hosts = app, tokens, hosts
        self._settings, self._metrics = service.settings, service.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        status, begun = 0, time.perf_counter()
        header = Headers(scope=scope).get("x-request-id", "")
        _request_id.set(request_id := header if _REQUEST_ID.fullmatch(header) else uuid.uuid4().hex)

        async def send_secured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                headers.update(_SECURITY | {"X-Request-ID": request_id})
                # The page's files are asked for again each time, so that a new version is seen.
                headers["Cache-Control"] = "no-store" if scope["path"].startswith(API) else "no-cache"
            await send(message)

        with self._metrics.in_flight.track_inprogress():
            try:
                await (self._refusal(scope) or self._app)(scope, self._in_time(receive), send_secured)
            finally:
                seconds = time.perf_counter() - begun
                # The path of the route, not of the request: clients can make up any number of those.
                route = getattr(scope.get("route"), "path", "other")
                self._metrics.requests.labels(route, status).inc()  # a status of 0: no answer was begun
                self._metrics.seconds.labels(route).observe(seconds)
                fields = {"method": scope["method"], "path": scope["path"], "status": status, "seconds": seconds}
                log.info("request", extra={"fields": fields})

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that the app must not see."""
        headers, path = Headers(scope=scope), scope["path"]
        if self._hosts and host_of(headers.get("host", "")) not in self._hosts:
            # A web page whose name was made to point to this machine sends its own name.
            return error_response(400, "this server has another name", "Allow the name: -c serve.hosts=NAME")
        is_guarded = path.startswith(API) or path == "/metrics"  # whoever watches /health or /ready needs no token
        if is_guarded and self._tokens and not has_token(headers.get("authorization", ""), self._tokens):
            return error_response(401, headers={"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self._settings.body_bytes:
            return error_response(413)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Web pages elsewhere can make a browser send forms and plain text, but not JSON.
        if scope["method"] == "POST" and path.startswith(API) and kind != "application/json":
            return error_response(415)
        return None

    def _in_time(self, receive: Receive) -> Receive:
        """`receive`, which fails when the body is not complete in time. No thread works before it is."""
        deadline: float | None = asyncio.get_running_loop().time() + self._settings.body_seconds

        async def receive_in_time() -> Message:
            nonlocal deadline
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408) from None
            if not message.get("more_body", False):
                deadline = None  # the body is complete
            return message

        return receive_in_time


class _Page(Mount):
    """The files of the page. It leaves the addresses of the API alone: those answer a wrong method themselves."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.NONE, {}) if scope["path"].startswith(API) else super().matches(scope)


def make_app(service: Service, tokens: Collection[bytes] = (), hosts: Collection[str] = ()) -> ASGIApp:
    """The endpoints and the page within the guard; `tokens` and `hosts` as for `Guard`."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if service.settings.drain:
            _drain(service)
        yield
        service.close()

    app = FastAPI(
        title="citerec",
        version=__version__,
        summary="Papers to cite, for a sentence with <REF> in it.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # both pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        max_body_size=service.settings.body_bytes,
        lifespan=lifespan,
        exception_handlers=dict.fromkeys([CiterecError, HTTPException, RequestValidationError, Exception], _answer_to),
    )
    app.state.service = service
    app.include_router(api)
    if service.services:
        app.include_router(online)
    app.include_router(router)
    app.router.routes.append(_Page("/", StaticFiles(directory=PAGE, html=True)))
    return Guard(app, service, tokens, hosts)


def _drain(service: Service) -> None:
    """Lets the server go on for some seconds after SIGTERM; a second one stops it at once."""
    loop, stop = asyncio.get_running_loop(), cast(Callable[..., Any], signal.getsignal(signal.SIGTERM))

    def begin(number: int, frame: Any) -> None:
        if service.is_draining:
            stop(number, frame)
        service.is_draining = True
        loop.call_soon_threadsafe(loop.call_later, service.settings.drain, stop, number, frame)

    signal.signal(signal.SIGTERM, begin)


_GRACE_SECONDS = 5


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; an InputError if the address is taken or not of this machine."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.create_server((str(address[0]), port), family=family)
    except (OSError, UnicodeError, OverflowError) as error:
        text = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot listen on {host}, port {port}: {text}", "Give another --host or --port.") from error
    # Otherwise the body of an answer waits 40 ms for the client to confirm its head; connections inherit it.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def serve(
    open_service: Callable[[], Service],
    listening: socket.socket,
    host: str,
    tokens: Collection[bytes] = (),
    *,
    workers: int = 1,
    log: bool = False,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serves until SIGTERM or SIGINT; requests that are being answered are finished, then the indexes closed.

    Args:
        open_service: Opens what to serve. Each of several processes calls it, so it must be picklable.
        listening: The socket.
        host: The address as the user gave it.
        tokens: Whoever calls needs one of them, unless there is none.
        workers: How many processes answer. They share the socket, and the memory-mapped files of the indexes.
        log: Print a line for each request.
        on_start: Called when requests are taken.

    Raises:
        CiterecError: What is to be served cannot be opened.
    """
    service = open_service()
    settings = service.settings
    hosts = {name.lower() for name in settings.hosts}
    if is_loopback(host):
        hosts |= {*LOOPBACK, host}
    app: Any = make_app(service, tokens, hosts)
    if workers > 1:
        service.close()  # it was opened to know that it can be
        app = functools.partial(_app_of_worker, open_service, tokens, hosts, os.getpid())
    config = uvicorn.Config(
        app,
        factory=workers > 1,
        workers=workers,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=_LOG if log else None,
        access_log=False,  # the guard's line says more
        log_level="info" if log else "error",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=1000,  # connections at once; further ones get 503
        timeout_keep_alive=math.ceil(settings.body_seconds),
        timeout_graceful_shutdown=int(settings.body_seconds + settings.seconds + _GRACE_SECONDS),
        timeout_worker_healthcheck=30,  # a process that does not answer its parent for so long is started anew
        h11_max_incomplete_event_size=16_384,  # bytes of the head of a request
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn sends itself the signal again after a clean stop
    on_start()
    if workers == 1:
        uvicorn.Server(config).run(sockets=[listening])
        return
    with tempfile.TemporaryDirectory(prefix="citerec-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        Multiprocess(config, [listening]).run()


def _app_of_worker(
    open_service: Callable[[], Service], tokens: Collection[bytes], hosts: Collection[str], parent: int
) -> ASGIApp:
    """The app of one of several processes, which ends with its parent."""
    end_with(parent)
    return make_app(open_service(), tokens, hosts)
