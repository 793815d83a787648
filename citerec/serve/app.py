"""The app: its endpoints, the page, the guard and the metrics; and the server that runs it in one or more processes."""

import asyncio
import contextlib
import functools
import math
import mimetypes
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, FastAPI, Path as InPath, Query, Response
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.supervisors.multiprocess import Multiprocess

from citerec.contexts.read import contexts_of_text
from citerec.corpus.base import entries_of
from citerec.drafts import Files, place_marker
from citerec.drafts.filling import Filling
from citerec.errors import BuildError, InputError, QueryError
from citerec.files.parallel import end_with
from citerec.recommend import Recommender
from citerec.records import MARKER, Context, Filters, paper_to_json
from citerec.serve import schemas
from citerec.serve.indexes import known_papers
from citerec.serve.schemas import listed_json, place_json
from citerec.serve.service import (
    API,
    ERRORS,
    LOOPBACK,
    BusyError,
    Call,
    CallOf,
    Guard,
    RequestError,
    Service,
    ServiceOf,
    add_error_handlers,
    is_loopback,
    metrics_of_workers,
    of_index,
)
from citerec.version import __version__
from citerec.write.drafting import draft_json, in_draft, with_citations

PAGE = Path(__file__).parent / "page"
_BIBLIOGRAPHY = Path("refs.bib")
_MOST_PLACES = 200

mimetypes.add_type("text/javascript", ".js")  # browsers run no other, and a registry may say otherwise

router = APIRouter()
api = APIRouter(prefix="/api/v1", responses=ERRORS)


def _limits(asked: Any, system: Recommender) -> tuple[int, Filters]:
    """How many papers to ask a system for, and which."""
    return min(asked.k, system.manifest.counts.papers), asked.filters.to_filters()


@api.post("/recommend", response_model=schemas.RecommendAnswer, tags=["recommend"])
@of_index
def recommend(asked: schemas.RecommendRequest, call: CallOf) -> dict[str, Any]:
    """Papers to cite at each `<REF>` of a text."""
    by_key = asked.cited if isinstance(asked.cited, dict) else {paper_id: paper_id for paper_id in asked.cited}
    papers = call.system.store.papers(by_key.values(), texts=False)
    cited = {key: paper_id for key, paper_id in by_key.items() if paper_id in papers}
    options: dict[str, Any] = {"explain": asked.explain, "fold": asked.fold, "cited": cited if by_key else None}
    found = call.system.search_text(
        asked.text, *_limits(asked, call.system), citing_id=asked.citing, citing_title=asked.title, **options
    )
    unknown = sorted(set(by_key.values()) - papers.keys())
    return {"system": call.system_name, "answers": list(map(place_json, found)), "unknown_cited": unknown}


@api.post("/generate", response_model=schemas.GenerateAnswer, tags=["generate"])
@of_index
def generate(asked: schemas.GenerateRequest, call: CallOf) -> dict[str, Any]:
    """A text that cites papers for the `<REF>` of a sentence, written from their abstracts."""
    if (refs := asked.text.count(MARKER)) != 1:
        raise QueryError(f"the sentence holds {refs} {MARKER}", f'Write one, for example: "… was shown by {MARKER} …"')
    (context,) = contexts_of_text(asked.text)
    system = call.system
    own = known_papers(system.store, [asked.citing])[0] if asked.citing is not None else None
    if asked.papers:
        papers = known_papers(system.store, asked.papers)
    else:
        place = replace(context, citing_id=asked.citing, citing_title=asked.title)
        papers = [hit.paper for hit in system.search(place, *_limits(asked, system))]
    written = call.service.write(context, papers, own)
    return {
        "system": None if asked.papers else call.system_name,
        "sentence": with_citations(context, papers),
        **draft_json(written, form="bibtex" if asked.bibtex else None),
    }


