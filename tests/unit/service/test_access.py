"""Closed by default: tokens, cookies, foreign sites, sizes; and nothing of the machine in any answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.asgi import Client
from support.fake_loom import AVERAGE, FakeLoom
from windloom.errors import WindloomError
from windloom.service.access import AccessLevel, Gate, Logins, Tokens, read_tokens
from windloom.service.app import make_app
from windloom.service.service import Limits, Service

ADMIN, READ = "a-token-for-the-admin", "a-token-for-readers"


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    (tmp_path / "tokens").write_text(f"# ours\nadmin: {ADMIN}\n\nread: {READ}\n")
    return read_tokens(str(tmp_path / "tokens"))


def served(tokens: Tokens | None, **given: Any) -> Client:
    return Client(make_app(Service(FakeLoom(), Gate(tokens), **given)))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_without_a_token_everything_but_health_and_the_empty_page_is_refused(tokens: Tokens) -> None:
    with served(tokens) as client:
        for path in ("queries", "plan", "plan.svg", "sharing", "rounds", "rounds/live", "status", "latest?query=flow"):
            answer = client.get(f"/api/v1/{path}")
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"] == "Bearer"
        assert client.get("/metrics").status_code == 401
        for wrong in ("", ADMIN[:-1], ADMIN + "x", "ü" * 20):
            assert (
                client.get("/api/v1/queries", headers={"Authorization": f"Bearer {wrong}".encode()}).status_code == 401
            )
        assert client.get("/healthz").status_code == 200
        assert client.get("/").status_code == 200
        assert client.get("/api/v1/login").json() == {"level": "none", "needs_token": True}


def test_a_read_token_reads_and_an_admin_token_changes(tokens: Tokens) -> None:
    with served(tokens) as client:
        new = {"name": "average", "text": AVERAGE}
        assert client.get("/api/v1/queries", headers=bearer(READ)).status_code == 200
        assert client.post("/api/v1/queries/dry-run", json={"text": AVERAGE}, headers=bearer(READ)).status_code == 200
        refused = client.post("/api/v1/queries", json=new, headers=bearer(READ))
        assert refused.status_code == 403
        assert refused.json()["error"]["message"] == "this token may only read"
        assert client.delete("/api/v1/queries/flow", headers=bearer(READ)).status_code == 403
        assert client.post("/api/v1/queries", json=new, headers=bearer(ADMIN)).status_code == 201


def test_the_page_logs_in_once_and_out_again(tokens: Tokens) -> None:
    with served(tokens, is_secure=True) as client:
        assert client.post("/api/v1/login", json={"token": "not-one-of-the-tokens"}).status_code == 401
        answer = client.post("/api/v1/login", json={"token": READ})
        cookie = answer.headers["set-cookie"]
        for part in ("HttpOnly", "SameSite=strict", "Secure", "Path=/"):
            assert part in cookie
        assert READ not in cookie
        login = {"Cookie": cookie.partition(";")[0]}
        assert client.get("/api/v1/queries", headers=login).status_code == 200
        assert client.get("/api/v1/login", headers=login).json()["level"] == "read"
        client.delete("/api/v1/login", headers=login)
        assert client.get("/api/v1/queries", headers=login).status_code == 401


def test_logins_end_and_the_oldest_go_first() -> None:
    now = [0.0]
    logins = Logins(lambda: now[0])
    first = logins.open(AccessLevel.READ)
    assert logins.level_of(first) is AccessLevel.READ
    now[0] = 13 * 3600
    assert logins.level_of(first) is AccessLevel.NONE
    last = [logins.open(AccessLevel.ADMIN) for _ in range(1_001)]
    assert logins.level_of(last[0]) is AccessLevel.NONE
    assert logins.level_of(last[1]) is AccessLevel.ADMIN


@pytest.mark.parametrize(
    "content", ["", "# nothing\n", "admin: short\n", "write: 0123456789abcdef\n", "admin: a b" * 9]
)
def test_a_token_file_that_cannot_be_used_is_refused_with_what_to_write(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokens").write_text(content)
    with pytest.raises(WindloomError, match="token") as refused:
        read_tokens(str(tmp_path / "tokens"))
    assert "admin: TOKEN" in refused.value.hint


def test_a_token_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"admin: \xff\xfe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "closed").write_text(f"admin: {ADMIN}")
    (tmp_path / "closed").chmod(0)
    closed = ["closed"] if os.geteuid() else []  # root reads everything
    for name in ("none", "bytes", "folder", *closed):
        with pytest.raises(WindloomError, match=f"cannot read the token file '.*{name}'") as refused:
            read_tokens(str(tmp_path / name))
        assert "a file that the user of this process may read" in refused.value.hint


def test_a_name_that_someone_else_gave_this_machine_is_refused() -> None:
    with served(None) as client:
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""):
            assert client.get("/api/v1/queries", headers={"Host": host}).status_code == 421, host
        for host in ("localhost", "127.0.0.1:8470", "[::1]:8470"):
            assert client.get("/api/v1/queries", headers={"Host": host}).status_code == 200, host


def test_a_page_of_another_site_changes_nothing() -> None:
    with served(None) as client:
        for origin in ("http://evil.example", "null", "http://localhost:1", "http://[broken"):
            answer = client.post("/api/v1/ask", json={"text": AVERAGE}, headers={"Origin": origin})
            assert answer.status_code == 403, origin
        own = {"Origin": "http://localhost:8470"}
        assert client.post("/api/v1/ask", json={"text": AVERAGE}, headers=own).status_code == 200


def test_bodies_are_limited_whatever_they_say_of_their_length() -> None:
    def pieces() -> Any:
        async def generate() -> Any:
            for _ in range(100):
                yield b"x" * 1_000

        return generate()

    with served(None, limits=Limits(body_bytes=10_000)) as client:
        large = client.post("/api/v1/ask", content=b"x" * 10_001)
        assert (large.status_code, large.json()["error"]["message"]) == (413, "the body is too large")
        assert client.post("/api/v1/ask", content=pieces()).status_code == 413
        odd = client.post("/api/v1/ask", content=b"{}", headers={"Content-Length": "1e9"})
        assert odd.status_code == 400


class SlowLoom(FakeLoom):
    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = threading.Event()

    def answers(
        self,
        name: str,
        since: str | None,
        until: str | None,
        limit: int,
        most_files: int | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> pa.Table:
        self.may_go_on.wait()
        return super().answers(name, since, until, limit)


class BrokenLoom(FakeLoom):
    def explain(self, query: str) -> str:
        raise ValueError("a secret at /srv/secret/place")


def test_a_request_that_takes_too_long_is_answered_while_it_still_works() -> None:
    loom = SlowLoom()
    with Client(make_app(Service(loom, limits=Limits(seconds=0.01)))) as client:
        answer = client.get("/api/v1/queries/flow/answers")
        assert (answer.status_code, answer.json()["error"]["message"]) == (503, "this takes too long")
        loom.may_go_on.set()


def test_only_so_much_is_worked_on_at_once() -> None:
    service = Service(FakeLoom(), limits=Limits(patience=0))
    with Client(make_app(service)) as client, ExitStack() as busy:
        for _ in range(8):
            busy.enter_context(service.working())
        assert client.post("/api/v1/ask", json={"text": AVERAGE}).status_code == 429
        assert client.get("/api/v1/status").status_code == 200


def test_an_error_of_ours_tells_nothing_but_that_it_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    with Client(make_app(Service(BrokenLoom()))) as client:
        answer = client.get("/api/v1/queries/flow")
        assert answer.status_code == 500
        assert answer.json()["error"]["message"] == "something went wrong here"
        assert "secret" not in answer.text
        assert "a secret at" in capsys.readouterr().err
        assert "windloom_errors_total 1.0" in client.get("/metrics").text


def test_every_answer_binds_browsers_to_this_site() -> None:
    with served(None) as client:
        for path in ("/", "/api/v1/queries", "/nowhere", "/api/v1/queries/none"):
            headers = client.get(path).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "/etc/passwd", "index.html%00", "x"])
def test_no_file_but_those_of_the_page_is_reachable(path: str) -> None:
    with served(None) as client:
        assert client.get(f"/page/{path}").status_code == 404
