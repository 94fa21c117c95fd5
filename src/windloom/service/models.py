"""The requests and answers of the API as types: they make the OpenAPI description, and refuse what does not fit."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from windloom.engine.results import UnknownQueryError
from windloom.errors import QueryError, WindloomError

#: Names are parts of addresses, so they contain no slashes and no invisible characters.
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^/\\\x00-\x1f\x7f]+$", examples=["avg_1h"])]
Text = Annotated[
    str,
    Field(
        min_length=1,
        max_length=20_000,
        examples=["SELECT symbol, avg(price) AS p FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol"],
    ),
]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewQuery(_Given):
    """A query to add."""

    name: Name
    text: Text


class QueryText(_Given):
    """The text of a query."""

    text: Text


class Question(QueryText):
    """A query that is answered once: as of the round before it, or as of the newest when the answer is given."""

    latest: bool = False


class Login(_Given):
    """A token, which the page sends once; from then on a cookie stands for it."""

    token: Annotated[str, Field(min_length=1, max_length=512)]


class Access(BaseModel):
    """What the client may do, and whether tokens are in use at all."""

    level: str
    needs_token: bool


class Problem(BaseModel):
    """An error: what happened, a fact, and an action."""

    message: str
    detail: str = ""
    hint: str = ""


class Failure(BaseModel):
    """Every answer that is not a success has this form."""

    error: Problem


class QueryRow(BaseModel):
    """A query, its place in the plan and its predicted cost in seconds of work per second of event time."""

    name: str
    text: str
    streams: list[str]
    window: str
    trees: list[str]
    seconds: float | None
    share: float | None
    alone: float | None
    rows_per_second: float | None


class RejectedQuery(BaseModel):
    """A query of the catalog that was not registered."""

    name: str
    text: str
    error: Problem


class QueryList(BaseModel):
    queries: list[QueryRow]
    rejected: list[RejectedQuery]


class QueryDetail(QueryRow):
    """One query with its place and cost, and how it is answered."""

    explain: str


class Changed(BaseModel):
    """A change of queries: the round it takes effect in, and the first window that an added query reports.

    `warning` names a deadline that no round can keep.
    """

    query: str
    round: int
    complete_from: str | None
    warning: str | None = None


class DryRun(BaseModel):
    """The cost of one more query, in seconds of work per second of event time.

    The work of a row query is not predicted: `keeps` says what is kept for it, by stream.
    """

    before: float
    after: float
    added: float
    alone: float
    keeps: list[str]
    place: str
    partners: int
    complete_from: str | None
    summary: str
    allowed: bool
    max_cost: float | None


class Rows(BaseModel):
    """Answers. Instants are ISO 8601 in UTC. Decimals are text, and so are numbers that JSON lacks."""

    columns: list[str]
    types: list[str]
    rows: list[list[Any]]


class QueryRows(Rows):
    """Answers of a query; `removed`: it is no longer answered, and these are its last rows."""

    removed: bool


class Answered(Rows):
    """Answers that reflect a committed `round`, which was `staleness` seconds ago."""

    watermark: str | None
    complete_from: str | None
    round: int
    staleness: float


class Latest(BaseModel):
    """The last answer of a query, and one figure of it over its latest windows, for a small chart."""

    row: dict[str, Any] | None
    figure: str | None
    points: list[tuple[str, float]]


class StreamStatus(BaseModel):
    name: str
    columns: dict[str, str]
    time: str
    events_per_second: float | None  # as declared
    tuples_per_second: float | None  # as they came in the last minute
    tuples: int
    cells: int | None
    frontier: str | None
    lag: float | None
    late_partly: int
    late_dropped: int


class Waiting(BaseModel):
    """A round that waits for a sink that is down: since when, after how many failed attempts, and why.

    After `patience` seconds the stream stops; nothing is lost.
    """

    sink: str
    round: int
    since: str
    attempts: int
    reason: str
    patience: float


class Status(BaseModel):
    """The loom at a glance."""

    version: str
    active: bool
    message: str
    waiting: Waiting | None
    round: int | None
    queries: int
    trees: int
    rejected: int
    watermark: str | None
    lag: float | None
    state_bytes: int
    events: int
    rows: int
    events_per_second: float | None
    rows_per_second: float | None
    seconds_per_round: float | None
    streams: list[StreamStatus]


class Rounds(BaseModel):
    """The latest rounds of this process, oldest first; each as `handle.progress.as_dict()` gives it."""

    rounds: list[dict[str, Any]]


#: Two or more names after slashes, or a scheme such as hdfs; a single one may be a division in a query.
_PATH = re.compile(r"(?:file:/{1,3}|hdfs://|s3a?://)[^\s'\",;)]+|(?<![\w.)\]…])(?:/[\w.@+~=%-]+){2,}/?")
#: What hints call in Python, and how a client of the service asks for the same.
_REQUESTS = {
    "use handle.replace": "replace it with PUT /api/v1/queries/NAME",
    "start the stream with keep_tuples='1 hour', or add it as a query": "add it as a query, with POST /api/v1/queries",
}
_PATTERN = "string_pattern_mismatch"
_NAMES = "a name has 1 to 200 characters, without slashes and line breaks"
_CODES = {401: "a token is needed", 403: "this token may not do that", 404: "there is nothing at this address"}


class RefusedError(WindloomError):
    """A refusal with a status of its own."""

    def __init__(self, status: int, message: str, detail: str = "", hint: str = "") -> None:
        super().__init__(message, detail, hint)
        self.status = status


def without_paths(text: str) -> str:
    """Return the last name of every path instead of the path.

    >>> without_paths("cannot write '/data/live/answers/_manifest.json': disk full")
    "cannot write '…/_manifest.json': disk full"
    >>> without_paths("price / volume/2 of trades")
    'price / volume/2 of trades'
    """
    return _PATH.sub(lambda match: "…/" + match.group().rstrip("/").rpartition("/")[2], text)


def problem_of(error: WindloomError) -> Problem:
    """Return an error as the service reports it: what the user can act on, and nothing about the machine."""
    if isinstance(error, QueryError):  # it quotes the text that was sent, with the caret
        return Problem(message=error.message, detail=error.detail, hint=error.hint)
    hint = without_paths(error.hint)
    for call, sent in _REQUESTS.items():
        hint = hint.replace(call, sent)
    return Problem(message=without_paths(error.message), detail=without_paths(error.detail), hint=hint)


def failed(status: int, problem: Problem) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse(Failure(error=problem).model_dump(), status, headers)


def answer_error(request: Request, error: Exception) -> JSONResponse:
    """Return the answer to a request that failed, whatever the error is."""
    match error:
        case WindloomError():
            status = error.status if isinstance(error, RefusedError) else 422
            return failed(404 if isinstance(error, UnknownQueryError) else status, problem_of(error))
        case HTTPException():
            message = _CODES.get(error.status_code, str(error.detail))
            return failed(error.status_code, Problem(message=message))
        case RequestValidationError():
            return failed(422, _misfit(error))
        case RecursionError():
            hint = "write it with fewer parentheses or conditions"
            return failed(422, Problem(message="the query is nested too deeply", hint=hint))
        case _:
            return failed(500, Problem(message="something went wrong here", hint="the log of the service says what"))


def _misfit(error: RequestValidationError) -> Problem:
    """Return what does not fit the description of the API."""
    mistakes = error.errors()[:5]
    facts = [
        # Only names have a pattern, and a regular expression tells users nothing. Names that were sent may be anything;
        # the service's own places are short.
        f"{'.'.join(str(part)[:40] for part in mistake['loc'])}: "
        + ("it has a slash, a backslash or an invisible character" if mistake["type"] == _PATTERN else mistake["msg"])
        for mistake in mistakes
    ]
    names = any("name" in mistake["loc"] for mistake in mistakes)
    hint = f"{_NAMES}; " * names + "GET /api/v1/openapi.json describes every request"
    return Problem(message="the request does not fit", detail="; ".join(facts)[:500], hint=hint)
