"""The application: routes behind the shield, errors in one form, a description of the API."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windloom import __version__
from windloom.engine.handle import Handle
from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.service.access import Gate, Tokens
from windloom.service.models import Failure, Problem, answer_error, failed
from windloom.service.routes import answers, pages, queries, rounds
from windloom.service.server import HttpServer, Place
from windloom.service.service import KnownParameters, Limits, Relay, ServedHandle, Service, UnregisteredQuery
from windloom.service.stored_answers import StoredAnswers

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LOCAL_HOST = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.IGNORECASE)
_CHANGING = ("POST", "PUT", "DELETE", "PATCH")
#: A request that lasts as long as someone watches.
_ENDLESS = "/api/v1/rounds/live"


class Shield:
    """Wraps every request: limits on size and time, no foreign sites, headers that restrict browsers, no traceback.

    Pure ASGI: it sees the body before anything parses it, and the answer before it is sent.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        self._given_up: set[asyncio.Future[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answered = _Answered(send, self._service)
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await failed(*refusal)(scope, receive, answered)
            return
        seen = 0

        async def limited() -> Message:
            """Count the bytes that come: a request need not give the length of its body, and may give a wrong one."""
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._service.limits.body_bytes:
                raise HTTPException(413, "the body is too large")
            return message

        limit = None if scope["path"] == _ENDLESS else self._service.limits.seconds
        task = asyncio.ensure_future(self._app(scope, limited, answered))
        try:
            done, _ = await asyncio.wait({task}, timeout=limit)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            await self._give_up(task, answered, scope, receive)
        elif task.exception() is not None:
            # For the operator's log; the client has only been told that the error is not theirs.
            self._service.metrics.errors.inc()
            traceback.print_exception(task.exception(), file=sys.stderr)

    async def _give_up(self, task: asyncio.Future[None], answered: _Answered, scope: Scope, receive: Receive) -> None:
        """Answer now. A thread cannot be stopped, so its work continues, but nobody waits for it."""
        self._given_up.add(task)
        task.add_done_callback(self._forget)
        task.cancel()
        problem = Problem(
            message="this takes too long",
            detail=f"a request may take {self._service.limits.seconds:g} seconds",
            hint="ask for less, or try again when fewer ask",
        )
        await answered.fail(scope, receive, 503, problem)

    def _forget(self, task: asyncio.Future[None]) -> None:
        self._given_up.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not report it as never retrieved

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, Problem] | None:
        host = headers.get("host", "")
        if self._service.is_local and not _LOCAL_HOST.fullmatch(host):
            # A foreign name that resolves to this machine: it would let in a page of another site.
            return 421, Problem(message="this service answers to localhost only")
        origin = headers.get("origin")
        if scope["method"] in _CHANGING and origin is not None and _authority(origin) != host.lower():
            return 403, Problem(message="this request comes from a page of another site")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return 400, Problem(message="the length of the body cannot be read")
        if len(length) > 18 or int(length) > self._service.limits.body_bytes:
            return 413, Problem(
                message="the body is too large", detail=f"at most {self._service.limits.body_bytes:,} bytes"
            )
        return None


class _Answered:
    """Sends the answer, with the headers that every answer has, and notes whether it has begun."""

    def __init__(self, send: Send, service: Service) -> None:
        self._send, self._service = send, service
        self._has_begun = self._is_taken_over = False

    async def __call__(self, message: Message) -> None:
        if not self._is_taken_over:
            await self._pass_on(message)

    async def fail(self, scope: Scope, receive: Receive, status: int, problem: Problem) -> None:
        """Send a failure if no answer has begun; from now on, nothing else is sent."""
        self._is_taken_over = True
        if not self._has_begun:
            await failed(status, problem)(scope, receive, self._pass_on)

    async def _pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._has_begun = True
            self._service.metrics.requests.labels(str(message["status"])).inc()
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)


def _authority(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


API = "/api/v1"
_ABOUT = "Sliding-window queries over streams: list, add, replace and remove them, ask once, and read their answers."


def make_app(service: Service) -> ASGIApp:
    """Return the application behind its shield."""
    app = _app()
    app.state.service = service
    return Shield(app, service)


def described() -> dict[str, Any]:
    """Return the description of the API in OpenAPI."""
    return _app().openapi()


def _app() -> FastAPI:
    app = FastAPI(
        title="Windloom",
        version=__version__,
        description=_ABOUT,
        openapi_url=None,  # a route like the others, below
        # FastAPI's own pages load scripts from other sites; `page/api.html` shows the description without them.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses={422: {"model": Failure, "description": "What is wrong with the request, and what to do."}},
    )
    for router in (queries.router, answers.router, pages.plan_router, rounds.rounds_router):
        app.include_router(router, prefix=API, dependencies=[KnownParameters])
    for router in (pages.login_router, rounds.health_router):
        app.include_router(router, dependencies=[KnownParameters])
    app.include_router(pages.router, include_in_schema=False, dependencies=[KnownParameters])
    app.add_api_route(f"{API}/openapi.json", app.openapi, include_in_schema=False, dependencies=[KnownParameters])
    for error in (WindloomError, HTTPException, RequestValidationError, RecursionError, Exception):
        app.add_exception_handler(error, answer_error)
    return app


@contextmanager
def serving(
    handle: Handle,
    streams: Mapping[str, Stream],
    out: Path,
    rounds: Relay,
    place: Place,
    listening: socket.socket,
    tokens: Tokens | None,
    limits: Limits,
    rejected: Sequence[UnregisteredQuery] = (),
) -> Iterator[Service]:
    """Serve a handle whose answers go to Parquet under `out`, and whose rounds come through `rounds`."""
    loom = ServedHandle(handle, streams, StoredAnswers(out), rejected)
    service = Service(loom, Gate(tokens), limits, is_local=place.is_local, is_secure=place.is_secure)
    rounds.connect(service.round_done, service.round_waits)
    server = HttpServer(make_app(service), place, listening)
    server.start()
    try:
        yield service
    finally:
        service.feed.close()  # otherwise the server would wait for watchers
        server.stop()
