"""Errors as the service reports them: what the user can act on, and nothing about the machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from windloom.engine.results import UnknownQueryError
from windloom.errors import QueryError, WindloomError
from windloom.service.models import Failure, Problem

#: Two or more names after slashes, or a scheme such as hdfs; a single one may be a division in a query.
_PATH = re.compile(r"(?:file:/{1,3}|hdfs://|s3a?://)[^\s'\",;)]+|(?<![\w.)\]…])(?:/[\w.@+~=%-]+){2,}/?")
#: What hints call in Python, and how a client of the service asks for the same.
_REQUESTS = {
    "use handle.replace": "replace it with PUT /api/v1/queries/NAME",
    "start the stream with keep_tuples='1 hour', or add it as a query": "add it as a query, with POST /api/v1/queries",
}
_NAMES = "a name has 1 to 200 characters, without slashes and line breaks"
_CODES = {401: "a token is needed", 403: "this token may not do that", 404: "there is nothing at this address"}


class RefusedError(WindloomError):
    """A refusal with a status of its own."""

    def __init__(self, status: int, message: str, detail: str = "", hint: str = "") -> None:
        super().__init__(message, detail, hint)
        self.status = status


def without_paths(text: str) -> str:
    """Return the last name of every path instead of the path.

    >>> without_paths("cannot write '/data/live/answers/manifest.json': disk full")
    "cannot write '…/manifest.json': disk full"
    >>> without_paths("price / volume/2 of trades")
    'price / volume/2 of trades'
    """
    return _PATH.sub(lambda match: "…/" + match.group().rstrip("/").rpartition("/")[2], text)


def problem_of(error: WindloomError) -> Problem:
    if isinstance(error, QueryError):  # it quotes the text that was sent, with the caret
        return Problem(message=error.message, detail=error.detail, hint=error.hint)
    hint = without_paths(error.hint)
    for call, sent in _REQUESTS.items():
        hint = hint.replace(call, sent)
    return Problem(
        message=without_paths(error.message),
        detail=without_paths(error.detail),
        hint=hint,
    )


def failed(status: int, problem: Problem) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse(Failure(error=problem).model_dump(), status, headers)


def on_windloom_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, WindloomError)
    if isinstance(error, RefusedError):
        return failed(error.status, problem_of(error))
    return failed(404 if isinstance(error, UnknownQueryError) else 422, problem_of(error))


def on_recursion(request: Request, error: Exception) -> JSONResponse:
    return failed(
        422, Problem(message="the query is nested too deeply", hint="write it with fewer parentheses or conditions")
    )


def on_unexpected(request: Request, error: Exception) -> JSONResponse:
    return failed(500, Problem(message="something went wrong here", hint="the log of the service says what"))


def on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    message = _CODES.get(error.status_code, str(error.detail))
    return failed(error.status_code, Problem(message=message))


def on_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    mistakes = error.errors()[:5]
    facts = [f"{_place(mistake['loc'])}: {_fact(mistake)}" for mistake in mistakes]
    names = any("name" in mistake["loc"] for mistake in mistakes)
    hint = f"{_NAMES}; " * names + "GET /api/v1/openapi.json describes every request"
    return failed(422, Problem(message="the request does not fit", detail="; ".join(facts)[:500], hint=hint))


def _fact(mistake: Mapping[str, Any]) -> str:
    # Only names have a pattern, and a regular expression tells users nothing.
    is_pattern = mistake["type"] == "string_pattern_mismatch"
    return "it has a slash, a backslash or an invisible character" if is_pattern else str(mistake["msg"])


def _place(location: Sequence[object]) -> str:
    # Names that were sent may be anything; the service's own places are short.
    return ".".join(str(part)[:40] for part in location)
