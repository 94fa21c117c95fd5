"""Mangled requests: whatever is sent, the answer is never an error of ours, nor tells where it runs."""

from __future__ import annotations

import gc
import json
import os
import random
import string
import tracemalloc
from typing import Any
from urllib.parse import quote

from support.asgi import Client
from support.fake_loom import AVERAGE, FLOW, FakeLoom
from windloom.service.access import Gate
from windloom.service.app import make_app
from windloom.service.service import Limits, Service

#: `WINDLOOM_MANGLED=10000` for as many as the project promises.
_COUNT = int(os.environ.get("WINDLOOM_MANGLED", "500"))
_PATHS = [
    "/", "/api", "/page/app.js", "/page/%2e%2e", "/healthz", "/readyz", "/metrics", "/api/v1/queries",
    "/api/v1/queries/flow", "/api/v1/queries/dry-run", "/api/v1/queries/flow/answers", "/api/v1/latest", "/api/v1/ask",
    "/api/v1/plan", "/api/v1/plan.svg", "/api/v1/sharing", "/api/v1/rounds", "/api/v1/status", "/api/v1/login",
    "/api/v1/openapi.json",
]  # fmt: skip
JOIN = (
    "SELECT a.symbol, count(*) AS n FROM trades [RANGE 1 minute SLIDE 20 seconds] a"
    " JOIN trades [RANGE 20 seconds] b ON a.symbol = b.symbol GROUP BY a.symbol"
)
_METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "GIBBERISH"]
_PARAMETERS = ["limit", "format", "since", "until", "query", "after", "name", "x"]
_VALUES = [
    "", "0", "-1", "1e999", "NaN", "9" * 400, "json", "arrow", "flow", "2026-01-05", "99:99", "ä\u202e\u0000",
    "../../etc/passwd", "<script>", "' OR 1=1 --", "%", "%zz", "\ud800", "a" * 3_000,
]  # fmt: skip
_PIECES = [*string.punctuation, "\u0000", "\ud800", "😀", "'", "/*", "9" * 50]
_KINDS = [b"application/json"] * 6 + [b"text/plain", b"", b"multipart/form-data", b"\xff"]
_FIELDS = [b"", b"*/*", b"text/csv", b"Bearer x", b"windloom_login=x", b"\xff\xfe", b"9" * 999]


def mangled_text(rng: random.Random) -> str:
    text = list(
        rng.choice([FLOW, AVERAGE, JOIN, "SELECT", "", "(" * 5_000, "NOT " * 3_000, "1+" * 2_000, "[RANGE 1 s]"])
    )
    for _ in range(rng.randint(0, 6)):
        at = rng.randint(0, len(text))
        text[at : at + rng.randint(0, 5)] = rng.choice(_PIECES)
    return "".join(text)


def mangled_body(rng: random.Random) -> bytes:
    given: Any = {"text": mangled_text(rng)}
    if rng.random() < 0.5:
        given["name"] = rng.choice(["q", "flow", "", "a/b", "\u0000", "x" * 300, 7, None, ["a"]])
    if rng.random() < 0.2:
        given = rng.choice([[], 7, "text", None, {"text": 7}, {"token": "x"}, {"text": {"a": []}}, {"x": given}])
    body = json.dumps(given).encode()
    if rng.random() < 0.2:
        at = rng.randrange(len(body) + 1)
        body = body[:at] + rng.randbytes(rng.randint(0, 9)) + body[at + rng.randint(0, 3) :]
    return rng.choice([body] * 12 + [b"", b"[" * 20_000, b"{" * 100, b'{"text":' * 3_000, b"\xff\xfe", b"x" * 70_000])


def request(rng: random.Random) -> tuple[str, str, bytes, dict[str, bytes]]:
    path = rng.choice(_PATHS)
    if rng.random() < 0.2:
        at = rng.randrange(len(path))
        path = path[:at] + rng.choice(["%00", "%2f", "//", "..", "%ff", "ä", "\\", ";", "%", "?", "#"]) + path[at:]
    if rng.random() < 0.4:
        pairs = (f"{rng.choice(_PARAMETERS)}={quoted(rng.choice(_VALUES))}" for _ in range(rng.randint(1, 4)))
        path += "?" + "&".join(pairs)
    headers = {"Content-Type": rng.choice(_KINDS)}
    for name in ("Accept", "Origin", "Cookie", "Authorization", "If-None-Match", "Range", "Last-Event-ID"):
        if rng.random() < 0.1:
            headers[name] = rng.choice(_FIELDS)
    if rng.random() < 0.05:
        headers["Host"] = rng.choice([b"", b"evil.example", b"localhost:99999999", b"\xff"])
    return rng.choice([*_METHODS, "POST", "POST", "POST"]), path, mangled_body(rng), headers


def quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"))


def test_no_mangled_request_makes_an_error_of_ours_nor_tells_where_it_runs() -> None:
    rng = random.Random(17)
    service = Service(FakeLoom(), Gate(None), Limits(max_cost=1e3))
    seen: dict[int, int] = {}
    with Client(make_app(service)) as client:
        for number in range(_COUNT):
            method, path, body, headers = request(rng)
            answer = client.request(method, path, content=body, headers=headers)
            seen[answer.status_code] = seen.get(answer.status_code, 0) + 1
            assert answer.status_code < 500, (number, method, path, body[:200], answer.text[:500])
            assert b"Traceback" not in answer.content
            assert b"site-packages" not in answer.content
            assert os.getcwd().encode() not in answer.content
            for name in [name for name in service.loom.queries if name not in ("flow", "high")]:
                service.loom.remove(name)
    assert {200, 404, 405, 422} <= set(seen), seen


def test_mangled_requests_leave_nothing_behind() -> None:
    rng = random.Random(18)
    service = Service(FakeLoom())
    with Client(make_app(service)) as client:

        def send(count: int) -> int:
            for _ in range(count):
                path, headers = request(rng)[1], request(rng)[3]
                client.request("GET", path, headers=headers)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        send(_COUNT // 5)
        tracemalloc.start()
        first = send(_COUNT // 5)
        grown = send(_COUNT // 5) - first
        tracemalloc.stop()
    assert grown < 1 << 20, f"{grown:,} bytes"
