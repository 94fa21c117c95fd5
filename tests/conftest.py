"""Fixtures for every test: one Spark session, and the recorded data sets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Plans must not depend on what the machine, or the user who runs the tests, has measured; commands inherit it.
os.environ["WINDLOOM_COSTS"] = str(Path(__file__).parent / "support" / "costs.json")
# JVMs of tests run most of their code once or twice: compiled quickly it takes half the time of compiled well. Spark
# gives these options to every JVM that is started here, those of commands included.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

_MARKER_OF_FIXTURE = {"spark": "spark", "shared_data": "data"}
#: Folders and modules of the second group: see below.
_SECOND = {"interface", "test_kill.py", "test_cluster.py"}


@pytest.hookimpl(tryfirst=True)  # before pytest's own hook, which selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, marker in _MARKER_OF_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
        # Where tests run in two processes (`make test`), a group stays in one, so that each has one session; the
        # second has less to do with it, and the tests without Spark besides.
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("second" if _SECOND.intersection(item.path.parts) else "first"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session for the whole run: starting one takes seconds."""
    from windloom.spark.session import local_session

    session = local_session(cores=2, app="windloom-tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The recorded data sets, which live beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("WINDLOOM_DATA") or beside)
    if not path.is_dir():
        pytest.skip(f"no data sets at {path} (set WINDLOOM_DATA to their folder)")
    return path
