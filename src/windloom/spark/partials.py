"""Native partial aggregation: every partial set of a plan in one Spark job.

With one part its columns are the job's columns. Several parts are a union: a column `part` says which, and their
columns share slots by type, so that the union is as wide as the widest part and not as all of them together.

A round also needs the largest event time of every stream, of tuples that no query wants included: sets without a
predicate carry it beside their partials, a stream that has none of these gets a part of its own, its clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.physical import PartialSet, Plan
from windloom.spark.lists import summarised
from windloom.spark.native import slice_sql, tick_sql
from windloom.spark.slots import slot_names


@dataclass(frozen=True, slots=True)
class Partials:
    """The job, not yet run. `slots[i]` names the job's columns that hold part i's columns, in order.

    Parts are the plan's sets by number, then clocks. `clocks` maps a stream to the part that tells its time, in which
    the largest tick is the last column.
    """

    frame: DataFrame
    slots: tuple[tuple[str, ...], ...]
    sets: int
    clocks: Mapping[str, int] = field(default_factory=dict)

    @property
    def set_slots(self) -> tuple[tuple[str, ...], ...]:
        """By number of the set: the columns of its partials, without that of a clock."""
        clocks = set(self.clocks.values())
        return tuple(slots[:-1] if number in clocks else slots for number, slots in enumerate(self.slots[: self.sets]))

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
        found = {
            stream: pc.max(self._part(table, part)[self.slots[part][-1]]).as_py()
            for stream, part in self.clocks.items()
        }
        return {stream: tick for stream, tick in found.items() if tick is not None}

    def _part(self, table: pa.Table, number: int) -> pa.Table:
        return table if len(self.slots) == 1 else table.filter(pc.equal(table["part"], number))


def partials_of(plan: Plan, frames: Mapping[str, DataFrame], timed_streams: Iterable[Stream] = ()) -> Partials:
    """The job for a plan; it also tells the largest tick of every one of `timed_streams`."""
    clocks: dict[str, int] = {}
    with_clocks = list(timed_streams)
    if with_clocks:
        clocks = {one.stream: one.number for one in reversed(plan.sets) if one.where is None}
    timed = set(clocks.values())
    parts = [
        _set_frame(one, plan.stream(one.stream), frames[one.stream], with_clock=one.number in timed)
        for one in plan.sets
    ]
    for stream in with_clocks:
        if stream.name not in clocks:
            clocks[stream.name] = len(parts)
            parts.append(frames[stream.name].selectExpr(f"max({tick_sql(stream)}) AS seen"))
    if len(parts) == 1:
        frame = parts[0]
        return Partials(frame.withColumn("part", F.lit(0)), (tuple(frame.columns),), len(plan.sets), clocks)
    united, slots = _unite(parts)
    return Partials(united, slots, len(plan.sets), clocks)


def _unite(parts: list[DataFrame]) -> tuple[DataFrame, tuple[tuple[str, ...], ...]]:
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


def _set_frame(one: PartialSet, stream: Stream, frame: DataFrame, *, with_clock: bool) -> DataFrame:
    """`slice`, `g0…`, then each component's fields `c0…`: one row a non-empty (slice, group); `seen` is its clock."""
    tick = tick_sql(stream)
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
    extra = [("seen", "max(tick)")] if with_clock else []
    return summarised(projected, ["slice", *groups], one.components, names, extra)
