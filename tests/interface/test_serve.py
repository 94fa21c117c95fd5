"""`windloom serve`: a service that stops after its round and goes on where it was; what it refuses to start with."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.command import Command
from support.disks import fill, small_disk
from support.files import put
from support.receiver import Receiver
from support.trades import ROWS, catalog
from windloom.cli.rounds import RoundLine
from windloom.cli.run import wait_for_end
from windloom.engine.handle import Handle

Refused = Callable[..., str]

HIGH = "SELECT max(price) AS high FROM trades [RANGE 1 minute SLIDE 20 seconds]"
FLOW = "SELECT symbol, sum(volume) AS v FROM trades [RANGE 30 seconds SLIDE 10 seconds] GROUP BY symbol"


@pytest.fixture
def port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "desk.cql").write_text(catalog(high=HIGH, wrong="SELECT sum(prise) AS s …"))
    (tmp_path / "in").mkdir()
    return tmp_path


@contextmanager
def served(folder: Path, port: int, *more: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """The command, once it serves; it is killed at the end if nobody stopped it."""
    given = ["desk.cql", "--stream", "trades=in/*.parquet", "--out", "out", "--port", str(port), "--files", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "windloom", "serve", *given, *more, "--cores", "1", "--memory", "1g"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("serving "):
                break
        else:
            raise AssertionError(f"it did not serve: {process.communicate()}")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def stopped(process: subprocess.Popen[str]) -> tuple[str, str]:
    os.kill(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return out, err


def status(client: httpx.Client) -> dict[str, Any]:
    return dict(client.get("/api/v1/status").json())


def wait_for_round(process: subprocess.Popen[str], number: int) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().startswith(f"round {number}: ")


def test_it_stops_after_the_round_and_the_same_command_goes_on(windloom: Command, folder: Path, port: int) -> None:
    put(folder / "in", "0", ROWS[:12])
    with served(folder, port) as (process, client):
        wait_for_round(process, 0)
        found = client.get("/api/v1/queries").json()
        assert [query["name"] for query in found["queries"]] == ["high"]
        assert "unknown column 'prise'" in found["rejected"][0]["error"]["message"]
        assert client.post("/api/v1/queries", json={"name": "flow", "text": FLOW}).status_code == 201
        with client.stream("GET", "/api/v1/rounds/live") as watched:
            events = watched.iter_lines()
            assert any(line == "event: round" for line in events)  # one that watches does not hold up the end
            out, _ = stopped(process)
    assert "stopped: 1 round, 12 events → " in out
    assert "the same command goes on" in out
    assert str(folder) not in str(found)

    put(folder / "in", "1", ROWS[12:])
    with served(folder, port) as (process, client):
        wait_for_round(process, 1)
        assert status(client)["round"] == 1
        assert [query["name"] for query in client.get("/api/v1/queries").json()["queries"]] == ["high", "flow"]
        rows = client.get("/api/v1/queries/high/answers").json()["rows"]
        assert len({tuple(row) for row in rows}) == len(rows) == 9
        flow = client.get("/api/v1/queries/flow/answers?symbol=A").json()
        assert flow["columns"][2:] == ["symbol", "v"]
        assert {row[2] for row in flow["rows"]} == {"A"}
        at = ("--url", f"http://127.0.0.1:{port}")
        asked = windloom("ask", HIGH, *at, "--latest")
        assert asked.code == 0, asked.err
        assert "as of round 1, committed " in asked.out
        assert json.loads(windloom("ask", HIGH, *at, "--json").out)["columns"][2:] == ["high"]
        assert "error: unknown column 'prise'" in windloom("ask", HIGH.replace("price", "prise"), *at).err
        stopped(process)
    unheard = windloom("ask", HIGH, *at)
    assert (unheard.code, f"no service answers at 'http://127.0.0.1:{port}'" in unheard.err) == (2, True)
    assert windloom("ask", HIGH, "--url", "ftp://x").code == 2


def test_a_sink_that_stays_down_ends_the_service_and_the_same_command_goes_on(
    windloom: Command, folder: Path, port: int, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "in", "0", ROWS)
    sink = ("--sink", f"webhook={receiver.url}", "--sink-option", "webhook.give_up_after=never")
    arguments = (*command(folder), "--port", port, *sink, "--sink-patience", "3 s")
    waits = wait_for_end
    ready: list[int] = []

    def look_and_wait(handle: Handle, asked: threading.Event, view: RoundLine) -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            while status(client)["waiting"] is None:
                pass
            ready.append(client.get("/readyz").status_code)
        waits(handle, asked, view)

    receiver.behaviour = lambda _: 503
    monkeypatch.setattr("windloom.cli.serve.wait_for_end", look_and_wait)
    failed = windloom(*arguments)
    assert (failed.code, ready) == (2, [503])
    assert "… round 0 waits for the sink 'webhook' since " in failed.err
    assert "error: the sink 'webhook' has been down for 3 seconds" in failed.err
    assert "then start again with the same checkpoint: nothing is lost" in failed.err
    assert "Traceback" not in failed.err
    receiver.behaviour = lambda _: 200
    monkeypatch.setattr("windloom.cli.serve.wait_for_end", wait_for_all)
    went_on = windloom(*arguments)
    assert went_on.code == 0, went_on.err
    assert [letter["query"] for letter in receiver.letters.values()] == ["high"]


def wait_for_all(handle: Handle, asked: threading.Event, view: RoundLine) -> None:
    """In place of waiting for Ctrl-C: the service stops when all files are read."""
    handle.process_all_available()
    handle.stop()


def test_a_full_disk_ends_the_service_and_the_same_command_goes_on(
    windloom: Command, folder: Path, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = wait_for_end

    def fill_and_wait(handle: Handle, asked: threading.Event, view: RoundLine) -> None:
        ballast.append(fill(disk))
        put(folder / "in", "0", ROWS)
        waits(handle, asked, view)

    ballast: list[Path] = []
    with small_disk(tmp_path / "disk") as disk:
        arguments = [*command(folder)[:-1], disk / "out", "--port", port]
        monkeypatch.setattr("windloom.cli.serve.wait_for_end", fill_and_wait)
        failed = windloom(*arguments)
        assert failed.code == 2
        assert "Traceback" not in failed.err
        told = failed.err.partition("error: ")[2]
        assert "full" in told, failed.err
        assert "hint: make room" in told
        assert "nothing is lost" in told
        ballast[0].unlink()
        monkeypatch.setattr("windloom.cli.serve.wait_for_end", wait_for_all)
        went_on = windloom(*arguments)
        assert went_on.code == 0, went_on.err
        assert "1 round, 30 events" in went_on.out


def test_a_port_in_use_is_named(refused: Refused, folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused(*command(folder), "--port", taken.getsockname()[1])
    assert f"port {taken_port(said)} of '127.0.0.1' is in use" in said
    assert "--port" in said


def taken_port(said: str) -> str:
    return said.partition("port ")[2].partition(" ")[0]


def command(folder: Path) -> tuple[object, ...]:
    stream = f"trades={folder / 'in'}/*.parquet"
    return ("serve", folder / "desk.cql", "--stream", stream, "--out", folder / "out")


CLOSED = {
    "an address of others without tokens": (("--host", "0.0.0.0"), "no token file is given"),
    "a proxy without tokens": (("--behind-proxy",), "no token file is given"),
    "tokens in the clear": (("--host", "0.0.0.0", "--token-file", "tokens"), "tokens would travel in the clear"),
    "a token file that is not there": (("--token-file", "nowhere"), "cannot read the token file 'nowhere'"),
    "a certificate without a key": (("--tls-cert", "desk.cql"), "TLS needs a certificate and a key"),
    "a certificate that is not there": (("--tls-cert", "none", "--tls-key", "none"), "cannot read the TLS file 'none'"),
    "answers elsewhere": (("--out", "hdfs://there/out"), "not a directory of this machine"),
}


@pytest.mark.parametrize("mistake", CLOSED)
def test_what_would_leave_it_open_is_refused(
    refused: Refused, folder: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    given, words = CLOSED[mistake]
    monkeypatch.chdir(folder)
    (folder / "tokens").write_text("admin: 0123456789abcdef\n")
    assert words in refused(*command(folder), *given)


def test_a_catalog_with_errors_is_refused_where_that_is_wanted(refused: Refused, folder: Path, port: int) -> None:
    said = refused(*command(folder), "--strict", "--port", port)
    assert "unknown column 'prise'" in said
    assert "of desk.cql" in said
