"""The application: routes behind the shield, errors in one form, a description of the API."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from windloom import __version__
from windloom.errors import WindloomError
from windloom.service import faults
from windloom.service.models import Failure
from windloom.service.routes import answers, health, login, page, plan, queries, rounds
from windloom.service.service import Service
from windloom.service.shield import Shield

API = "/api/v1"
_ABOUT = "Sliding-window queries over streams: list, add, replace and remove them, ask once, and read their answers."


def make_app(service: Service) -> ASGIApp:
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
        openapi_url=f"{API}/openapi.json",
        # FastAPI's own pages load scripts from other sites; `page/api.html` shows the description without them.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses={422: {"model": Failure, "description": "What is wrong with the request, and what to do."}},
    )
    for routes in (queries, answers, plan, rounds):
        app.include_router(routes.router, prefix=API)
    for open_one in (login, health):
        app.include_router(open_one.router)
    app.include_router(page.router, include_in_schema=False)
    app.add_exception_handler(WindloomError, faults.on_windloom_error)
    app.add_exception_handler(HTTPException, faults.on_http_error)
    app.add_exception_handler(RequestValidationError, faults.on_invalid)
    app.add_exception_handler(RecursionError, faults.on_recursion)
    app.add_exception_handler(Exception, faults.on_unexpected)
    return app
