"""For those who run the service: whether it is alive, whether it is ready, and its figures."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from windloom.service.service import MayRead, Served

router = APIRouter(tags=["health"])


@router.get("/healthz", response_class=PlainTextResponse)
def health() -> str:
    """The process answers."""
    return "alive\n"


@router.get("/readyz", response_class=PlainTextResponse)
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


@router.get("/metrics", dependencies=[MayRead])
def metrics(service: Served) -> Response:
    """Figures in the text form of Prometheus."""
    service.metrics.up.set(float(service.loom.is_active and service.loom.failure is None))
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
