"""A client of an ASGI application in this process: no socket, no server."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

import httpx
from starlette.types import ASGIApp


class Client:
    """Calls one after the other, each until its answer is complete; cookies are kept, as in a browser."""

    def __init__(self, app: ASGIApp, base_url: str = "http://localhost:8470") -> None:
        self._loop = asyncio.new_event_loop()
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base_url)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.run_until_complete(self._client.aclose())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    @property
    def cookies(self) -> httpx.Cookies:
        return self._client.cookies

    def request(self, method: str, url: str, **given: Any) -> httpx.Response:
        return self._loop.run_until_complete(self._client.request(method, url, **given))

    def get(self, url: str, **given: Any) -> httpx.Response:
        return self.request("GET", url, **given)

    def post(self, url: str, **given: Any) -> httpx.Response:
        return self.request("POST", url, **given)

    def put(self, url: str, **given: Any) -> httpx.Response:
        return self.request("PUT", url, **given)

    def delete(self, url: str, **given: Any) -> httpx.Response:
        return self.request("DELETE", url, **given)
