"""A running loom without Spark: plans and errors are real, rows are made up."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.trades import STREAM, WINDOW
from windloom.engine import Loom
from windloom.engine.handle import Change
from windloom.engine.progress import RoundProgress
from windloom.engine.questions import Answer
from windloom.engine.results import unknown_query
from windloom.engine.what_if import WhatIf
from windloom.errors import WindloomError
from windloom.model import Stream
from windloom.service.service import UnregisteredQuery, plan_costs, plan_json, plan_picture, query_text
from windloom.sinks.delivery import SinkWait

FLOW = f"SELECT symbol, sum(volume) AS v {WINDOW} GROUP BY symbol"
HIGH = "SELECT max(price) AS high FROM trades [RANGE 1 minute SLIDE 20 seconds]"
AVERAGE = "SELECT symbol, avg(price) AS p FROM trades [RANGE 2 minutes SLIDE 10 seconds] GROUP BY symbol"
_MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)


def made_round(number: int, **others: Any) -> RoundProgress:
    done = RoundProgress(
        round=number,
        batch=number,
        events=1_000 + number,
        late_partly=2,
        late_dropped=1,
        untimed=0,
        partials=40,
        results=12,
        watermark="2026-01-05T00:01:00+00:00",
        lag=3.5,
        seconds={"partials": 0.2, "log": 0.01, "step": 0.02, "answers": 0.03, "commit": 0.01},
        state_bytes=4_096,
        queries=2,
        trees=2,
        plan_version=0,
        late={"trades": {"partly": 2, "dropped": 1}},
        frontiers={"trades": "2026-01-05T00:01:00+00:00"},
        lags={"trades": 3.5},
        tuples={"trades": 1_010 + number},
        cells={"trades": 40},
        sinks={"parquet": {"seconds": 0.02}, "webhook": {"seconds": 0.01, "letters": 1, "dead_letters": 0}},
    )
    return replace(done, **others)


def _no_spark() -> Any:
    raise AssertionError("no Spark is needed here")


class FakeLoom:
    """Serves `flow` and `high` over trades; as many rows of each as are asked for."""

    def __init__(self, rejected: Sequence[UnregisteredQuery] = ()) -> None:
        self._texts = {"flow": FLOW, "high": HIGH}
        self.rejected = rejected
        self.is_active, self.failure = True, None
        self.removed: dict[str, str] = {}
        self.waiting: SinkWait | None = None
        self.rounds: list[RoundProgress] = [made_round(0), made_round(1)]

    def _loom(self) -> Loom:
        loom = Loom(_no_spark)
        with tempfile.TemporaryDirectory() as place:
            catalog = Path(place) / "fake.cql"
            catalog.write_text(STREAM)
            loom.load(catalog)
        for name, text in self._texts.items():
            loom.query(name, text)
        return loom

    @property
    def streams(self) -> Mapping[str, Stream]:
        return self._loom().streams

    @property
    def queries(self) -> Mapping[str, str]:
        return dict(self._texts)

    def add(self, name: str, text: str) -> Change:
        if name in self._texts:
            raise WindloomError(f"query '{name}' is already registered", "", "give it another name")
        self._loom().query(name, text)
        self._texts[name] = text
        return Change(name, 2, "2026-01-05T00:02:00+00:00")

    def replace(self, name: str, text: str) -> Change:
        self._loom().query(f"{name}?", text)
        self._texts[name] = text
        return Change(name, 2, None)

    def remove(self, name: str) -> Change:
        if name not in self._texts:
            raise unknown_query(name, list(self._texts))
        if len(self._texts) == 1:
            raise WindloomError("the last query of a running loom cannot be removed", "", "add another first")
        self.removed[name] = self._texts.pop(name)
        return Change(name, 2)

    def what_if(self, text: str) -> WhatIf:
        return replace(self._loom().what_if(text), complete_from="2026-01-05T00:02:00+00:00")

    def ask(self, text: str, *, latest: bool = False) -> Answer:
        self._loom().query("ask", text)
        return Answer(self._rows(3), "2026-01-05T00:01:00+00:00", None)

    def explain(self, query: str) -> str:
        return query_text(self._loom().plan(), query)

    def plan(self) -> Mapping[str, Any]:
        return plan_json(self._loom().plan())

    def picture(self) -> str:
        return plan_picture(self._loom().plan())

    def costs(self) -> Mapping[str, Any]:
        return plan_costs(self._loom().plan())

    def groupings(self) -> Mapping[str, Sequence[str]]:
        return {name: [grouping.name for grouping in query.group_by] for name, query in self._loom().queries.items()}

    def grouping(self, name: str) -> Sequence[str]:
        return self.groupings().get(name, ["symbol"])

    def answers(
        self,
        name: str,
        since: str | None,
        until: str | None,
        limit: int,
        most_files: int | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> pa.Table:
        return self._rows(min(limit, 30))

    def _rows(self, count: int) -> pa.Table:
        starts = [_MIDNIGHT + timedelta(seconds=10 * i) for i in range(count)]
        kind = pa.timestamp("us", tz="UTC")
        return pa.table(
            {
                "window_start": pa.array(starts, kind),
                "window_end": pa.array([start + timedelta(seconds=30) for start in starts], kind),
                "symbol": pa.array(["AB"[i % 2] for i in range(count)]),
                "v": pa.array([100 + i for i in range(count)], pa.int64()),
            }
        )