@contextlib.contextmanager
def _filling(asked: schemas.DraftRequest, call: Call, *, match: bool = True, **options: Any) -> Iterator[Filling]:
    """The draft, whose errors are the client's. Papers of entries are found on demand."""
    path = Path(PureWindowsPath(asked.name).name or "draft")  # without the folders of either operating system
    if path.suffix.lower() == ".bib":
        raise RequestError("a .bib file is no draft", "Send its text as `bibliography`.")
    files = Files(texts={path: asked.text, _BIBLIOGRAPHY: asked.bibliography}, disk=False)
    find = functools.partial(call.service.matches.find, system=call.system) if match else None
    try:
        filling = Filling(path, _BIBLIOGRAPHY, files, find, **options)
        if (places := len(filling.draft.places)) > _MOST_PLACES:
            raise RequestError(f"the draft has {places:,} places, more than {_MOST_PLACES}", "Send a part of it.")
        yield filling
    except (InputError, BuildError) as error:
        if type(error) not in (InputError, BuildError):  # such as an index that cannot be used
            raise
        raise RequestError(error.message, error.remedy) from error


@api.post("/drafts", response_model=schemas.DraftAnswer, tags=["drafts"])
@of_index
def drafts(asked: schemas.DraftRequest, call: CallOf) -> dict[str, Any]:
    """The places of a draft that want a citation, and what it cites."""
    with _filling(asked, call, match=False) as filling:
        draft, entries = filling.draft, filling.bibliography.entries
        contexts = draft.contexts(call.system.store, filling.cited, citing_title=asked.title) if draft.places else []
        return {
            "title": asked.title or draft.title,
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
def recommend_in_draft(asked: schemas.DraftRecommendRequest, call: CallOf) -> dict[str, Any]:
    """Papers to cite at a place of a draft."""
    system = call.system
    with _filling(asked, call) as filling:
        context = _context(asked, filling, system)
    answer = system.search(context, *_limits(asked, system), explain=True, fold=True)
    papers = listed_json(answer, filling.bibliography, system.titles(answer.hits), own_first=asked.own_first)
    return {"system": call.system_name, **papers}


def _context(asked: schemas.PlaceRequest, filling: Filling, system: Recommender) -> Context:
    """The context of the place; with other words in it if there are some."""
    if asked.place is None and asked.words is None:
        raise RequestError("there is neither a place nor words", "Give the number of a place, or words to search for.")
    contexts = filling.draft.contexts(system.store, filling.cited, citing_id=asked.citing, citing_title=asked.title)
    if asked.place is not None:
        _check_place(asked.place, filling)
    context = contexts[-1 if asked.place is None else asked.place]
    if asked.words is None:
        return context
    return replace(context, text=asked.words.replace(MARKER, " "), before="", after="")


def _check_place(place: int, filling: Filling) -> None:
    if place >= (places := len(filling.draft.places)):
        raise RequestError(f"there is no place {place}", f"The draft has {places} places; the first one is 0.")


def _texts(filling: Filling) -> tuple[str, str]:
    """The draft and its bibliography as they are now."""
    return filling.files.text(filling.path), filling.files.text(_BIBLIOGRAPHY)


@api.post("/drafts/cite", response_model=schemas.DraftCiteAnswer, tags=["drafts"])
@of_index
def cite(asked: schemas.DraftCiteRequest, call: CallOf) -> dict[str, Any]:
    """A draft and its bibliography, with papers cited at a place."""
    papers = known_papers(call.system.store, asked.papers)
    with _filling(asked, call, pattern=asked.keys) as filling:
        _check_place(asked.place, filling)
        keys = filling.cite(asked.place, papers)
        text, bibliography = _texts(filling)
        return {"text": text, "bibliography": bibliography, "keys": keys}


@api.post("/drafts/say", response_model=schemas.DraftSayAnswer, tags=["drafts"])
@of_index
def say(asked: schemas.DraftSayRequest, call: CallOf) -> dict[str, Any]:
    """A generated text that cites papers by their keys, and the draft with it."""
    papers = known_papers(call.system.store, asked.papers)
    with _filling(asked, call, pattern=asked.keys) as filling:
        written = call.service.write(_context(asked, filling, call.system), papers)
        text = in_draft(written, filling)
        if asked.place is None:
            keys = list(dict.fromkeys(map(filling.bibliography.add, papers)))
        else:
            keys = filling.cite(asked.place, papers, text)
        record, (draft, bibliography) = draft_json(written, form=None), _texts(filling)
        for one, paper in zip(record["papers"], papers, strict=True):
            one["key"] = filling.bibliography.key_of(paper)
        draft_of_place = None if asked.place is None else draft
        return record | {"text": text, "keys": keys, "draft": draft_of_place, "bibliography": bibliography}


@api.get("/papers", response_model=schemas.PapersAnswer, tags=["papers"])
@of_index
def list_papers(asked: Annotated[schemas.PapersQuery, Query()], call: CallOf) -> dict[str, Any]:
    """Papers that share a word with `q`, best first, and pass the filters."""
    # One more than is shown: it says whether there is another page.
    ids = call.system.index.find(asked.q.strip(), asked.to_filters(), limit=asked.limit + 1, offset=asked.offset)
    papers = known_papers(call.system.store, ids[: asked.limit])
    following = asked.offset + asked.limit if len(ids) > asked.limit else None
    return {"papers": list(map(paper_to_json, papers)), "next_offset": following}


@api.get("/papers/{paper_id:path}", response_model=schemas.OnePaperAnswer, tags=["papers"])
@of_index
def one_paper(
    paper_id: Annotated[str, InPath(max_length=500, examples=["900000158"])],
    asked: Annotated[schemas.OnePaperQuery, Query()],  # noqa: ARG001 - it names the index
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
    """Whether the server takes further requests: 503 if too many wait."""
    if service.threads.is_full:
        raise BusyError("too many requests wait already", "Try again in a moment.")
    return {"status": "ok"}


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}}, tags=["state"])
async def metrics(service: ServiceOf) -> Response:
    """Metrics in the format of Prometheus."""
    for name in service.indexes:
        _, system = service.open(name)
        service.metrics.papers.labels(name).set(system.manifest.counts.papers)
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


