"""Picks: the argument of the tuple that is first or last by another value; the argument decides ties."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import PlannedArgument, filter_sql
from windloom.aggregates.columns import AnyLifted, ComponentColumns, keys_of, ranks_of
from windloom.aggregates.extrema import LOWEST_KINDS, Extrema, lift_keys, ordered_type
from windloom.kernels.families import LOWEST, AddInt, MaxInt
from windloom.kernels.hashing import KEY_OF_MINUS_ZERO
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import RankedPairs, keep_largest, keep_smallest, pick_rows
from windloom.model.aggregate import Aggregate, Component, Function
from windloom.model.types import Column, as_array


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
        return (*super().inputs(component, tick), tick if component.by is None else component.by.sql)

    def fields(self, planned: PlannedArgument) -> tuple[str, ...]:
        return ("by", "value")

    def native_sql(self, planned: PlannedArgument, inputs: Sequence[str]) -> tuple[str, ...]:
        picked = pick_sql(inputs[0], inputs[1], lowest=planned.component.kind in LOWEST_KINDS)
        return (f"{picked}.y", f"{picked}.x")

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
        picked = pick_sql(aggregate.argument.sql, by, lowest=aggregate.function in LOWEST_KINDS)
        return f"({picked}{filter_sql(aggregate)}).x"


def pick_pairs(by: Column, value: Column) -> pa.StructArray:
    """Return pairs (by, value); `by` is kept as a key if it has one, with one key for 0.0 and -0.0."""
    keys, ranked = keys_of(by)
    if pa.types.is_floating(by.type):
        keys[keys == KEY_OF_MINUS_ZERO] = 0
    if pa.types.is_timestamp(value.type) and value.type.tz is not None:
        # Spark writes the zone of the session, which may differ when a stream is started again.
        value = value.cast(pa.timestamp("us", tz="UTC"))
    kept = pa.array(keys) if ranked is None else as_array(by)
    return pa.StructArray.from_arrays([kept, as_array(value)], names=["by", "value"])


def pick_sql(argument: str, by: str, *, lowest: bool) -> str:
    """Return the struct (y: `by`, x: `argument`) of the tuple with the lowest or highest `by`; `argument` decides ties.

    Spark's own `max_by` leaves ties to the order in which it meets the tuples.
    """
    return f"{'min' if lowest else 'max'}(CASE WHEN {by} IS NOT NULL THEN named_struct('y', {by}, 'x', {argument}) END)"
