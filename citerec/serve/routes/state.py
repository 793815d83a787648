"""`GET /api/v1/indexes`, `/health`, `/ready` and `/metrics`: what is served, and how the server is."""

from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from citerec.serve.errors import BusyError
from citerec.serve.models import IndexesAnswer, StateAnswer
from citerec.serve.service import ERRORS, Service, ServiceOf

router = APIRouter(tags=["state"])


@router.get("/api/v1/indexes", response_model=IndexesAnswer, responses=ERRORS)
async def indexes(service: ServiceOf) -> Any:
    """The indexes that are served; the first one is the default."""
    return {"indexes": [_stated(service, name) for name in service.indexes.names]}


def _stated(service: Service, name: str) -> dict[str, Any]:
    served = service.indexes.get(name)
    manifest, counts = served.recommender.manifest, served.recommender.manifest.counts
    return {
        "name": served.name,
        "papers": counts.papers,
        "with_abstract": counts.with_abstract,
        "citances": counts.citances,
        "system": served.system,
        "has_confidence": served.recommender.calibration is not None,
        "fingerprint": manifest.fingerprint,
    }


@router.get("/health", response_model=StateAnswer)
async def health() -> Any:
    """Whether the server runs."""
    return {"status": "ok"}


@router.get("/ready", response_model=StateAnswer, responses={503: ERRORS[503]})
async def ready(service: ServiceOf) -> Any:
    """Whether the server takes further requests: 503 if too many wait."""
    if service.threads.is_full:
        raise BusyError("too many requests wait already", "Try again in a moment.")
    return {"status": "ok"}


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(service: ServiceOf) -> Response:
    """Metrics in the format of Prometheus."""
    shown = service.metrics
    for name in service.indexes.names:
        served = service.indexes.get(name)
        shown.papers.labels(name).set(served.recommender.manifest.counts.papers)
        shown.loaded.labels(name).set(1)
    return Response(shown.text(), media_type=CONTENT_TYPE_LATEST)