class _Page(Mount):
    """The files of the page. It leaves the addresses of the API alone: those answer a wrong method themselves."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.NONE, {}) if scope["path"].startswith(API) else super().matches(scope)


def make_api(service: Service) -> FastAPI:
    """The endpoints and the page, without the guard."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
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
    )
    app.state.service = service
    add_error_handlers(app)
    app.include_router(api)
    app.include_router(router)
    app.router.routes.append(_Page("/", StaticFiles(directory=PAGE, html=True)))
    return app


def make_app(service: Service, tokens: Collection[bytes] = (), hosts: Collection[str] = ()) -> ASGIApp:
    """The whole app; `tokens` and `hosts` as for `Guard`."""
    return Guard(make_api(service), service.settings, service.metrics, tokens, hosts)


_GRACE_SECONDS = 5
_SILENT_SECONDS = 30  # after which a process that does not answer its parent is started anew
_HEADER_BYTES = 16_384
_CONNECTIONS = 1000  # at once; further ones get 503


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; an InputError if the address is taken or not of this machine."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server((str(address[0]), port), family=family)
    except (OSError, UnicodeError, OverflowError) as error:
        text = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot listen on {host}, port {port}: {text}", "Give another --host or --port.") from error


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
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_config=uvicorn.config.LOGGING_CONFIG if log else None,
        log_level="info" if log else "error",
        access_log=log,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=math.ceil(settings.body_seconds),
        timeout_graceful_shutdown=int(settings.body_seconds + settings.seconds + _GRACE_SECONDS),
        timeout_worker_healthcheck=_SILENT_SECONDS,
        h11_max_incomplete_event_size=_HEADER_BYTES,
    )
    on_start()
    with _quiet_signals():
        if workers > 1:
            with metrics_of_workers():
                Multiprocess(config, [listening]).run()
        else:
            uvicorn.Server(config).run(sockets=[listening])


def _app_of_worker(
    open_service: Callable[[], Service], tokens: Collection[bytes], hosts: Collection[str], parent: int
) -> ASGIApp:
    """The app of one of several processes, which ends with its parent."""
    end_with(parent)
    return make_app(open_service(), tokens, hosts)


class _Protocol(H11Protocol):
    """Uvicorn's, which also closes a connection that does not send the head of its next request in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look_later()

    def _look_later(self) -> None:
        self.loop.call_later(self.timeout_keep_alive, self._look, self.cycle)

    def _look(self, cycle: RequestResponseCycle | None) -> None:
        """Closes the connection if nothing is being answered, and no request came since the last look."""
        if self.cycle is cycle and (cycle is None or cycle.response_complete):
            self.transport.close()
        elif not self.transport.is_closing():
            self._look_later()


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Uvicorn sends itself the signal again after it stopped; a clean stop is no error."""
    kept = {one: signal.signal(one, lambda *_: None) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)
