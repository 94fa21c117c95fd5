"""Serves a running loom: starts all parts of the service, and stops them in the right order."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from windloom.engine.streaming import Handle
from windloom.model.stream import Stream
from windloom.service.access import Gate, Tokens
from windloom.service.app import make_app
from windloom.service.loading import Relay
from windloom.service.running import Rejected, ServedHandle
from windloom.service.server import HttpServer, Place
from windloom.service.service import Limits, Service
from windloom.service.stored import StoredAnswers


@contextmanager
def serving(
    handle: Handle,
    streams: Mapping[str, Stream],
    out: Path,
    rounds: Relay,
    place: Place,
    listening: socket.socket,
    tokens: Tokens | None,
    limits: Limits,
    rejected: Sequence[Rejected] = (),
) -> Iterator[Service]:
    """Serve a handle whose answers go to Parquet under `out`, and whose rounds come through `rounds`."""
    loom = ServedHandle(handle, streams, StoredAnswers(out), rejected)
    service = Service(loom, Gate(tokens), limits, is_local=place.is_local, is_secure=place.is_secure)
    rounds.connect(service.round_done, service.round_waits)
    server = HttpServer(make_app(service), place, listening)
    server.start()
    try:
        yield service
    finally:
        service.feed.close()  # otherwise the server would wait for watchers
        server.stop()
