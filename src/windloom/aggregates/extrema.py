"""Extrema: the lowest and the highest value in Spark's order, kept as 64-bit keys in the same order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.aggregator import NativeAggregator, Parts, PlannedArgument, Refuse
from windloom.aggregates.columns import (
    AnyLifted,
    ComponentColumns,
    WindowValues,
    keys_of,
    valid_in,
    valid_of,
    without_unused,
)
from windloom.errors import WindloomError
from windloom.kernels.families import LOWEST, MAX_INT, MaxInt
from windloom.kernels.hashing import float_values
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import keep_largest, keep_smallest
from windloom.model.aggregate import Aggregate, Function
from windloom.model.types import Column, DataType, TypeKind, arrow_type, with_nulls

#: The kinds that keep the lowest value, or the tuple with it.
LOWEST_KINDS = ("min", "min_by", "first")


def ordered_type(aggregate: Aggregate, argument: DataType) -> DataType:
    """Return the type of the argument, whose values must have an order."""
    aggregate.check_order(aggregate.argument, argument)
    return argument


def _boolean(aggregate: Aggregate, argument: DataType) -> DataType:
    if argument.kind is not TypeKind.BOOLEAN:
        raise WindloomError(
            f"cannot take '{aggregate}'",
            f"'{aggregate.argument}' is of type {argument}, which is not a boolean",
            f"compare it with something, for example {aggregate.function}({aggregate.argument} IS NOT NULL)",
        )
    return argument


class Extrema(NativeAggregator):
    kinds: tuple[str, ...] = ("min", "max")
    combined_by = MAX_INT
    functions = (
        Function("min", ("min",), ordered_type),
        Function("max", ("max",), ordered_type),
        Function("bool_and", ("min",), _boolean, {"every": ()}),
        Function("bool_or", ("max",), _boolean, {"some": (), "any": ()}),
    )

    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        keys, dictionary = keys_of(native[0])
        return lift_keys(keys, native[0], dictionary, lowest=planned.component.kind == "min")

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        column, valid = set_tuples.argument(read), valid_in(set_tuples, read)
        largest = np.full(len(set_tuples.grid), LOWEST)
        update = keep_smallest if planned.component.kind == "min" else keep_largest
        update(*set_tuples.where(read, read.argument), column.keys, largest)
        keys = MaxInt(set_tuples.taken(largest))
        if not column.is_ranked:
            return ComponentColumns((keys,), valid)
        return without_unused(ComponentColumns((keys,), valid, column.ranked.dictionary))

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        lowest = aggregate.components[0].kind in LOWEST_KINDS
        return lower_keys(combined[0], aggregate.result_type(argument), lowest=lowest)


def lift_keys(keys: NDArray[np.int64], known: Column, dictionary: pa.Array | None, *, lowest: bool) -> ComponentColumns:
    """Return cells of keys where `known` is not NULL; reversed for the lowest, since the family keeps the highest."""
    keys, valid = ~keys if lowest else keys, valid_of(known)
    if valid is not None:
        keys[valid.value == 0] = LOWEST
    return ComponentColumns((MaxInt(keys),), valid, dictionary)


def lower_keys(combined: WindowValues, kind: DataType, *, lowest: bool, field: str = "value") -> pa.Array:
    """Return the values that keys stand for; if these are the ranks of tuples, a field of each."""
    keys = ~combined.limbs[0].value if lowest else combined.limbs[0].value
    if combined.dictionary is not None:
        values = combined.dictionary
        if pa.types.is_struct(values.type):
            values = values.field(field)
        return values.take(with_nulls(keys, combined.valid)).cast(arrow_type(kind))
    if combined.valid is not None and not combined.valid.any():
        return pa.nulls(len(keys), arrow_type(kind))
    if kind.kind is TypeKind.FLOAT:
        return with_nulls(float_values(keys), combined.valid).cast(arrow_type(kind), safe=False)
    if combined.valid is not None:
        keys = np.where(combined.valid, keys, 0)
    if kind.kind is TypeKind.DATE:
        return with_nulls(keys.astype(np.int32), combined.valid).cast(pa.date32())
    if kind.kind is TypeKind.BOOLEAN:
        return with_nulls(keys.astype(np.bool_), combined.valid)
    return with_nulls(keys, combined.valid).cast(arrow_type(kind))
