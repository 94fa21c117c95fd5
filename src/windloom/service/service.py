"""The state that all requests share: the loom as the service needs it, its watchers, its figures, and access rights."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from fastapi import Depends, Request

from windloom.engine import Loom
from windloom.engine.handle import Handle
from windloom.engine.progress import RoundProgress
from windloom.engine.views import cost_view
from windloom.errors import WindloomError, near_names
from windloom.explain.costs import CostView
from windloom.explain.json import explain_json
from windloom.explain.picture.picture import explain_svg
from windloom.explain.sharing import sharing_json
from windloom.explain.text import explain_text
from windloom.language.catalog import parse_catalog
from windloom.model.clauses import Emits
from windloom.model.stream import Stream
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.optimizer.sharing_report import report_sharing
from windloom.plan.plan import Plan
from windloom.service.access import AccessLevel, Gate
from windloom.service.feed import HISTORY, Metrics, RoundFeed, ServiceTotals
from windloom.service.models import Latest, RefusedError, without_paths
from windloom.service.stored_answers import StoredAnswers
from windloom.sinks.delivery import SinkWait


def plan_json(plan: Plan) -> Mapping[str, Any]:
    """Return a plan with its costs as values of JSON."""
    return dict(json.loads(json.dumps(explain_json(plan, _costs_of(plan)))))


def plan_picture(plan: Plan) -> str:
    return explain_svg(plan, _costs_of(plan))


def plan_costs(plan: Plan) -> Mapping[str, Any]:
    """Return the sharing report, which compares every query with every other, as values of JSON."""
    return dict(json.loads(json.dumps(sharing_json(plan, report_sharing(plan, _constants())))))


def query_text(plan: Plan, query: str) -> str:
    return explain_text(plan, _costs_of(plan), query=query)


def _costs_of(plan: Plan) -> CostView:
    return cost_view(plan, "seconds", _constants())


def _constants() -> Constants:
    """Return the constants without the path of the file that holds them."""
    constants = load_constants()
    return replace(constants, source=without_paths(constants.source))


@dataclass(frozen=True, slots=True)
class UnregisteredQuery:
    """A query of the catalog that could not be registered, and why."""

    name: str
    text: str
    error: WindloomError


class ServedHandle:
    """What requests ask and change: a running loom whose Parquet sink writes to a directory of this machine."""

    def __init__(
        self,
        handle: Handle,
        streams: Mapping[str, Stream],
        stored: StoredAnswers,
        rejected: Sequence[UnregisteredQuery] = (),
    ) -> None:
        self._handle, self._stored = handle, stored
        self.streams, self.rejected = dict(streams), tuple(rejected)
        self.add, self.replace, self.remove = handle.add, handle.replace, handle.remove
        self.what_if, self.ask = handle.what_if, handle.ask
        self._making = threading.Lock()  # many watchers ask for the same plan at once
        self._shown: dict[Callable[[Plan], Mapping[str, Any]], tuple[Plan, Mapping[str, Any]]] = {}

    @property
    def queries(self) -> Mapping[str, str]:
        return self._handle.queries

    @property
    def removed(self) -> Mapping[str, str]:
        return self._handle.removed

    @property
    def is_active(self) -> bool:
        return self._handle.is_active

    @property
    def failure(self) -> BaseException | None:
        return self._handle.exception()

    @property
    def waiting(self) -> SinkWait | None:
        return self._handle.waiting

    @property
    def rounds(self) -> Sequence[RoundProgress]:
        return self._handle.recent_progress

    def explain(self, query: str) -> str:
        return query_text(self._handle.plan, query)

    def plan(self) -> Mapping[str, Any]:
        return self._show(plan_json)

    def picture(self) -> str:
        return plan_picture(self._handle.plan)

    def costs(self) -> Mapping[str, Any]:
        return self._show(plan_costs)

    def _show(self, describe: Callable[[Plan], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return what describes the current plan, made once per plan."""
        plan = self._handle.plan
        with self._making:
            if describe not in self._shown or self._shown[describe][0] is not plan:
                self._shown[describe] = (plan, describe(plan))
            return self._shown[describe][1]

    def groupings(self) -> Mapping[str, Sequence[str]]:
        """Return grouping columns by query, with their names in its answers."""
        return {query.name: [group.name for group in query.query.group_by] for query in self._handle.plan.queries}

    def grouping(self, name: str) -> Sequence[str]:
        """Return the grouping columns of a query, which may have been removed."""
        return self._handle.grouping(name)

    def answers(
        self,
        name: str,
        since: str | None,
        until: str | None,
        limit: int,
        most_files: int | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> pa.Table:
        columns = self._handle.columns(name)
        replacing = self._handle.grouping(name) if self._handle.emission(name) is Emits.EARLY else None
        rows = self._stored.read(name, columns, since, until, limit, most_files, replacing, groups)
        return self._handle.rows(name).slice(0, 0) if rows is None else rows


#: Plans, questions and reads of many files that may run at once; more would only wait for each other.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_cost` is in seconds of work per second of event time; None for no limit."""

    body_bytes: int = 64 << 10
    seconds: float = 30.0
    patience: float = 5.0  # seconds that a request waits for others to finish
    rows: int = 100_000
    max_cost: float | None = None


class Service:
    def __init__(
        self,
        loom: ServedHandle,
        gate: Gate | None = None,
        limits: Limits | None = None,
        *,
        feed: RoundFeed | None = None,
        is_local: bool = True,
        is_secure: bool = False,
    ) -> None:
        """`is_local`: only this machine can connect. `is_secure`: browsers connect through TLS."""
        self.loom, self.gate, self.limits = loom, gate or Gate(None), limits or Limits()
        self.is_local, self.is_secure = is_local, is_secure
        self.feed = feed or RoundFeed()
        self.totals = ServiceTotals()
        self.metrics = Metrics(self._costs, lambda: self.feed.watchers)
        #: Answers that are the same for everyone until the next round, or until queries change.
        self.latest: dict[str, Latest] = {}
        self._working = threading.BoundedSemaphore(_AT_ONCE)

    def round_done(self, done: RoundProgress) -> None:
        """Note a round; called by the thread of the round."""
        self.totals.add(done)
        self.metrics.add(done)
        self.latest = {}
        self.feed.publish(done)

    def round_waits(self, wait: SinkWait | None) -> None:
        """Note a wait; called by the thread of a round when a sink is down, at each attempt, and when it is back."""
        self.metrics.wait(wait)
        self.feed.announce("waiting")

    def queries_changed(self) -> None:
        self.latest = {}
        self.feed.announce("queries")

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold a place among the requests that take more than a moment."""
        if not self._working.acquire(timeout=self.limits.patience):
            raise RefusedError(
                429, "too much is asked at once", f"{_AT_ONCE} plans and questions are being worked on", "try again"
            )
        try:
            yield
        finally:
            self._working.release()

    def _costs(self) -> dict[str, float]:
        costs = self.loom.costs()["queries"]  # includes sides of joins
        return {name: costs[name]["seconds"] for name in self.loom.queries if name in costs}


def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


Served = Annotated[Service, Depends(_service)]


def _level(request: Request, service: Served) -> AccessLevel:
    return service.gate.level_of(request.headers, request.cookies)


def _may_read(level: Annotated[AccessLevel, Depends(_level)]) -> AccessLevel:
    if level < AccessLevel.READ:
        raise RefusedError(
            401, "a token is needed", "", "send it as 'Authorization: Bearer TOKEN', or log in on the page"
        )
    return level


def _may_change(level: Annotated[AccessLevel, Depends(_may_read)]) -> AccessLevel:
    if level < AccessLevel.ADMIN:
        raise RefusedError(403, "this token may only read", "", "use an admin token to change queries")
    return level


def check_parameters(request: Request, columns: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the values of the given `columns` in the address of a request; refuse parameters that nobody would read.

    A parameter that is misspelt, and ignored, gives the answer to another question.
    """
    own = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    known = dict.fromkeys([*own, *columns])
    for name in request.query_params:
        if name not in known:
            raise RefusedError(
                422,
                f"unknown parameter '{name[:60]}'",
                f"this request knows {', '.join(known)}" if known else "this request has no parameters",
                near_names(name, list(known)) if known else "leave it out",
            )
    return {name: request.query_params.getlist(name) for name in request.query_params if name not in own}


def _known_parameters(request: Request) -> None:
    if not request.scope["route"].openapi_extra:  # it takes columns, and checks them itself
        check_parameters(request)


#: For every route.
KnownParameters = Depends(_known_parameters)
AnyLevel = Annotated[AccessLevel, Depends(_level)]
MayRead = Depends(_may_read)
MayChange = Depends(_may_change)


def load_queries(loom: Loom, path: str, *, strict: bool) -> list[UnregisteredQuery]:
    """Register the queries of a catalog whose streams are registered, with their data; return the wrong ones.

    A wrong query does not keep the others from being served. With `strict`, raises the error of the first wrong query.
    """
    rejected: list[UnregisteredQuery] = []
    for entry in parse_catalog(Path(path).read_text(encoding="utf-8"), source=Path(path).name).queries:
        try:
            entry.parse({**loom.streams, **loom.relations})  # reports mistakes with their place in the catalog
            loom.query(entry.name, entry.text)
        except WindloomError as error:
            if strict:
                raise
            rejected.append(UnregisteredQuery(entry.name, entry.text, error))
    if not loom.queries:
        if rejected:
            raise rejected[0].error
        raise WindloomError(
            "there is no query to serve", "the catalog creates none", "write CREATE QUERY name AS SELECT …; in it"
        )
    return rejected


class Relay:
    """Passes rounds, and what the current round waits for, on to all that are connected.

    Each also gets the rounds that were done before.
    """

    def __init__(self) -> None:
        self._done: deque[RoundProgress] = deque(maxlen=HISTORY)
        self._wait: SinkWait | None = None
        self._to: list[Callable[[RoundProgress], None]] = []
        self._waiting: list[Callable[[SinkWait | None], None]] = []
        self._lock = threading.Lock()

    def __call__(self, done: RoundProgress) -> None:
        with self._lock:
            self._done.append(done)
            for to in self._to:
                to(done)

    def wait(self, wait: SinkWait | None) -> None:
        with self._lock:
            self._wait = wait
            for to in self._waiting:
                to(wait)

    def connect(self, to: Callable[[RoundProgress], None], waiting: Callable[[SinkWait | None], None]) -> None:
        with self._lock:
            for done in self._done:
                to(done)
            if self._wait is not None:
                waiting(self._wait)
            self._to.append(to)
            self._waiting.append(waiting)
