"""Picks: the argument of the tuple that is first or last by another value.

Of tuples that tie, what is picked from them decides, value by value. All picks of a query that have one order and one
FILTER share a component, which keeps their values together: so they are those of one tuple.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import Parts, PlannedArgument, Refuse, filter_sql
from windloom.aggregates.columns import AnyLifted, ComponentColumns, keys_of, ranks_of
from windloom.aggregates.extrema import LOWEST_KINDS, Extrema, lift_keys, lower_keys, ordered_type
from windloom.kernels.families import LOWEST, AddInt, MaxInt
from windloom.kernels.hashing import KEY_OF_MINUS_ZERO
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import RankedPairs, keep_largest, keep_smallest, pick_rows
from windloom.model.aggregate import Aggregate, Component, Function
from windloom.model.types import Column, DataType, as_array


class Picks(Extrema):
    kinds = ("min_by", "max_by", "first", "last")
    functions = (
        Function("min_by", ("min_by",), ordered_type, arguments=2),
        Function("max_by", ("max_by",), ordered_type, arguments=2),
        # By event time.
        Function("first", ("first",), ordered_type, {"first_value": ()}, picks_nulls=True),
        Function("last", ("last",), ordered_type, {"last_value": ()}, picks_nulls=True),
    )

    by_tick = ("first", "last")

    def inputs(self, component: Component, tick: str) -> tuple[str, ...]:
        others = (other.sql for other in component.others)
        return (*super().inputs(component, tick), *others, tick if component.by is None else component.by.sql)

    def fields(self, planned: PlannedArgument) -> tuple[str, ...]:
        return ("by", *_field_names(1 + len(planned.component.others)))

    def native_sql(self, planned: PlannedArgument, inputs: Sequence[str]) -> tuple[str, ...]:
        *values, by = inputs
        picked = pick_sql(values, by, lowest=planned.component.kind in LOWEST_KINDS)
        return (f"{picked}.y", *(f"{picked}.x{i}" for i in range(len(values))))

    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        by, pairs = native[0], pick_pairs(*native)
        if by.null_count:
            known = as_array(by).is_valid()
            keys = np.zeros(len(pairs), np.int64)
            keys[np.asarray(known, dtype=np.bool_)], dictionary = ranks_of(pairs.filter(known))
        else:
            keys, dictionary = ranks_of(pairs)
        return lift_keys(keys, by, dictionary, lowest=planned.component.kind in LOWEST_KINDS)

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        assert read.by is not None
        by, value = set_tuples.tuples.column(read.by), set_tuples.argument(read)
        assert read.argument is not None
        if read.others:
            return self._weave_together(planned, set_tuples, read)
        pairs = set_tuples.tuples.pairs(read.by, read.argument, len(set_tuples.kept.cells))
        if pairs is not None:
            return self._weave_ranked(planned, set_tuples, read, pairs)
        picked = np.full(len(set_tuples.grid), -1, np.int64)
        known = np.empty(0, np.bool_) if value.valid is None else value.valid
        lowest = planned.component.kind in LOWEST_KINDS
        pick_rows(*set_tuples.where(read, read.by), by.equal_keys, known, value.keys, lowest, picked)
        rows = set_tuples.taken(picked)
        places = pa.array(rows, mask=rows < 0)
        return self.lift(planned, [by.column.take(places), value.column.take(places)])

    def _weave_together(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        """Weave several values of one tuple; only those of tuples that tie in their cell are compared."""
        assert read.by is not None
        assert read.argument is not None
        tuples, lowest = set_tuples.tuples, planned.component.kind in LOWEST_KINDS
        by, columns = tuples.column(read.by), [tuples.column(place) for place in (read.argument, *read.others)]
        cells, rows, every = set_tuples.where(read, read.by)
        best = np.full(len(set_tuples.grid), LOWEST)
        (keep_smallest if lowest else keep_largest)(cells, rows, every, by.equal_keys, best)
        tied = np.arange(len(tuples)) if every else rows.astype(np.int64)
        keys = by.equal_keys[tied]
        tied = tied[(~keys if lowest else keys) == best[cells[tied]]].astype(np.int32)
        values = (column.column.take(pa.array(tied)) for column in columns)
        ranks = np.zeros(len(tuples), np.int64)
        ranks[tied], _ = ranks_of(pick_pairs(pa.nulls(len(tied), pa.bool_()), *values))
        picked = np.full(len(set_tuples.grid), -1, np.int64)
        pick_rows(cells, tied, False, by.equal_keys, np.empty(0, np.bool_), ranks, lowest, picked)
        taken = set_tuples.taken(picked)
        places = pa.array(taken, mask=taken < 0)
        return self.lift(planned, [column.column.take(places) for column in (by, *columns)])

    def _weave_ranked(
        self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput, pairs: RankedPairs
    ) -> AnyLifted:
        """Weave from the ranks of all pairs, without sorting."""
        assert read.by is not None
        lowest = planned.component.kind in LOWEST_KINDS
        largest = np.full(len(set_tuples.grid), LOWEST)
        update = keep_smallest if lowest else keep_largest
        update(*set_tuples.where(read, read.by), pairs.ranks, largest)
        keys = set_tuples.taken(largest)
        has_value = keys != LOWEST
        ranks = np.where(has_value, ~keys if lowest else keys, 0)
        used = np.zeros(len(pairs.rows) + 1, np.bool_)  # one more, because there may be no pairs
        used[ranks[has_value]] = True
        new_ranks = (np.cumsum(used) - 1)[ranks]
        rows = pa.array(pairs.rows[used[:-1]])
        by, value = set_tuples.tuples.column(read.by).column, set_tuples.argument(read).column
        kept_keys = MaxInt(np.where(has_value, ~new_ranks if lowest else new_ranks, LOWEST))
        valid = None if has_value.all() else AddInt(has_value.astype(np.int64))
        return ComponentColumns((kept_keys,), valid, pick_pairs(by.take(rows), value.take(rows)))

    def truth_sql(self, aggregate: Aggregate, tick: str) -> str:
        assert aggregate.argument is not None
        by = tick if aggregate.by is None else aggregate.by.sql
        values = aggregate.picked or (aggregate.argument,)
        picked = pick_sql([each.sql for each in values], by, lowest=aggregate.function in LOWEST_KINDS)
        return f"({picked}{filter_sql(aggregate)}).x{values.index(aggregate.argument)}"

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        assert aggregate.argument is not None
        values = aggregate.picked or (aggregate.argument,)
        field = _field_names(len(values))[values.index(aggregate.argument)]
        lowest = aggregate.function in LOWEST_KINDS
        return lower_keys(combined[0], aggregate.result_type(argument), lowest=lowest, field=field)


def _field_names(count: int) -> list[str]:
    """Return the names of the fields that hold what is picked from a tuple."""
    return ["value", *(f"value{i}" for i in range(1, count))]


def pick_pairs(by: Column, *values: Column) -> pa.StructArray:
    """Return structs (by, value …); `by` is kept as a key if it has one, with one key for 0.0 and -0.0."""
    keys, ranked = keys_of(by)
    if pa.types.is_floating(by.type):
        keys[keys == KEY_OF_MINUS_ZERO] = 0
    # Spark writes the zone of the session, which may differ when a stream is started again.
    utc = pa.timestamp("us", tz="UTC")
    has_zone = [pa.types.is_timestamp(value.type) and value.type.tz is not None for value in values]
    plain = [as_array(value.cast(utc) if zoned else value) for value, zoned in zip(values, has_zone, strict=True)]
    kept = pa.array(keys) if ranked is None else as_array(by)
    return pa.StructArray.from_arrays([kept, *plain], names=["by", *_field_names(len(plain))])


def pick_sql(values: Sequence[str], by: str, *, lowest: bool) -> str:
    """Return the struct (y: `by`, x0: a value, …) of the tuple with the lowest or highest `by`; values decide ties.

    Spark's own `max_by` leaves ties to the order in which it meets the tuples.
    """
    fields = "".join(f", 'x{i}', {value}" for i, value in enumerate(values))
    return f"{'min' if lowest else 'max'}(CASE WHEN {by} IS NOT NULL THEN named_struct('y', {by}{fields}) END)"
