"""The page: a handful of files of the package, by name; no directory is reachable."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi import Response as FastapiResponse
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from windloom.service.access import COOKIE, LOGIN_SECONDS, AccessLevel
from windloom.service.models import Access, Login, RefusedError
from windloom.service.service import AnyLevel, MayRead, Served

router = APIRouter()

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def page_files() -> dict[str, tuple[bytes, str, str]]:
    """For each file, by name: its contents, its kind and a tag that changes with the contents."""
    contents = {}
    for file in files("windloom.service").joinpath("page").iterdir():
        kind = _KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            data = file.read_bytes()
            contents[file.name] = (data, kind, f'"{hashlib.sha256(data).hexdigest()[:16]}"')
    return contents


@router.get("/")
def index(if_none_match: Annotated[str | None, Header()] = None) -> Response:
    return file("index.html", if_none_match)


@router.get("/api")
def api(if_none_match: Annotated[str | None, Header()] = None) -> Response:
    return file("api.html", if_none_match)


@router.get("/page/{name}")
def file(name: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    if name not in page_files():
        raise HTTPException(404)
    data, kind, tag = page_files()[name]
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if if_none_match == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=kind, headers=headers)


# The plan that the next round will run: as data, as a picture, and what sharing saves.

plan_router = APIRouter(tags=["plan"], dependencies=[MayRead])


@plan_router.get("/plan")
def plan(service: Served) -> dict[str, Any]:
    """Streams, scans, sets, trees and queries, as `windloom explain --json` prints them."""
    return dict(service.loom.plan())


@plan_router.get("/plan.svg", response_class=FastapiResponse)
def picture(service: Served) -> FastapiResponse:
    """The plan as a picture."""
    # The picture contains a style of its own, which highlights the part under the pointer.
    policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    with service.working():
        return FastapiResponse(
            service.loom.picture(), media_type="image/svg+xml", headers={"Content-Security-Policy": policy}
        )


@plan_router.get("/sharing")
def sharing(service: Served) -> dict[str, Any]:
    """The predicted cost of every set, tree and query, and what sharing saves."""
    with service.working():
        return dict(service.loom.costs())


# Logging in: a client gives a token once, and then a cookie that no script can read stands for it.

login_router = APIRouter(prefix="/api/v1/login", tags=["login"])


@login_router.get("")
def who(service: Served, level: AnyLevel) -> Access:
    """What the client may do: nothing, read, or change queries."""
    return Access(level=level.name.lower(), needs_token=service.gate.tokens is not None)


@login_router.post("")
def log_in(body: Login, service: Served, response: FastapiResponse) -> Access:
    """Give a token, get a cookie."""
    if service.gate.tokens is None:
        return Access(level=AccessLevel.ADMIN.name.lower(), needs_token=False)
    level = service.gate.tokens.level_of(body.token)
    if level is AccessLevel.NONE:
        raise RefusedError(401, "this token is not known", "", "copy it from the token file of the service")
    response.set_cookie(
        COOKIE,
        service.gate.logins.open(level),
        max_age=LOGIN_SECONDS,
        path="/",
        secure=service.is_secure,
        httponly=True,
        samesite="strict",
    )
    return Access(level=level.name.lower(), needs_token=True)


@login_router.delete("")
def log_out(request: Request, service: Served, response: FastapiResponse) -> Access:
    """Forget the cookie, in the service and in the browser."""
    service.gate.logins.close(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=service.is_secure)
    return Access(level=AccessLevel.NONE.name.lower(), needs_token=service.gate.tokens is not None)
