"""A receiver of letters: an HTTP server on loopback that leaves out idempotency keys it has seen, and can misbehave."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: What to do with the nth post: a status, or "hang up" without or "after" having taken it.
Behaviour = Callable[[int], int | str]


class Receiver:
    """`letters` are those that were taken, by key; `posts` counts all that came."""

    def __init__(self) -> None:
        self.letters: dict[str, dict[str, Any]] = {}
        self.posts = 0
        self.headers: list[dict[str, str]] = []
        self.behaviour: Behaviour = lambda _: 200
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook?secret=1"

    def take(self, key: str, letter: dict[str, Any], headers: dict[str, str]) -> int | str:
        with self._lock:
            self.posts += 1
            does = self.behaviour(self.posts)
            self.headers.append(headers)
            if does == "after" or (isinstance(does, int) and does < 300):
                assert self.letters.setdefault(key, letter) == letter, "one key, two letters"
            return does

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                letter = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                does = receiver.take(self.headers["Idempotency-Key"], letter, dict(self.headers))
                if isinstance(does, str):
                    self.close_connection = True
                    return
                self.send_response(does)
                if does == 302:
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()
                self.wfile.write(b"said so")

            def do_GET(self) -> None:
                raise AssertionError("a letter is never fetched")

            def log_message(self, *_: object) -> None: ...

        return Handler

    @contextmanager
    def running(self) -> Iterator[Receiver]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()
