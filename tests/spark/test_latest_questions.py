"""Questions with `latest`, asked while rounds are committed: a history shows that no answer was older than it says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from support.files import put_round
from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windloom.engine.handle import Handle

_TEXT = "SELECT count(*) AS n, sum(v) AS s FROM t [TUMBLE 10 seconds]"
_SCHEMA = "ts timestamp, v bigint"
_FILES = 14
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def start(spark: SparkSession, folder: Path, checkpoint: Path) -> Handle:
    """A stream of files, each of which is a round that closes the window of the file before it."""
    for number in range(_FILES):
        times = [_BEGIN + timedelta(seconds=number * 10 + second) for second in range(10)]
        put_round(folder, number, [{"ts": time, "v": number} for time in times], _SCHEMA)
    source = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    loom = Loom(spark)
    loom.stream("t", source, time="ts")
    loom.query("q", _TEXT)
    return loom.start("memory", checkpoint=checkpoint, trigger={"availableNow": True}, keep="1 hour")


def test_an_answer_reflects_the_newest_round_that_was_committed(spark: SparkSession, tmp_path: Path) -> None:
    handle = start(spark, tmp_path / "in", tmp_path / "checkpoint")
    history = []
    while handle.is_active:
        before = _committed(handle)
        if before >= 0:
            answer = handle.ask(_TEXT, latest=True)
            history.append((before, answer.round, _committed(handle)))
            # Round i closes the windows of the files before its own.
            assert answer.table["s"].to_pylist() == [10 * number for number in range(answer.round)]
    handle.await_termination()
    assert history
    assert all(before <= reflected <= after for before, reflected, after in history), history
    assert [reflected for _, reflected, _ in history] == sorted(reflected for _, reflected, _ in history)


def _committed(handle: Handle) -> int:
    return handle._loop.committed.round
