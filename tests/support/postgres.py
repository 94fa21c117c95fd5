"""A PostgreSQL server of its own for the tests: in a temporary directory, on a free port of loopback."""

from __future__ import annotations

import copy
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Nothing here has to survive a power cut.
_SETTINGS = ("fsync=off", "full_page_writes=off", "max_connections=20", "shared_buffers=16MB")


def find_programs() -> Path | None:
    """Where Debian, or the machine, keeps `initdb` and `pg_ctl`."""
    here = shutil.which("initdb")
    if here is not None:
        return Path(here).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


class Server:
    """`stop` and `start` are a server that goes away and comes back; `crash` is one that has no time to tidy up."""

    def __init__(self, programs: Path, place: Path) -> None:
        self._programs, self._place = programs, place
        self.database = "postgres"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])

    def new_database(self, name: str) -> Server:
        """The same server, seen from a database of its own."""
        self.execute(f"CREATE DATABASE {name}")
        found = copy.copy(self)
        found.database = name
        return found

    @property
    def url(self) -> str:
        return f"postgresql://windloom@127.0.0.1:{self.port}/{self.database}"

    def create(self) -> None:
        self._run("initdb", "-D", self._data, "-U", "windloom", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")

    def start(self) -> None:
        own = [f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self._place}"]
        given = " ".join(f"-c {setting}" for setting in (*own, *_SETTINGS))
        self._run("pg_ctl", "-D", self._data, "-w", "-l", str(self._place / "log"), "-o", given, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "fast", "-w", "stop")

    def crash(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    @property
    def _data(self) -> str:
        return str(self._place / "data")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        # The server inherits what it could write to: a pipe would never end.
        with (self._place / "said").open("wb") as said:
            done = subprocess.run(command, cwd=self._place, stdout=said, stderr=said, check=False, **as_other_user())
        if done.returncode:
            raise RuntimeError(f"{program} failed: {(self._place / 'said').read_text()}")

    def rows(self, question: str, given: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.url) as connection:
            return connection.execute(question, given).fetchall()  # type: ignore[call-overload,no-any-return]

    def execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]


def as_other_user() -> dict[str, Any]:
    """PostgreSQL refuses to run as root; its package brings a user."""
    return {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}


@contextmanager
def running_server(programs: Path) -> Iterator[Server]:
    place = Path(tempfile.mkdtemp(prefix="windloom-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(place, "postgres", "postgres")
    server = Server(programs, place)
    try:
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.crash()
    finally:
        shutil.rmtree(place, ignore_errors=True)
