"""A standalone Spark cluster of this machine: a master and workers as processes on loopback, from the pip package."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from windloom.spark.session import use_java

_HOST = "127.0.0.1"
#: Processes that live for half a minute: code is compiled once and quickly, never well.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


class UnavailableError(Exception):
    """Why no cluster can be started here."""


@contextmanager
def cluster(folder: Path, workers: int = 2, seconds: float = 60) -> Iterator[str]:
    """The URL of a master whose workers have registered; all of it is gone when the context ends."""
    port = _free_port()
    url = f"spark://{_HOST}:{port}"
    with ExitStack() as scope:
        scope.enter_context(use_java())
        master = ["org.apache.spark.deploy.master.Master", "--host", _HOST, "--port", str(port), "--webui-port", "0"]
        log = _start(scope, folder / "master", master)
        _wait_for(log, "I have been elected leader", 1, seconds)
        for number in range(workers):
            place = folder / f"worker-{number}"
            options = [
                "--host",
                _HOST,
                "--webui-port",
                "0",
                "--cores",
                "1",
                "--memory",
                "512m",
                "--work-dir",
                str(place),
            ]
            _start(scope, place, ["org.apache.spark.deploy.worker.Worker", *options, url])
        _wait_for(log, "Registering worker", workers, seconds)
        yield url


def _free_port() -> int:
    try:
        with socket.socket() as listener:
            listener.bind((_HOST, 0))
            return int(listener.getsockname()[1])
    except OSError as error:
        raise UnavailableError(f"no port of {_HOST} can be opened: {error}") from error


def _start(scope: ExitStack, place: Path, command: list[str]) -> Path:
    place.mkdir(parents=True)
    home = Path(pyspark.__file__).parent
    package = str(Path(__file__).resolve().parents[2] / "src")
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_LOCAL_DIRS": str(place),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])),
    }
    with (place / "log").open("wb") as log:
        try:
            whole = [str(home / "bin" / "spark-class"), *command]
            process = subprocess.Popen(whole, env=environment, cwd=place, stdout=log, stderr=subprocess.STDOUT)
        except OSError as error:
            raise UnavailableError(f"Spark's processes cannot be started: {error}") from error
    scope.callback(_stop, process)
    return place / "log"


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()  # a worker ends its executors with it
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(log: Path, text: str, times: int, seconds: float) -> None:
    """Until a process has said so; there is nothing else to ask."""
    until = time.monotonic() + seconds
    while log.read_text(errors="replace").count(text) < times:
        if time.monotonic() > until:
            raise UnavailableError(f"no word of '{text}': {log.read_text(errors='replace')[-500:]}")
        time.sleep(0.1)
