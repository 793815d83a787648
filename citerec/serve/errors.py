"""Errors as answers: one JSON shape, and one place that says which error has which status."""

import logging
from typing import Any, cast

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from citerec.errors import CiterecError, FilterError, InputError, QueryError, SettingsError, WriterError
from citerec.serve.finding import NotFoundError
from citerec.serve.untrusted import shown

log = logging.getLogger("citerec.serve")

RETRY_SECONDS = 2
_LONGEST = 500
_SEE = "See /api/v1/openapi.json for what this address takes."


class LimitError(InputError):
    """A request goes over a limit of the server."""


class DraftError(InputError):
    """A draft or a bibliography that was sent cannot be used."""


class BusyError(CiterecError):
    """The server has no time for a request now."""


_STATUS: dict[type[CiterecError], int] = {
    NotFoundError: 404,
    LimitError: 422,
    DraftError: 422,
    QueryError: 422,
    FilterError: 422,
    SettingsError: 422,
    BusyError: 503,
    WriterError: 503,
}
"""The errors that are shown as they are. All others may name files of this machine: they are logged."""

HTTP_ERRORS = {
    400: ("the body is not JSON", "Send one JSON object in UTF-8."),
    404: ("there is nothing at this address", "See /api/v1/openapi.json for the addresses."),
    405: ("this address does not take this method", _SEE),
    408: ("the body took too long to arrive", "Send it at once."),
    413: ("the body is too long", "Send less text at a time."),
}


def error_response(status: int, error: str, remedy: str, headers: dict[str, str] | None = None) -> Response:
    """An error as JSON: `{"error": …, "remedy": …}`."""
    given = dict(headers or {})
    if status in (429, 503):
        given.setdefault("Retry-After", str(RETRY_SECONDS))
    if status == 408:  # not for 413: a client that still sends would never see the answer
        given["Connection"] = "close"
    texts = {"error": shown(error, _LONGEST), "remedy": shown(remedy, _LONGEST)}
    return Response(orjson.dumps(texts), status, given, media_type="application/json")


def _citerec_error(_: Request, error: Exception) -> Response:
    known = cast(CiterecError, error)
    status = next((_STATUS[kind] for kind in type(known).__mro__ if kind in _STATUS), None)
    if status is not None:
        return error_response(status, known.message, known.remedy)
    log.error("%s", known)
    return error_response(503, "the index or a model cannot be used now", "The log of the server says why.")


def _http_error(_: Request, error: Exception) -> Response:
    known = cast(HTTPException, error)
    text, remedy = HTTP_ERRORS.get(known.status_code, ("the request cannot be answered", _SEE))
    return error_response(known.status_code, text, remedy, dict(known.headers or {}))


def _invalid(_: Request, error: Exception) -> Response:
    first: dict[str, Any] = cast(RequestValidationError, error).errors()[0]
    if first["type"] == "json_invalid":
        return error_response(400, *HTTP_ERRORS[400])
    place = ".".join(str(part) for part in first["loc"][1:])
    if first["type"] == "extra_forbidden":
        return error_response(422, f"there is no field {place!r}", _SEE)
    message = str(first["msg"]).removeprefix("Value error, ")
    return error_response(422, f"{place or 'the body'}: {message[:1].lower()}{message[1:]}", _SEE)


def _unexpected(_: Request, __: Exception) -> Response:
    return error_response(500, "this is a fault of citerec", "Please report it: the log of the server has the details.")


def add_error_handlers(app: FastAPI) -> None:
    """Every error of an app becomes JSON."""
    app.add_exception_handler(CiterecError, _citerec_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)
