"""What the endpoints share: indexes, threads, limits, the writer, metrics."""

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

import orjson
from fastapi import Depends, Request, Response

from citerec.errors import QueryError
from citerec.generate.citation import CitationText, citation_task, draft
from citerec.generate.writers import Writer
from citerec.records import MARKER, Context, Paper
from citerec.serve.errors import LimitError
from citerec.serve.indexes import Indexes
from citerec.serve.matches import Matches
from citerec.serve.metrics import Metrics
from citerec.serve.models import ErrorAnswer
from citerec.serve.settings import ServeSettings
from citerec.serve.workers import Workers

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text}
    for status, text in {
        401: "A token is needed",
        422: "The request is wrong",
        429: "Too many requests",
        503: "Too busy, or an index cannot be used",
    }.items()
}
"""The errors that every endpoint may answer with."""


@dataclass
class Service:
    """What the endpoints share.

    Attributes:
        indexes: The indexes.
        settings: The limits.
        writer: Writes citation texts.
        writing: Held while it writes: writers are not made for several threads.
        workers: The threads that do the work.
        metrics: The metrics.
        matches: Which papers the entries of bibliographies are.
    """

    indexes: Indexes
    settings: ServeSettings
    writer: Writer
    writing: threading.Lock = field(default_factory=threading.Lock)
    workers: Workers = field(init=False)
    metrics: Metrics = field(default_factory=Metrics)
    matches: Matches = field(default_factory=Matches)

    def __post_init__(self) -> None:
        made = self.settings
        self.workers = Workers(made.number_of_threads, made.queue, made.seconds)

    def close(self) -> None:
        """Ends the threads, and closes the indexes."""
        self.workers.close()
        self.indexes.close()

    def write(self, context: Context, papers: Sequence[Paper], citing: Paper | None = None) -> CitationText:
        """A citation text for a context; a QueryError if no paper has a text to write from."""
        task = citation_task(context, papers, citing)
        if not task.citing and not any(source.text for source in task.sources):
            raise QueryError("no paper to cite has an abstract", "Choose other papers, or write more of the sentence.")
        with self.writing:
            return draft(task, papers, self.writer)

    def check(self, text: str, k: int) -> None:
        """Raises a LimitError if a text or a list is too long."""
        limits = self.settings
        if len(text) > limits.characters:
            raise LimitError(
                f"the text has {len(text):,} characters, more than {limits.characters:,}", "Send a part of it."
            )
        if (refs := text.count(MARKER)) > limits.refs:
            raise LimitError(f"the text has {refs:,} {MARKER}, more than {limits.refs:,}", "Send a part of it.")
        if k > limits.k:
            raise LimitError(f"k is {k:,}, more than {limits.k:,}", f"Ask for at most {limits.k:,} papers.")


async def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceOf = Annotated[Service, Depends(_service)]
"""The type of an endpoint's argument that gets the service."""


def in_thread(work: Callable[..., Any]) -> Callable[..., Any]:
    """An endpoint that answers with the result of a function as JSON; both are made in a thread of the service."""

    @functools.wraps(work)
    async def endpoint(service: Service, **arguments: Any) -> Response:
        content = await service.workers.run(lambda: orjson.dumps(work(service=service, **arguments)))
        return Response(content, media_type="application/json")

    return endpoint
