"""A stream on Spark whose rate and groups leap: plans follow, rows are those of a batch run, and users can see why."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ElementTree
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.files import follow, put
from support.trades import ROWS, trades
from windloom import Loom
from windloom.errors import WindloomError
from windloom.optimizer.adapt.worker import ImmediateWorker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW = "FROM trades [RANGE 40 seconds SLIDE 20 seconds]"
QUERIES = {
    "by": f"SELECT symbol, sum(volume) AS v, max(price) AS p {WINDOW} GROUP BY symbol",
    "large": f"SELECT symbol, count(*) AS n {WINDOW} WHERE volume > 500 GROUP BY symbol",
}
MIDNIGHT = ROWS[0][0]


def rounds() -> list[list[tuple[Any, ...]]]:
    """Rounds of 20 seconds: few trades of two symbols, then many of many, then few again."""
    draw, found = random.Random(3), []
    for number in range(9):
        many = 3 <= number < 6
        found.append(
            sorted(
                (
                    MIDNIGHT + timedelta(seconds=20 * number, microseconds=draw.randrange(20_000_000)),
                    f"S{draw.randrange(900 if many else 2)}",
                    float(draw.randrange(1000)),
                    draw.randrange(1000),
                )
                for _ in range(3000 if many else 30)
            )
        )
    return found


def loom_of(frame: DataFrame) -> Loom:
    loom = Loom(frame.sparkSession)
    loom.stream("trades", frame, time="ts")
    for name, text in QUERIES.items():
        loom.query(name, text)
    return loom


def in_order(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("adapt", [True, {"parts": 6, "dimensions": 2}])
def test_plans_follow_a_stream_and_explain_tells_how(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adapt: bool | dict[str, object]
) -> None:
    monkeypatch.setattr("windloom.engine.start.BackgroundWorker", ImmediateWorker)
    monkeypatch.setattr("windloom.optimizer.adapt.replan.pays", lambda now, then, *_, **__: then.seconds < now.seconds)
    every = rounds()
    for number, rows in enumerate(every):
        put(tmp_path / "in", f"{number:03d}", rows)
    loom = loom_of(follow(spark, tmp_path / "in"))
    places: dict[str, Any] = {"path": tmp_path / "out", "checkpoint": tmp_path / "c"}
    handle = loom.start(**places, trigger={"availableNow": True}, finish=True, adapt=adapt)
    assert handle.await_termination(240)
    last = handle.recent_progress[-1]
    assert (last.moves > 0) is (adapt is not True)
    assert last.switches > 0
    assert len({progress.plan_version for progress in handle.recent_progress}) > 1
    assert last.predicted is not None
    whole = loom_of(trades(spark, [row for rows in every for row in rows])).run(placement="driver")
    for name in QUERIES:
        assert in_order(handle.arrow(name)) == in_order(whole.arrow(name))

    text = handle.explain()
    assert re.search(r"Adapting: plans for latency; \d+ moves?, \d+ switch", text)
    for word in (
        "fidelity",
        "predicted",
        "learned",
        "candidates",
        "best",
        "runner-up",
    ):
        assert word in text
    # Of the two dimensions that it may have, a chart has those that costs depend on where the stream is now.
    assert re.search(r"Plans of trades\n" if adapt is True else r"Chart of trades: 6( × 6)? regions", text)
    (chart,) = json.loads(handle.chart("json"))
    assert len(chart["regions"]) in ((10, 100) if adapt is True else (6, 36))
    assert chart["plans"][chart["present"]]
    ElementTree.fromstring(handle.chart("svg"))
    with pytest.raises(WindloomError, match="unknown format 'png'"):
        handle.chart("png")

    looking = loom_of(trades(spark))
    looking.learn(tmp_path / "c")
    assert "path          10 rounds" in looking.chart(parts=4)
    fixed = loom.start("memory", checkpoint=tmp_path / "other", trigger={"availableNow": True}, adapt=False)
    assert fixed.await_termination(240)
    assert {(progress.switches, progress.predicted) for progress in fixed.recent_progress} == {(0, None)}
    with pytest.raises(WindloomError, match="this stream has no charts"):
        fixed.chart()
