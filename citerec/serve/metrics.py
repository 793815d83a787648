"""Metrics in the format of Prometheus. Labels are routes, statuses and names of indexes: all bounded."""

import contextlib
import functools
import os
import tempfile
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import Scope

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where it is set, prometheus_client counts in files that all processes read
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter("citerec_requests", "Requests.", ["route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "citerec_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, registry=self.registry
        )
        gauge = functools.partial(Gauge, registry=self.registry)
        self.in_flight = gauge("citerec_requests_in_flight", "Requests at this moment.", multiprocess_mode="livesum")
        self.papers = gauge("citerec_index_papers", "Papers of a loaded index.", ["index"], multiprocess_mode="max")
        self.loaded = gauge("citerec_index_loaded", "Whether an index is loaded.", ["index"], multiprocess_mode="max")

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Counts and times a request that was answered; the status is 0 if no answer was begun."""
        # The path of the route, not of the request: clients can make up any number of those.
        route = getattr(scope.get("route"), "path", "other")
        self.requests.labels(route, status).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics as text; those of all processes together, where several answer."""
        registry = self.registry
        if _FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


@contextlib.contextmanager
def metrics_of_workers() -> Iterator[None]:
    """Processes that are started in this block count together."""
    with tempfile.TemporaryDirectory(prefix="citerec-metrics-") as folder:
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER]
