"""Exact sums of integers and decimals, in pieces that cannot overflow unnoticed.

64-bit integers are summed in halves of 32 bits; decimals in four limbs of 32 bits. Decimals whose sum may exceed
Spark's 38 digits come with the count of their values, which distinguishes an overflow from a slice without values.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.aggregates.aggregator import NativeAggregator, Parts, PlannedArgument, Refuse, size_sql
from windloom.aggregates.columns import AnyLifted, ComponentColumns, WindowValues, valid_in, valid_of
from windloom.kernels.families import ADD_INT, AddInt
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples
from windloom.kernels.tuples.updates import sum_halves, sum_limbs, sum_values
from windloom.model.aggregate import Aggregate, Function
from windloom.model.types import BIGINT, DOUBLE, Column, DataType, TypeKind, as_array, as_integers, with_nulls

#: Spark gives the sum of decimals with up to this many digits ten more, which no number of tuples in a slice fills.
SAFE_DECIMAL_DIGITS = 28

#: The top limb of a slice whose decimal sum exceeded 38 digits: no sum of real limbs brings it back into range.
OVERFLOWED_LIMB = 1 << 52

_LIMBS = 4

#: The functions whose answer is a sum, and not a mean.
SUMS = ("sum", "try_sum")


def summed_type(aggregate: Aggregate, argument: DataType) -> DataType:
    """Return Spark's type of SUM and AVG for all numbers; decimals gain digits, up to 38."""
    aggregate.check_number(argument)
    is_sum = aggregate.function in SUMS
    if argument.kind is not TypeKind.DECIMAL:
        return BIGINT if is_sum and argument.kind is TypeKind.INTEGER else DOUBLE
    extra_digits, extra_scale = (10, 0) if is_sum else (4, 4)
    precision, scale = min(38, argument.precision + extra_digits), min(38, argument.scale + extra_scale)
    return DataType.parse(f"decimal({precision},{scale})")


class WholeSums(NativeAggregator):
    kinds = ("sum",)
    combined_by = ADD_INT
    functions = (
        Function("sum", ("sum",), summed_type),
        Function("avg", ("sum", "count"), summed_type, {"mean": ()}),
        # NULL instead of an error, if the answer does not fit its type.
        Function("try_sum", ("sum",), summed_type),
        Function("try_avg", ("sum", "count"), summed_type),
    )

    def keeps(self, planned: PlannedArgument) -> bool:
        return not _is_of(planned, TypeKind.FLOAT)

    def limbs(self, planned: PlannedArgument) -> int:
        return _LIMBS if _is_of(planned, TypeKind.DECIMAL) else len(self.fields(planned))

    def fields(self, planned: PlannedArgument) -> tuple[str, ...]:
        argument = planned.argument_type
        if argument is None:
            return ("value",)
        if argument.kind is TypeKind.DECIMAL:
            return ("value", "count") if argument.precision > SAFE_DECIMAL_DIGITS else ("value",)
        return ("high", "low") if argument.kind is TypeKind.INTEGER and argument.bits == 64 else ("value",)

    def native_sql(self, planned: PlannedArgument, inputs: Sequence[str]) -> tuple[str, ...]:
        argument = inputs[0]
        if len(self.fields(planned)) == 1:
            return (f"sum({argument})",)
        if _is_of(planned, TypeKind.DECIMAL):
            return (f"try_sum({argument})", f"count({argument})")
        return (f"sum(shiftright({argument}, 32))", f"sum({argument} & 4294967295L)")

    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        valid = valid_of(native[0])
        if not pa.types.is_decimal(native[0].type):
            return ComponentColumns(tuple(AddInt(as_integers(column)) for column in native), valid)
        limbs = _limbs(native[0])
        if len(native) == 2:
            # Values but no sum: the slice itself overflowed, so every window that holds it must also overflow.
            overflowed = (as_integers(native[1]) > 0) & np.asarray(native[0].is_null(), dtype=np.bool_)
            limbs[3][overflowed] = OVERFLOWED_LIMB
            valid = AddInt((as_integers(native[1]) > 0).astype(np.int64))
        return ComponentColumns(tuple(AddInt(limb) for limb in limbs), valid)

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        where, column = set_tuples.where(read, read.argument), set_tuples.argument(read)
        valid, count = valid_in(set_tuples, read), self.limbs(planned)
        if count == 2 and 0 <= column.span[0] <= column.span[1] < 1 << 32:
            low = set_tuples.zeros(np.int64)
            sum_values(*where, column.integers, low)
            high = np.zeros(len(set_tuples.kept.cells), np.int64)
            return ComponentColumns((AddInt(high), AddInt(set_tuples.taken(low))), valid)
        parts = [set_tuples.zeros(np.int64) for _ in range(count)]
        match count:
            case 1:
                sum_values(*where, column.integers, *parts)
            case 2:
                sum_halves(*where, column.integers, *parts)
            case _:
                sum_limbs(*where, column.limbs, *parts)
        return ComponentColumns(tuple(AddInt(set_tuples.taken(part)) for part in parts), valid)

    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        kind = aggregate.result_type(argument)
        scale = argument.scale if argument is not None else 0
        beyond: list[int] = []
        if aggregate.function.startswith("try_"):
            refuse = lambda row, value: beyond.append(row)  # noqa: E731 - one line says it
        if aggregate.function in SUMS:
            answers = _sum(combined[0], kind, refuse)
        else:
            answers = _average(combined[0], combined[1].limbs[0].value, kind, scale, refuse)
        if not beyond:
            return answers
        fits = np.ones(len(answers), np.bool_)
        fits[beyond] = False
        return pc.if_else(pa.array(fits), answers, None)

    def scale_sql(self, aggregate: Aggregate) -> str:
        return f"{aggregate.function}({size_sql(aggregate)})"


