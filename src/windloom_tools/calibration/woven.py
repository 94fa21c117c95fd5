"""Measures the time of weaving: per column that a tuple is folded into, per list, and per cell that is made."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windloom.model import (
    Aggregate,
    DataType,
    Expression,
    ExpressionKey,
    Grouping,
    Output,
    Query,
    Stream,
    TimeWindow,
    WindowedStream,
)
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost.seconds import columns_of
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan
from windloom.state.cells import Cells
from windloom.weave.weave import read_tuples, weave
from windloom_tools.calibration.fit import Fit, fit
from windloom_tools.calibration.kernels import Tell

_COLUMNS = {"ts": "bigint", "k": "bigint", "b": "bigint", "n": "int", "x": "double"}
_FEW, _MANY = ("count n",), ("sum n", "sum x", "min x", "max x", "var_pop x")


@dataclass(frozen=True, slots=True)
class Weaving:
    """Sets of tumbling windows of this many seconds, with this many groups, or without groups."""

    groups: int
    seconds: int
    aggregates: tuple[str, ...]


CASES = (
    Weaving(1, 10, _FEW),
    Weaving(1, 10, _MANY),
    Weaving(1000, 10, _FEW),
    Weaving(1000, 10, _MANY),
    Weaving(5000, 1, _FEW),
    Weaving(5000, 1, _MANY),
    Weaving(1000, 60, ("count_distinct b",)),
    Weaving(1, 60, ("count_distinct b",)),
)


def measure_weaving(quick: bool, tell: Tell) -> Fit:
    tuples = 200_000 if quick else 1_000_000
    terms, least = [], [np.inf] * len(CASES)
    cases = []
    for weaving in CASES:
        plan = _plan(weaving)
        (scan,) = plan.scans
        assert isinstance(scan, WovenScan)
        cases.append((plan, scan, _tuples(weaving, scan, tuples)))
    for number in range((2 if quick else 5) + 1):
        for i, (plan, scan, table) in enumerate(cases):
            tell(f"weaving {i + 1} of {len(cases)}")
            begun = time.process_time()
            cells = weave(plan, scan, read_tuples(plan, scan, table))
            # Measured as if all cores were available.
            took = (time.process_time() - begun) / (os.cpu_count() or 1)
            if number:  # the first pass compiles
                least[i] = min(least[i], took)
            else:
                terms.append(terms_of(plan, tuples, cells))
    return fit(terms, least)


def terms_of(plan: Plan, tuples: int, cells: dict[int, Cells]) -> dict[str, float]:
    found = {"woven_update": 0.0, "woven_list": 0.0, "woven_cell": 0.0}
    for partial_set in plan.sets:
        lists = sum(planned.family.is_list for planned in partial_set.components)
        found["woven_update"] += tuples * columns_of(tuple(p for p in partial_set.components if not p.family.is_list))
        found["woven_list"] += tuples * lists
        found["woven_cell"] += len(cells[partial_set.number]) * columns_of(partial_set.components)
    return found


def _plan(weaving: Weaving) -> Plan:
    columns = {name: DataType.parse(kind) for name, kind in _COLUMNS.items()}
    stream = Stream("s", columns, "ts", time_unit="us", events_per_second=1000.0)
    pairs = [aggregate.split() for aggregate in weaving.aggregates]
    made = tuple(Aggregate(name, Expression.of_column(column)) for name, column in pairs)
    outputs = tuple(Output(f"a{i}", i) for i in range(len(made)))
    grouping = (Grouping("k", Expression.of_column("k")),) if weaving.groups > 1 else ()
    length = weaving.seconds * TICKS_PER_SECOND
    query = Query("q", WindowedStream("s", TimeWindow(length, length)), None, grouping, made, outputs, None, "")
    types = {ExpressionKey("s", name): kind for name, kind in columns.items()}
    return make_plan({"s": stream}, [query], types, PlanOptions(intake="woven"), PlanningFacts())


def _tuples(weaving: Weaving, scan: WovenScan, count: int) -> pa.Table:
    """A thousand tuples per second, of random groups and values."""
    rng = np.random.default_rng(7)
    values = {
        "k": pa.array(rng.integers(0, weaving.groups, count)),
        "b": pa.array(rng.integers(0, 5000, count)),
        "n": pa.array(rng.integers(0, 1000, count).astype(np.int32)),
        "x": pa.array(np.round(rng.lognormal(4, 1, count), 2)),
    }
    ticks = np.arange(count, dtype=np.int64) * (TICKS_PER_SECOND // 1000)
    columns = {f"x{i}": values[column.sql] for i, column in enumerate(scan.columns)}
    return pa.table({"tick": ticks, **columns})
