"""The `windloom` command, called in this process: its session is the one of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.command import Command, Outcome
from support.trades import catalog, csv_text
from windloom.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def windloom(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Runs a command on the session of the tests, whose settings are put back afterwards."""
    before = spark.conf.getAll

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Outcome(int(left.value.code or 0), written.out, written.err)

    yield run
    for name, value in before.items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)


@pytest.fixture
def refused(windloom: Command, tmp_path: Path) -> Callable[..., str]:
    """Runs a command that must fail as user errors do: exit code 2, a message with a hint, and nothing else."""

    def run(*arguments: object) -> str:
        before = sorted(tmp_path.rglob("*"))
        outcome = windloom(*arguments)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        said = [line for line in outcome.err.splitlines() if not line.startswith("… ")]
        assert said[0].startswith("error: "), outcome.err
        assert any(line.startswith("hint: ") for line in said), outcome.err
        assert "Traceback" not in outcome.err
        assert "\tat " not in outcome.err, "a stack of the JVM"
        assert sorted(tmp_path.rglob("*")) == before, "something was written"
        return "\n".join(said)

    return run


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with a catalog and its data."""
    text = catalog(
        flow="SELECT symbol, sum(volume) AS volume, count(*) AS n … GROUP BY symbol",
        high="SELECT max(price) AS high FROM trades [RANGE 1 minute SLIDE 20 seconds]",
        busy="SELECT symbol, avg(price) AS average … GROUP BY symbol HAVING count(*) > 1",
    )
    (tmp_path / "desk.cql").write_text(text, encoding="utf-8")
    (tmp_path / "trades.csv").write_text(csv_text(), encoding="utf-8")
    return tmp_path
