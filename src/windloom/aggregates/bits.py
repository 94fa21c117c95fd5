"""Bits: AND, OR and exclusive OR of whole numbers, bit by bit. AND is kept as the OR of the bits that are not set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from windloom.aggregates.aggregator import NativeAggregator, Parts, PlannedArgument, Refuse
from windloom.aggregates.columns import AnyLifted, ComponentColumns, valid_in, valid_of
from windloom.errors import WindloomError
from windloom.kernels.families import Family, declare
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import fold_values
from windloom.model.aggregate import Aggregate, Function, Property
from windloom.model.types import Column, DataType, TypeKind, as_integers, with_nulls


class BitOr(NamedTuple):
    value: Any


class BitXor(NamedTuple):
    value: Any


_BOTH = Property.ASSOCIATIVE | Property.COMMUTATIVE

BIT_OR = declare(
    Family("bit_or", BitOr, (np.int64,), _BOTH, "block_decomposition", costs_like="max_int"),
    lambda left, right: BitOr(left.value | right.value),
    (0,),
    ships=True,
)
#: Combining a number a second time removes it.
BIT_XOR = declare(
    Family("bit_xor", BitXor, (np.int64,), _BOTH | Property.INVERTIBLE, "prefix_ring", costs_like="add_int"),
    lambda left, right: BitXor(left.value ^ right.value),
    (0,),
    remove=lambda left, right: BitXor(left.value ^ right.value),
    ships=True,
)


def _whole(aggregate: Aggregate, argument: DataType) -> DataType:
    if argument.kind is not TypeKind.INTEGER:
        raise WindloomError(
            f"cannot take '{aggregate}'",
            f"'{aggregate.argument}' is of type {argument}, which is not a whole number",
            f"cast it: {aggregate.function}(cast({aggregate.argument} AS bigint))",
        )
    return argument


class Bits(NativeAggregator):
    kinds = ("bit_and", "bit_or", "bit_xor")
    functions = tuple(Function(kind, (kind,), _whole) for kind in kinds)

    def family(self, planned: PlannedArgument) -> Family:
        return BIT_XOR if planned.component.kind == "bit_xor" else BIT_OR

    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        bits, valid = as_integers(native[0]), valid_of(native[0])
        if planned.component.kind == "bit_and":
            bits = ~bits
            if valid is not None:
                bits[valid.value == 0] = 0
        return ComponentColumns((self.family(planned).of(bits),), valid)

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        family, bits = self.family(planned), set_tuples.argument(read).integers
        values = family.of(~bits if planned.component.kind == "bit_and" else bits)
        out = family.of(set_tuples.zeros(np.int64))
        fold_values(*set_tuples.where(read, read.argument), values, out)
        return ComponentColumns((family.of(set_tuples.taken(out.value)),), valid_in(set_tuples, read))

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        bits = combined[0].limbs[0].value
        return with_nulls(~bits if aggregate.function == "bit_and" else bits, combined[0].valid)
