"""The page: a handful of files of the package, by name; no directory is reachable."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import Response
from starlette.exceptions import HTTPException

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
    return _file("index.html", if_none_match)


@router.get("/api")
def api(if_none_match: Annotated[str | None, Header()] = None) -> Response:
    return _file("api.html", if_none_match)


@router.get("/page/{name}")
def file(name: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    return _file(name, if_none_match)


def _file(name: str, known: str | None) -> Response:
    if name not in page_files():
        raise HTTPException(404)
    data, kind, tag = page_files()[name]
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if known == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=kind, headers=headers)
