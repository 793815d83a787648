"""Errors as answers: one JSON shape, and one table that says which error has which status."""

import logging
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi import Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from citerec.errors import CiterecError, FilterError, InputError, QueryError, SettingsError, WriterError
from citerec.serve.indexes import NotFoundError, shown

log = logging.getLogger("citerec.serve")

_RETRY_SECONDS = 2
_LONGEST = 500
_SEE = "See /api/v1/openapi.json for what this address takes."


class RequestError(InputError):
    """A request goes over a limit, or has a draft or a bibliography that cannot be used."""


class BusyError(CiterecError):
    """The server has no time for a request now."""


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
    headers = dict(headers or {})
    if status == 503:
        headers.setdefault("Retry-After", str(_RETRY_SECONDS))
    if status == 408:  # not for 413: a client that still sends would never see the answer
        headers["Connection"] = "close"
    if not error:
        error, remedy = _TEXTS.get(status, _OTHER)
    texts = {"error": shown(error, _LONGEST), "remedy": shown(remedy, _LONGEST)}
    return Response(orjson.dumps(texts), status, headers, media_type="application/json")


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
                    return error_response(_STATUS[kind], error.message, error.remedy)
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


def add_error_handlers(app: FastAPI) -> None:
    """Every error of an app becomes JSON."""
    for kind in (CiterecError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _answer_to)