def _is_of(planned: PlannedArgument, kind: TypeKind) -> bool:
    return planned.argument_type is not None and planned.argument_type.kind is kind


def _limbs(column: Column) -> list[NDArray[np.int64]]:
    """Return unscaled decimals as four limbs of 32 bits, the highest signed, to be added without carrying."""
    filled = as_array(pc.fill_null(column, 0) if column.null_count else column)
    wide = filled.cast(pa.decimal128(38, column.type.scale))
    words = np.frombuffer(wide.buffers()[1], dtype="<u4")[4 * wide.offset : 4 * (wide.offset + len(wide))]
    quads = words.reshape(-1, 4)
    low = [quads[:, i].astype(np.int64) for i in range(3)]
    return [*low, quads[:, 3].copy().view(np.int32).astype(np.int64)]


def _sum(summed: WindowValues, kind: DataType, refuse: Refuse) -> pa.Array:
    if kind.kind is TypeKind.DECIMAL:
        words = _carried([limb.value for limb in summed.limbs], kind, refuse)
        return _decimal_array(words, kind, summed.valid)
    if len(summed.limbs) == 1:
        return with_nulls(summed.limbs[0].value, summed.valid)
    high, low = summed.limbs[0].value, summed.limbs[1].value
    head = high + (low >> 32)
    beyond = np.flatnonzero((head < -(2**31)) | (head >= 2**31))
    for row in beyond:
        refuse(int(row), str((int(head[row]) << 32) + (int(low[row]) & 0xFFFFFFFF)))
    return with_nulls((head << 32) | (low & 0xFFFFFFFF), summed.valid)


def _average(summed: WindowValues, count: NDArray[np.int64], kind: DataType, scale: int, refuse: Refuse) -> pa.Array:
    if kind.kind is TypeKind.DECIMAL:
        return _decimal_average(summed, count, kind, scale, refuse)
    parts = summed.limbs
    if len(parts) == 2:
        # Carry first: halves of opposite sign would cancel in floats.
        total = (parts[0].value + (parts[1].value >> 32)) * float(2**32) + (parts[1].value & 0xFFFFFFFF)
    else:
        total = parts[0].value.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return with_nulls(total / count, summed.valid)


def _carried(limbs: list[NDArray[np.int64]], kind: DataType, refuse: Refuse) -> NDArray[np.uint32]:
    """Return four summed limbs as the words of a 128-bit integer; refuses what the type's precision cannot hold."""
    words = np.empty((len(limbs[0]), 4), np.uint32)
    carry = np.zeros(len(limbs[0]), np.int64)
    for i in range(4):
        total = limbs[i] + carry
        words[:, i] = (total & 0xFFFFFFFF).astype(np.uint32)
        carry = total >> 32
    # The carry out of the top limb is its sign when the value fits 128 bits; the magnitude decides the rest.
    rough = limbs[3] * 2.0**96 + limbs[2] * 2.0**64 + limbs[1] * 2.0**32 + limbs[0]
    for row in np.flatnonzero(np.abs(rough) >= 10.0**kind.precision * (1 - 1e-9)):
        exact = sum(int(limb[row]) << (32 * i) for i, limb in enumerate(limbs))
        if abs(exact) >= 2**127:
            refuse(int(row), "a sum of more than 38 digits")  # one slice is enough: see OVERFLOWED_LIMB
        if abs(exact) >= 10**kind.precision:
            refuse(int(row), str(Decimal(exact).scaleb(-kind.scale)))
    return words


def _decimal_array(words: NDArray[np.uint32], kind: DataType, valid: NDArray[np.bool_] | None) -> pa.Array:
    bitmap, nulls = None, 0
    if valid is not None:
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
        nulls = int(np.count_nonzero(~valid))
    return pa.Array.from_buffers(
        pa.decimal128(kind.precision, kind.scale), len(words), [bitmap, pa.py_buffer(words.tobytes())], nulls
    )


def _decimal_average(
    summed: WindowValues, count: NDArray[np.int64], kind: DataType, scale: int, refuse: Refuse
) -> pa.Array:
    """Return sum divided by count, rounded half up like Spark; exact, in Python integers (wide decimals are rare)."""
    limbs = [limb.value.astype(object) for limb in summed.limbs]
    total = limbs[0] + (limbs[1] << 32) + (limbs[2] << 64) + (limbs[3] << 96)
    # The sum has the scale of the argument; AVG has four digits more unless that would exceed 38.
    scaled = abs(total) * 10 ** (kind.scale - scale)
    whole = count.astype(object)
    whole[count == 0] = 1
    rounded = (2 * scaled + whole) // (2 * whole)
    too_large = np.flatnonzero(rounded >= 10**kind.precision)
    for row in too_large:
        refuse(int(row), str(Decimal(int(rounded[row])).scaleb(-kind.scale)))
    signed = np.where(total < 0, -rounded, rounded)
    words = np.empty((len(signed), 4), np.uint32)
    for i in range(4):
        words[:, i] = ((signed >> (32 * i)) & 0xFFFFFFFF).astype(np.uint32)
    return _decimal_array(words, kind, summed.valid)
