"""The server on a free port: the example of the docs, events as they come, an end that waits for nobody."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.fake_loom import AVERAGE, FakeLoom, made_round
from windloom.errors import WindloomError
from windloom.service.access import Gate
from windloom.service.app import make_app
from windloom.service.server import HttpServer, Place
from windloom.service.service import Service

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def service() -> Service:
    loom = FakeLoom()
    loom.add("avg_1m", AVERAGE)
    return Service(loom)


@contextmanager
def served(service: Service, place: Place) -> Iterator[int]:
    with place.open() as listening:
        server = HttpServer(make_app(service), place, listening)
        server.start()
        yield int(listening.getsockname()[1])
        service.feed.close()
        server.stop()
        assert not server.is_running


@pytest.fixture
def port(service: Service) -> Iterator[int]:
    with served(service, Place(port=0)) as found:
        yield found


def test_the_example_of_the_docs_runs(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    source = (ROOT / "examples" / "service.py").read_text()
    variables: dict[str, object] = {}
    exec(source.replace("8470", str(port)), variables)
    api = variables["api"]
    assert isinstance(api, httpx.Client)
    api.close()
    said = capsys.readouterr().out.splitlines()
    assert "of event time; alone it would take" in said[0]
    assert said[2] == "['flow', 'high', 'avg_1m', 'high_5m']"
    assert said[4:] == ["query 'wrong': unknown column 'prise'", "high_5m is removed"]


def test_rounds_are_events_that_go_on_after_the_last_one_seen(port: int, service: Service) -> None:
    for number in range(3):
        service.round_done(made_round(number))
    with (
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
        client.stream("GET", "/api/v1/rounds/live", headers={"Last-Event-ID": "1"}) as watched,
    ):
        assert watched.headers["content-type"].startswith("text/event-stream")
        lines = watched.iter_lines()
        assert next(line for line in lines if line.startswith("id: ")) == "id: 2"
        service.round_done(made_round(3))
        assert next(line for line in lines if line.startswith("id: ")) == "id: 3"
        client.post("/api/v1/queries", json={"name": "more", "text": AVERAGE})
        assert next(line for line in lines if line == "event: queries")
        # The server stops while this one still watches: the fixture sees to it.


def test_more_watchers_than_there_may_be_are_refused(port: int, service: Service) -> None:
    service.feed.most_watchers = 0
    assert httpx.get(f"http://127.0.0.1:{port}/api/v1/rounds/live").status_code == 429


def test_a_port_in_use_is_refused_with_what_to_do(port: int) -> None:
    with pytest.raises(WindloomError, match=f"port {port} of '127.0.0.1' is in use") as refused:
        Place(port=port).open()
    assert "--port" in refused.value.hint


@pytest.mark.parametrize("host", ["203.0.113.7", "no such name"])
def test_an_address_of_elsewhere_is_refused(host: str) -> None:
    with pytest.raises(WindloomError, match="cannot listen"):
        Place(host=host, port=0).open()


def test_which_places_are_this_machines_own() -> None:
    local = ("127.0.0.1", "127.9.9.9", "::1", "localhost")
    assert all(Place(host=host).is_local for host in local)
    assert not any(Place(host=host).is_local for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"))
    assert not Place(behind_proxy=True).is_local
    assert Place(host="::1", port=80).address == "http://[::1]:80"


TOKEN = "a-token-of-the-admin"


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    (tmp_path / "tokens").write_text(f"admin: {TOKEN}\n")
    return str(tmp_path / "tokens")


@pytest.fixture
def tls(tmp_path: Path) -> tuple[str, str]:
    """A certificate for this machine that nobody else has signed, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with: install the package openssl")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make_certificate(certificate, key)
    return str(certificate), str(key)


def make_certificate(certificate: Path, key: Path) -> None:
    wanted = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*wanted.split(), *names], check=True, capture_output=True)


def test_over_tls_one_logs_in_and_watches(token_file: str, tls: tuple[str, str]) -> None:
    place = Place(port=0, token_file=token_file, tls_certificate=tls[0], tls_key=tls[1])
    tokens = place.tokens()
    assert tokens is not None
    assert place.address.startswith("https://")
    service = Service(FakeLoom(), Gate(tokens), is_local=place.is_local, is_secure=place.is_secure)
    service.round_done(made_round(0))
    trusted = ssl.create_default_context(cafile=tls[0])
    with (
        served(service, place) as port,
        httpx.Client(base_url=f"https://127.0.0.1:{port}", timeout=60, verify=trusted) as client,
    ):
        assert client.get("/api/v1/queries").status_code == 401
        cookie = client.post("/api/v1/login", json={"token": TOKEN}).headers["set-cookie"]
        assert "Secure" in cookie
        with client.stream("GET", "/api/v1/rounds/live") as watched:
            assert next(line for line in watched.iter_lines() if line.startswith("id: ")) == "id: 0"
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"https://127.0.0.1:{port}/healthz")  # nobody who is asked knows this certificate
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/healthz")


def test_tls_files_that_cannot_be_used_are_refused(tmp_path: Path, tls: tuple[str, str]) -> None:
    other = tmp_path / "other.pem"
    make_certificate(tmp_path / "other_certificate.pem", other)
    locked = tmp_path / "locked.pem"
    lock = ["openssl", "ec", "-in", tls[1], "-aes256", "-passout", "pass:secret", "-out", str(locked)]
    subprocess.run(lock, check=True, capture_output=True)
    (tmp_path / "text").write_text("no certificate")
    for certificate, key in ((tls[0], other), (tls[0], locked), (tmp_path / "text", tls[1]), (tls[1], tls[0])):
        with pytest.raises(WindloomError, match="cannot use the certificate") as refused:
            Place(tls_certificate=str(certificate), tls_key=str(key)).tokens()
        assert refused.value.detail
        assert "PEM" in refused.value.hint


def test_behind_a_proxy_its_name_counts_and_cookies_are_for_tls_only(token_file: str) -> None:
    place = Place(port=0, token_file=token_file, behind_proxy=True)
    service = Service(FakeLoom(), Gate(place.tokens()), is_local=place.is_local, is_secure=place.is_secure)
    passed_on = {"Host": "loom.example.org", "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
    with served(service, place) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=passed_on) as client:
        assert client.get("/api/v1/queries").status_code == 401
        own = {"Origin": "https://loom.example.org"}
        logged_in = client.post("/api/v1/login", json={"token": TOKEN}, headers=own)
        assert logged_in.status_code == 200
        assert "Secure" in logged_in.headers["set-cookie"]
        foreign = {"Origin": "https://example.org"}
        assert client.post("/api/v1/login", json={"token": TOKEN}, headers=foreign).status_code == 403
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/v1/queries", headers=bearer).status_code == 200
