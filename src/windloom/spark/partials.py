"""Native partial aggregation: every partial set of a plan in one Spark job.

With one part its columns are the job's columns. Several parts are a union: a column `part` says which, and their
columns share slots by type, so that the union is as wide as the widest part and not as all of them together.

A round also needs the smallest and largest event time of every stream, of tuples that no query wants included: sets
without a predicate carry it beside their partials, a stream that has none of these gets a part of its own, its clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.physical import PartialSet, Plan
from windloom.spark.native import component_sql, slice_sql, tick_sql
from windloom.spark.positions import POSITION, with_positions
from windloom.spark.slots import slot_names


@dataclass(frozen=True, slots=True)
class Partials:
    """The job, not yet run. `slots[i]` names the job's columns that hold part i's columns, in order.

    Parts are the plan's sets by number, then clocks. `clocks` maps a stream to the part that tells its time, in which
    the smallest and the largest tick are the last two columns.
    """

    frame: DataFrame
    slots: tuple[tuple[str, ...], ...]
    sets: int
    clocks: Mapping[str, int] = field(default_factory=dict)

    @property
    def set_slots(self) -> tuple[tuple[str, ...], ...]:
        """By number of the set: the columns of its partials, without those of a clock."""
        clocks = set(self.clocks.values())
        return tuple(slots[:-2] if number in clocks else slots for number, slots in enumerate(self.slots[: self.sets]))

    def group_hash(self, plan: Plan) -> str:
        """SQL that is equal for all partials of one group of one set."""
        cases = []
        for one in plan.sets:
            groups = ", ".join(self.slots[one.number][1 : 1 + len(one.group_by)])
            cases.append(f"WHEN {one.number} THEN " + (f"hash({groups})" if groups else "0"))
        return f"CASE part {' '.join(cases)} END"

    def split(self, table: pa.Table) -> dict[int, pa.Table]:
        """Each set's own partials of a table with the job's columns."""
        return {number: self._part(table, number).select(list(slots)) for number, slots in enumerate(self.set_slots)}

    def largest_ticks(self, table: pa.Table) -> dict[str, int]:
        """The largest event tick of every stream that has tuples with a time in this table."""
        return self._ticks(table, -1, pc.max)

    def smallest_ticks(self, table: pa.Table) -> dict[str, int]:
        """The smallest one."""
        return self._ticks(table, -2, pc.min)

    def _ticks(self, table: pa.Table, place: int, choose: Callable[[pa.ChunkedArray], pa.Scalar]) -> dict[str, int]:
        found = {
            stream: choose(self._part(table, part)[self.slots[part][place]]).as_py()
            for stream, part in self.clocks.items()
        }
        return {stream: tick for stream, tick in found.items() if tick is not None}

    def clock_sql(self) -> dict[str, str]:
        """Aggregates over the job's rows that tell the ticks of every stream: `first NAME` and `seen NAME`."""
        return {
            f"{name} {stream}": f"{function}(if(part = {part}, {self.slots[part][place]}, NULL))"
            for stream, part in self.clocks.items()
            for name, function, place in (("first", "min", -2), ("seen", "max", -1))
        }

    def _part(self, table: pa.Table, number: int) -> pa.Table:
        return table if len(self.slots) == 1 else table.filter(pc.equal(table["part"], number))


def told_ticks(partials: Partials, row: Mapping[str, int | None]) -> tuple[dict[str, int], dict[str, int]]:
    """The largest and the smallest tick of every stream, from a row of `clock_sql`."""
    found: list[dict[str, int]] = []
    for name in ("seen", "first"):
        ticks = {stream: row[f"{name} {stream}"] for stream in partials.clocks}
        found.append({stream: tick for stream, tick in ticks.items() if tick is not None})
    return found[0], found[1]


def partials_of(
    plan: Plan, frames: Mapping[str, DataFrame], timed_streams: Iterable[Stream] = (), *, rows_later: bool = False
) -> Partials:
    """The job for a plan; it also tells the largest tick of every one of `timed_streams`.

    With `rows_later`, sets whose tuples are counted have no partials yet: in rounds, positions need the watermark.
    """
    clocks: dict[str, int] = {}
    with_clocks = list(timed_streams)
    if with_clocks:
        clocks = {one.stream: one.number for one in reversed(plan.sets) if one.where is None and one.counted_by is None}
    timed = set(clocks.values())
    parts = [
        set_frame(
            one,
            plan.stream(one.stream),
            _sliceable(one, plan.stream(one.stream), frames[one.stream], rows_later),
            with_clock=one.number in timed,
        )
        for one in plan.sets
    ]
    for stream in with_clocks:
        if stream.name not in clocks:
            clocks[stream.name] = len(parts)
            tick = tick_sql(stream)
            parts.append(frames[stream.name].selectExpr(f"min({tick}) AS first", f"max({tick}) AS seen"))
    if len(parts) == 1:
        frame = parts[0]
        return Partials(frame.withColumn("part", F.lit(0)), (tuple(frame.columns),), len(plan.sets), clocks)
    united, slots = unite(parts)
    return Partials(united, slots, len(plan.sets), clocks)


