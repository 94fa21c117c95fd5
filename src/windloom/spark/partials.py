"""Native partial aggregation: every partial set of a plan in one Spark job.

With one set its columns are the job's columns. Several sets are a union: a column `part` says which, and their columns
share slots by type, so that the union is as wide as the widest set and not as all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.physical import PartialSet, Plan
from windloom.spark.native import component_sql, slice_sql, tick_sql
from windloom.spark.slots import slot_names


@dataclass(frozen=True, slots=True)
class Partials:
    """The job, not yet run. `slots[i]` names the job's columns that hold set i's columns, in order."""

    frame: DataFrame
    slots: tuple[tuple[str, ...], ...]

    def group_hash(self, plan: Plan) -> str:
        """SQL that is equal for all partials of one group of one set."""
        cases = []
        for one in plan.sets:
            groups = ", ".join(self.slots[one.number][1 : 1 + len(one.group_by)])
            cases.append(f"WHEN {one.number} THEN " + (f"hash({groups})" if groups else "0"))
        return f"CASE part {' '.join(cases)} END"

    def split(self, table: pa.Table) -> dict[int, pa.Table]:
        """Each set's own partials of a table with the job's columns."""
        if len(self.slots) == 1:
            return {0: table.select(list(self.slots[0]))}
        found = {}
        for number, slots in enumerate(self.slots):
            rows = table.filter(pc.equal(table["part"], number))
            found[number] = rows.select(list(slots))
        return found


def partials_of(plan: Plan, frames: Mapping[str, DataFrame]) -> Partials:
    sets = [(one, _set_frame(one, plan.stream(one.stream), frames[one.stream])) for one in plan.sets]
    if len(sets) == 1:
        frame = sets[0][1]
        return Partials(frame.withColumn("part", F.lit(0)), (tuple(frame.columns),))
    slots = [slot_names(kind for _, kind in frame.dtypes) for _, frame in sets]
    kinds = {
        slot: kind
        for (_, frame), names in zip(sets, slots, strict=True)
        for slot, (_, kind) in zip(names, frame.dtypes, strict=True)
    }
    aligned = []
    for (one, frame), names in zip(sets, slots, strict=True):
        own = dict(zip(names, frame.columns, strict=True))
        columns = [f"{own.get(slot, f'CAST(NULL AS {kinds[slot]})')} AS {slot}" for slot in sorted(kinds)]
        aligned.append(frame.selectExpr(f"{one.number} AS part", *columns))
    return Partials(reduce(DataFrame.unionAll, aligned), tuple(slots))


def check_times(plan: Plan, partials: Mapping[int, pa.Table]) -> None:
    """A tuple without a time belongs to no window and cannot be ignored either: refuse, with the count."""
    for one in plan.sets:
        table = partials.get(one.number)
        if table is None or not table[0].null_count:
            continue
        tuples = pc.sum(table.filter(pc.is_null(table[0]))[1 + len(one.group_by)]).as_py()
        stream = plan.stream(one.stream)
        raise WindloomError(
            f"stream '{one.stream}' has tuples without a usable time",
            f"column '{stream.time}' ({stream.columns[stream.time]}) is NULL, unreadable or out of range"
            f" in {tuples:,} of its rows",
            f'filter them out before loom.stream(…), for example df.where("{stream.time} IS NOT NULL")',
        )


def _set_frame(one: PartialSet, stream: Stream, frame: DataFrame) -> DataFrame:
    """`slice`, `g0…`, then each component's fields `c0…`: one row a non-empty (slice, group)."""
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
    )
    fields = [
        sql
        for planned in one.components
        for sql in component_sql(planned, names[planned.component.argument] if planned.component.argument else "")
    ]
    aggregates = [F.expr(f"{sql} AS c{i}") for i, sql in enumerate(fields)]
    return projected.groupBy("slice", *groups).agg(*aggregates)
