"""Rounds: the loom at a glance, the latest rounds, and those to come as server-sent events."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from prometheus_client import generate_latest

from windloom import __version__
from windloom.errors import WindloomError
from windloom.service.models import RefusedError, Rounds, Status, StreamStatus, Waiting, without_paths
from windloom.service.service import MayRead, Served, Service

rounds_router = APIRouter(tags=["rounds"], dependencies=[MayRead])


@rounds_router.get("/status")
def status(service: Served) -> Status:
    """The loom at a glance: its streams, its last round, its rates over the last minute."""
    loom, totals = service.loom, service.totals
    last = totals.last
    events, rows, seconds = totals.rates()
    return Status(
        version=__version__,
        active=loom.is_active,
        message=_message(service),
        waiting=_waiting(service),
        round=None if last is None else last.round,
        queries=len(loom.queries),
        trees=0 if last is None else last.trees,
        rejected=sum(1 for refused in loom.rejected if refused.name not in loom.queries),
        watermark=None if last is None else last.watermark,
        lag=None if last is None else last.lag,
        state_bytes=0 if last is None else last.state_bytes,
        events=totals.events,
        rows=totals.rows,
        events_per_second=events,
        rows_per_second=rows,
        seconds_per_round=seconds,
        streams=_streams(service),
    )


@rounds_router.get("/rounds")
def history(service: Served, limit: Annotated[int, Query(ge=1, le=100)] = 100) -> Rounds:
    """The latest rounds of this process, oldest first."""
    return Rounds(rounds=[progress.as_dict() for progress in list(service.loom.rounds)[-limit:]])


@rounds_router.get("/rounds/live", response_class=StreamingResponse)
async def live(
    service: Served,
    after: Annotated[int | None, Query(ge=-1, le=2**62)] = None,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> StreamingResponse:
    """Rounds as they are done, as events named `round`; an event named `queries` means that queries have changed."""
    if service.feed.watchers >= service.feed.most_watchers:
        raise RefusedError(429, "too many watch already", f"at most {service.feed.most_watchers:,}", "try again later")
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        after = int(last_event_id)
    return StreamingResponse(
        service.feed.watch(after), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


def _message(service: Service) -> str:
    failure = service.loom.failure
    if failure is not None:
        known = without_paths(str(failure)) if isinstance(failure, WindloomError) else "an error of the service"
        return f"the stream has failed: {known}"
    if not service.loom.is_active:
        return "the stream has ended"
    if service.loom.waiting is not None:
        return without_paths(str(service.loom.waiting))
    return "waiting for the first round" if service.totals.last is None else "running"


def _waiting(service: Service) -> Waiting | None:
    wait = service.loom.waiting
    if wait is None:
        return None
    shown = {"since": wait.since.isoformat(timespec="seconds"), "reason": without_paths(wait.reason)}
    return Waiting(**{**asdict(wait), **shown})


def _streams(service: Service) -> list[StreamStatus]:
    last, late, rates = service.totals.last, service.totals.late, service.totals.stream_rates()
    return [
        StreamStatus(
            name=name,
            columns={column: kind.name for column, kind in stream.columns.items()},
            time=stream.time,
            events_per_second=stream.events_per_second,
            tuples_per_second=rates.get(name),
            tuples=service.totals.tuples[name],
            cells=None if last is None else last.cells.get(name),
            frontier=None if last is None else last.frontiers.get(name),
            lag=None if last is None else last.lags.get(name),
            late_partly=late[name]["partly"] if name in late else 0,
            late_dropped=late[name]["dropped"] if name in late else 0,
        )
        for name, stream in service.loom.streams.items()
    ]


# For those who run the service: whether it is alive, whether it is ready, and its figures.

health_router = APIRouter(tags=["health"])


@health_router.get("/healthz", response_class=PlainTextResponse)
def health() -> str:
    """The process answers."""
    return "alive\n"


@health_router.get("/readyz", response_class=PlainTextResponse)
def ready(service: Served, response: Response) -> str:
    """The stream is running, and no round waits for a sink that is down; 503 otherwise."""
    if service.loom.is_active and service.loom.failure is None:
        waiting = service.loom.waiting
        if waiting is None:
            return "ready\n"
        response.status_code = 503
        return f"round {waiting.round} waits for the sink '{waiting.sink}', which is down\n"
    response.status_code = 503
    return "the stream is not running\n"


@health_router.get("/metrics", dependencies=[MayRead])
def metrics(service: Served) -> Response:
    """Figures in the text form of Prometheus."""
    service.metrics.up.set(float(service.loom.is_active and service.loom.failure is None))
    return Response(generate_latest(service.metrics.registry), media_type="text/plain; version=0.0.4; charset=utf-8")
