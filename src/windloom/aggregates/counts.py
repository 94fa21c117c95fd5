"""Counts: the number of tuples, or of values that are not NULL."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windloom.aggregates.aggregator import NativeAggregator, Parts, PlannedArgument, Refuse, filter_sql
from windloom.aggregates.columns import AnyLifted, ComponentColumns
from windloom.kernels.families import ADD_INT, AddInt
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.model.aggregate import COUNT_STAR, Aggregate, Function
from windloom.model.types import BIGINT, Column, DataType, TypeKind, as_integers


class CountAggregator(NativeAggregator):
    kinds = (COUNT_STAR.kind, "count")
    combined_by = ADD_INT
    counts_values = False
    functions = (Function("count", ("count",), lambda aggregate, argument: BIGINT),)

    def native_sql(self, planned: PlannedArgument, inputs: Sequence[str]) -> tuple[str, ...]:
        return (f"count({inputs[0] if inputs else '1'})",)

    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        return ComponentColumns((AddInt(as_integers(native[0])),))

    def woven_sql(self, argument: str, kind: DataType | None) -> str:
        """Return the argument; if only Spark knows its type, TRUE for every value instead."""
        is_known = kind is not None and kind.kind is not TypeKind.OTHER
        return argument if is_known else f"if(({argument}) IS NULL, NULL, TRUE)"

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        return ComponentColumns((AddInt(set_tuples.kept_counts(read, read.argument)),))

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        return pa.array(combined[0].limbs[0].value)

    def truth_sql(self, aggregate: Aggregate, tick: str) -> str:
        return f"count({aggregate.arguments or '1'}){filter_sql(aggregate)}"
