"""A Spark session on this machine: quiet, on loopback, in UTC."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from windloom.errors import WindloomError
from windloom.kernels.compiling.loading import load_in_background
from windloom.spark.session.archive import archive_options
from windloom.spark.session.java import use_java

_LOOPBACK = "127.0.0.1"
_LOGGING = Path(__file__).with_name("log4j2.properties")
# If a query is stopped during a batch, Spark matches its error with a recursive regular expression, which overflows
# the default stack of 1 MB (StreamExecution.isInterruptionException) and fills the terminal with the trace.
_DEEP_STACKS = "-Xss16m"


def local_session(
    cores: int | str = "*",
    memory: str | None = None,
    app: str = "windloom",
    conf: Mapping[str, str] | None = None,
    archive_to: Path | None = None,
) -> SparkSession:
    """Return the session of this process, started on `cores` cores of this machine if there is none yet.

    `memory` is the heap of the JVM that does all the work ("4g"); by default a quarter of the machine's memory, between
    1 and 8 GiB. `conf` adds Spark settings or overrides those made here. If a session is running already, it is
    returned as it is. `archive_to` is for set-up: the file into which the JVM writes its classes when it exits.
    """
    count = _core_count(cores)
    running = SparkSession.getActiveSession()
    if running is not None:
        return running  # with the settings that its owner gave it
    with use_java() as java, _environment():
        settings = _settings(count, memory or _default_memory(), archive_options(java, archive_to))
        settings.update(conf or {})
        # The JVM takes seconds to start; kernels are loaded in the meantime.
        loading = load_in_background()
        try:
            return SparkSession.builder.master(f"local[{cores}]").appName(app).config(map=settings).getOrCreate()
        except PySparkRuntimeError as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            raise WindloomError(
                "Spark did not start",
                detail=f"{java}, and it exited at once; its own message is above",
                hint=f"check the memory ({memory or _default_memory()}) and the Spark settings given",
            ) from error
        finally:
            loading.join()


def _settings(cores: int, memory: str, java_options: list[str]) -> dict[str, bool | float | int | str | None]:
    options = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", _DEEP_STACKS, *java_options]
    folder = tempfile.mkdtemp(prefix="windloom-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Set as default options, so that a caller's own spark.driver.extraJavaOptions are kept: Spark concatenates the
        # two.
        "spark.driver.defaultJavaOptions": " ".join(options),
        "spark.sql.warehouse.dir": folder,  # otherwise it appears in the working directory
        "spark.driver.memory": memory,
    }


def end_session(session: SparkSession, seconds: float) -> None:
    """Stop the session and wait for its JVM to exit, which otherwise outlives this process a little."""
    gateway: Any = session.sparkContext._gateway
    session.stop()
    process = gateway.proc
    gateway.shutdown()
    process.stdin.close()  # Spark's JVM exits when the process that started it is gone
    process.wait(timeout=seconds)


def _default_memory() -> str:
    # Spark's own default of 1 GiB is too small if one process does all the work.
    quarter = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    return f"{min(8 << 30, max(1 << 30, quarter)) >> 20}m"


def _core_count(cores: int | str) -> int:
    if cores == "*":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if str(cores).isdecimal() and int(cores) > 0:
        return int(cores)
    raise WindloomError(f"cores cannot be '{cores}'", hint="give a number of cores, or '*' for all of them")


@contextmanager
def _environment() -> Iterator[None]:
    """Set the environment variables that Spark reads at start; a caller's own values win, and nothing stays set."""
    ours = {
        "SPARK_LOCAL_IP": _LOOPBACK,  # otherwise Spark looks up the host name, and fails if it does not resolve
        "PYSPARK_PYTHON": sys.executable,  # otherwise workers run the first `python3` on the PATH
    }
    added = {name: value for name, value in ours.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
