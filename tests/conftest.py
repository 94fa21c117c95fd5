"""Fixtures for every test: one Spark session, and the recorded data sets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from support.cells import check_all_cells
from support.drawing import examples
from support.postgres import Server, find_programs, running_server
from support.receiver import Receiver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Plans must not depend on what the machine, or the user who runs the tests, has measured; commands inherit it.
os.environ["WINDLOOM_COSTS"] = str(Path(__file__).parent / "support" / "costs.json")
# JVMs of tests run most of their code once or twice: compiled quickly it takes half the time of compiled well. With
# room for all of that code (by default 48 MB, a tenth of the tests), none of it is thrown away and compiled again, and
# a heap that begins large is seldom cleared. Spark gives these options to every JVM that is started here, those of
# commands included.
_COMPILING = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=400m"
_MEMORY = "-XX:+UseSerialGC -XX:MetaspaceSize=256m -XX:InitialRAMPercentage=6"
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{_COMPILING} {_MEMORY}")

# Whatever makes cells in a test makes them in the shape that all readers of cells rely on.
check_all_cells()

# For tests that do not say how many examples they draw.
settings.register_profile("suite", max_examples=examples(100))
settings.load_profile("suite")

_MARKER_OF_FIXTURE = {"spark": "spark", "shared_data": "data"}
#: Tests with a session that run in the other process: what takes long, so that both end at about the same time.
_ELSEWHERE = (
    "spark/test_kill.py",
    "spark/test_cluster.py",
    "spark/test_connect.py",
    "spark/test_store.py",
    "spark/test_lateness.py",
    "spark/test_user_aggregates.py",
    "equivalence/test_rows.py",
    "equivalence/test_relations.py",
)


@pytest.hookimpl(tryfirst=True)  # before pytest's own hook, which selects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, marker in _MARKER_OF_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where tests run in two processes (`make test`), which of them stay together in one.

    Those of a file do. And most of those with a session, so that what one of them has compiled is there for the next;
    the other process has the rest, and the tests without Spark.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            folder = path.split("/")[1] if "/" in path else ""
            if folder == "interface" or path.endswith(_ELSEWHERE):
                return "second session"
            return "first session" if folder in ("equivalence", "spark") else path

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session for the whole run: starting one takes seconds."""
    from windloom.spark.session import local_session

    # Hundreds of queries are alike from test to test; by default, Spark keeps the code of a hundred.
    conf = {"spark.sql.codegen.cache.maxEntries": "2000"}
    session = local_session(cores=2, app="windloom-tests", conf=conf)
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


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, if the machine has the programs; each test uses a schema of its own."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with running_server(programs) as server:
        yield server


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An HTTP server that takes letters."""
    with Receiver().running() as running:
        yield running
