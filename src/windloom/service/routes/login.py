"""Logging in: a client gives a token once, and then a cookie that no script can read stands for it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from windloom.service.access import COOKIE, LOGIN_SECONDS, Level
from windloom.service.faults import RefusedError
from windloom.service.models import Access, Login
from windloom.service.service import AnyLevel, Served

router = APIRouter(prefix="/api/v1/login", tags=["login"])


@router.get("")
def who(service: Served, level: AnyLevel) -> Access:
    """What the client may do: nothing, read, or change queries."""
    return Access(level=level.name.lower(), needs_token=service.gate.tokens is not None)


@router.post("")
def log_in(body: Login, service: Served, response: Response) -> Access:
    """Give a token, get a cookie."""
    if service.gate.tokens is None:
        return Access(level=Level.ADMIN.name.lower(), needs_token=False)
    level = service.gate.tokens.level_of(body.token)
    if level is Level.NONE:
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


@router.delete("")
def log_out(request: Request, service: Served, response: Response) -> Access:
    """Forget the cookie, in the service and in the browser."""
    service.gate.logins.close(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=service.is_secure)
    return Access(level=Level.NONE.name.lower(), needs_token=service.gate.tokens is not None)