def _sliceable(one: PartialSet, stream: Stream, frame: DataFrame, rows_later: bool) -> DataFrame:
    """A frame with what the set's slices are of: time, or positions."""
    if one.counted_by is None:
        return frame
    if rows_later:
        return frame.where("false").withColumn(POSITION, F.lit(None).cast("bigint"))
    # All tuples are counted, whether they pass or not: a window of rows is taken before WHERE.
    return with_positions(frame, stream, one.counted_by)


def unite(parts: list[DataFrame]) -> tuple[DataFrame, tuple[tuple[str, ...], ...]]:
    columns_of = [frame.dtypes for frame in parts]
    slots = tuple(slot_names(kind for _, kind in columns) for columns in columns_of)
    kinds = {
        slot: kind
        for columns, names in zip(columns_of, slots, strict=True)
        for slot, (_, kind) in zip(names, columns, strict=True)
    }
    aligned = []
    for number, (frame, columns, names) in enumerate(zip(parts, columns_of, slots, strict=True)):
        own = {slot: name for slot, (name, _) in zip(names, columns, strict=True)}
        wanted = [f"{own.get(slot, f'CAST(NULL AS {kinds[slot]})')} AS {slot}" for slot in sorted(kinds)]
        aligned.append(frame.selectExpr(f"{number} AS part", *wanted))
    return reduce(DataFrame.unionAll, aligned), slots


def check_times(plan: Plan, partials: Mapping[int, pa.Table]) -> None:
    """A tuple without a time belongs to no window and cannot be ignored either: refuse, with the count."""
    for one in plan.sets:
        table = partials.get(one.number)
        if table is None or not table[0].null_count:
            continue
        raise without_time(plan.stream(one.stream), timed(one, table)[1])


def timed(one: PartialSet, table: pa.Table) -> tuple[pa.Table, int]:
    """The partials whose slice is known, and the number of tuples in the others."""
    if not table[0].null_count:
        return table, 0
    known = pc.is_valid(table[0])
    return table.filter(known), pc.sum(table.filter(pc.invert(known))[1 + len(one.group_by)]).as_py()


def without_time(stream: Stream, tuples: int) -> WindloomError:
    return WindloomError(
        f"stream '{stream.name}' has tuples without a usable time",
        f"column '{stream.time}' ({stream.columns[stream.time]}) is NULL, unreadable or out of range"
        f" in {tuples:,} of its rows",
        f'filter them out before loom.stream(…), for example df.where("{stream.time} IS NOT NULL")',
    )


def set_frame(one: PartialSet, stream: Stream, frame: DataFrame, *, with_clock: bool = False) -> DataFrame:
    """`slice`, `g0…`, then each component's fields `c0…`: one row a non-empty (slice, group).

    `first` and `seen` are its clock.
    """
    tick = tick_sql(stream) if one.counted_by is None else POSITION
    if one.where is not None:
        # Rows without a time pass every predicate, so that they are seen and refused.
        frame = frame.where(f"({one.where.sql}) OR {tick} IS NULL")
    arguments = list(
        dict.fromkeys(planned.component.argument for planned in one.components if planned.component.argument)
    )
    names = {argument: f"x{i}" for i, argument in enumerate(arguments)}
    groups = [f"g{i}" for i in range(len(one.group_by))]
    projected = frame.selectExpr(
        f"{slice_sql(one.slice_id, tick)} AS slice",
        *(f"{expression.sql} AS {name}" for expression, name in zip(one.group_by, groups, strict=True)),
        *(f"{argument.sql} AS {name}" for argument, name in names.items()),
        *([f"{tick} AS tick"] if with_clock else []),
    )
    fields = [
        sql
        for planned in one.components
        for sql in component_sql(planned, names[planned.component.argument] if planned.component.argument else "")
    ]
    aggregates = [F.expr(f"{sql} AS c{i}") for i, sql in enumerate(fields)]
    if with_clock:
        aggregates += [F.expr("min(tick) AS first"), F.expr("max(tick) AS seen")]
    return projected.groupBy("slice", *groups).agg(*aggregates)
