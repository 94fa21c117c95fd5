"""What Spark does to positions in a round, in plain Python, for tests of windows of rows without a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from support.catalogs import COLUMNS
from support.native import tuples_table
from windloom.model.time import TICK_MIN
from windloom.model.types import arrow_type
from windloom.plan.plan import Plan
from windloom.state.positions import PositionCounts, Positions, counted_scans, counting_of
from windloom.state.state import State
from windloom.weave.round_input import ScanResult, take_together, take_tuples
from windloom_tools.oracle.answers import positions

Row = dict[str, Any]

SCHEMA = pa.schema([(name, arrow_type(kind)) for name, kind in COLUMNS.items()])


def full(row: Row) -> Row:
    """The row with all columns of the stream, in their order."""
    return {name: row.get(name) for name in COLUMNS}


def take_rows(
    plan: Plan, rows: Mapping[str, Sequence[Row]], state: State, frontiers: Mapping[str, int]
) -> tuple[ScanResult, Positions]:
    """Cells of the sets that count tuples, and where positions are after a round that leaves these frontiers."""
    before = state.positions
    parts, counts, waiting = [], {}, {}
    for scan in counted_scans(plan):
        fresh = rows.get(scan.stream, ())
        closed, frontier = (ticks.get(scan.stream, TICK_MIN) for ticks in (state.frontiers, frontiers))
        waited = before.waiting[scan.stream].to_pylist() if scan.stream in before.waiting else []
        source = waited + [full(row) for row in fresh if row["tick"] >= closed]
        told = before.counts_of(scan)
        ripe = [row for row in source if told.after < row["tick"] < frontier]
        window = next(plan.sets[scan.feeds[0].number].queries).query.window
        own = {id(row): _count(told, [row[str(key.column)] for key in (window.counted_by or ())]) for row in ripe}
        place = positions(window, ripe)
        placed = [{**row, "position": own[id(row)] + place[id(row)]} for row in ripe]
        parts.append(take_tuples(plan, scan, tuples_table(plan, scan, placed)))
        counts[counting_of(scan)] = told.plus(_counted((window.counted_by or ()), ripe))
        waiting[scan.stream] = pa.Table.from_pylist([row for row in source if row["tick"] >= frontier], SCHEMA)
    return take_together(parts) if parts else ScanResult(), Positions(waiting, counts)


def _count(told: PositionCounts, key: list[Any]) -> int:
    if told.table is None:
        return 0
    rows = (list(row.values()) for row in told.table.to_pylist())
    return next((row[-1] for row in rows if list(map(repr, row[:-1])) == list(map(repr, key))), 0)


def _counted(keys: Sequence[Any], ripe: Sequence[Row]) -> pa.Table:
    names = [str(key.column) for key in keys]
    found: dict[tuple[str, ...], list[Any]] = {} if keys else {(): [0]}
    for row in ripe:
        values = [row[name] for name in names]
        found.setdefault(tuple(map(repr, values)), [*values, 0])[-1] += 1
    columns = [pa.array([row[i] for row in found.values()], SCHEMA.field(name).type) for i, name in enumerate(names)]
    counts = pa.array([row[-1] for row in found.values()], pa.int64())
    return pa.Table.from_arrays([*columns, counts], names=[*(f"k{i}" for i in range(len(names))), "count"])


def watermark_of(rows: Sequence[Row], delay: int) -> int:
    return max([row["tick"] for row in rows], default=TICK_MIN + delay) - delay
