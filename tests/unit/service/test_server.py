"""The server on a free port: the example of the docs, events as they come, an end that waits for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.fake_loom import AVERAGE, FakeLoom, made_round
from windloom.errors import WindloomError
from windloom.service.app import make_app
from windloom.service.server import HttpServer, Place
from windloom.service.service import Service

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def service() -> Service:
    loom = FakeLoom()
    loom.add("avg_1m", AVERAGE)
    return Service(loom)


@pytest.fixture
def port(service: Service) -> Iterator[int]:
    place = Place(port=0)
    with place.open() as listening:
        server = HttpServer(make_app(service), place, listening)
        server.start()
        yield int(listening.getsockname()[1])
        service.feed.close()
        server.stop()
        assert not server.is_running


def test_the_example_of_the_docs_runs(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    source = (ROOT / "examples" / "service.py").read_text()
    variables: dict[str, object] = {}
    exec(source.replace("8470", str(port)), variables)
    api = variables["api"]
    assert isinstance(api, httpx.Client)
    api.close()
    said = capsys.readouterr().out.splitlines()
    assert "of work per second of event time; alone it would take" in said[0]
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
