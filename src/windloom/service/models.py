"""The requests and answers of the API as types: they make the OpenAPI description, and refuse what does not fit."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

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
