"""The app: endpoints, errors, guard and metrics put together."""

import asyncio
import contextlib
import mimetypes
from collections.abc import AsyncIterator, Collection
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Scope

from citerec.serve.errors import add_error_handlers
from citerec.serve.guard import API, Guard
from citerec.serve.metrics import MeasuredApp
from citerec.serve.routes import drafts, generate, papers, recommend, state
from citerec.serve.service import Service
from citerec.version import __version__

ROUTERS = (recommend.router, drafts.router, generate.router, papers.router, state.router)
"""The groups of endpoints. A new group is a file of `citerec/serve/routes/`, and a name here."""

PAGE = Path(__file__).parent / "page"


mimetypes.add_type("text/javascript", ".js")  # browsers run no other, and a registry may say otherwise


class _Page(Mount):
    """The files of the page. It leaves the addresses of the API alone: those answer a wrong method themselves."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.NONE, {}) if scope["path"].startswith(API) else super().matches(scope)


def make_api(service: Service) -> FastAPI:
    """The endpoints alone, without the guard."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(service.indexes.watch(service.settings.watch_seconds))
        yield
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
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
    for router in ROUTERS:
        app.include_router(router)
    if PAGE.is_dir():
        app.router.routes.append(_Page("/", StaticFiles(directory=PAGE, html=True)))
    return app


def make_app(service: Service, tokens: Collection[bytes] = (), hosts: Collection[str] = ()) -> ASGIApp:
    """The whole app; `tokens` and `hosts` as for `Guard`."""
    return MeasuredApp(Guard(make_api(service), service.settings, tokens, hosts), service.metrics)
