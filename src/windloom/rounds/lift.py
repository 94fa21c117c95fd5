"""Lifting: native columns of partials, as Spark hands them over, become columns the kernels combine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.kernels.families import LOWEST, AddFloat, AddInt, Columns, MaxInt, Moments
from windloom.kernels.merge import merge_runs
from windloom.model.aggregate import ComponentKind, Family
from windloom.model.types import TypeKind
from windloom.plan.physical import PlannedComponent
from windloom.rounds.groups import as_array
from windloom.rounds.listed import Listed, lift_lists, no_lists

#: Top limb of a slice whose decimal sum passed 38 digits: no sum of real limbs brings it back into range.
OVERFLOWED_LIMB = 1 << 52

#: Entries below which a dictionary is not worth making anew.
SMALL_DICTIONARY = 64

#: The one key of doubles that does not differ from its neighbour's in Spark's order: see `float_keys`.
_KEY_OF_MINUS_ZERO = -1

#: A column as Spark's table holds it, in chunks, or a plain array.
Column: TypeAlias = "pa.ChunkedArray | pa.Array"
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Lifted:
    """One component over many cells.

    `parts` are combined independently: an exact wide sum is several columns of 32-bit limbs. `valid` counts values
    that were not NULL where there was any NULL; None says there was none. `dictionary` turns the keys of MIN and MAX
    back into values where the keys are ranks: of strings and decimals, or of pairs (what was looked at, value).
    """

    parts: tuple[Columns, ...]
    valid: AddInt | None = None
    dictionary: pa.Array | None = None

    @property
    def nbytes(self) -> int:
        columns = [column for part in self.parts for column in part]
        columns += [] if self.valid is None else [self.valid.value]
        held = 0 if self.dictionary is None else self.dictionary.nbytes
        return int(held + sum(column.nbytes for column in columns))

    def map_parts(self, change: Any) -> Lifted:
        return replace(
            self,
            parts=tuple(change(part) for part in self.parts),
            valid=None if self.valid is None else change(self.valid),
        )


#: What a component of either sort is over many cells.
AnyLifted = Lifted | Listed


def lift(planned: PlannedComponent, native: list[Column]) -> AnyLifted:
    """`native` holds the component's fields in order."""
    kind = planned.component.kind
    if planned.family.is_list:
        return lift_lists(planned, native)
    if kind in (ComponentKind.COUNT_STAR, ComponentKind.COUNT):
        return Lifted((AddInt(as_integers(native[0])),))
    if kind is ComponentKind.MOMENTS:
        count = _floats(native[0])
        # Spark's variance of a slice and its count give the squared deviations back; NULL where nothing was counted.
        return Lifted((Moments(count, _floats(native[1]), _floats(native[2]) * count),))
    valid = _valid(native[0])
    if planned.family is Family.MAX_INT:
        keys, dictionary = _pick_keys(native[0], native[1]) if kind.is_pick else _keys(native[0])
        keys = ~keys if kind.is_lowest else keys
        if valid is not None:
            keys[valid.value == 0] = LOWEST
        return Lifted((MaxInt(keys),), valid, dictionary)
    if len(native) == 2 and planned.argument_type is not None and planned.argument_type.kind is TypeKind.FLOAT:
        return Lifted((AddFloat(_floats(native[0]), _floats(native[1])),), valid)
    if pa.types.is_decimal(native[0].type):
        limbs = _limbs(native[0])
        if len(native) == 2:
            # Values but no sum: the slice itself overflowed, and so must every window that holds it.
            overflowed = (as_integers(native[1]) > 0) & np.asarray(native[0].is_null(), dtype=np.bool_)
            limbs[3][overflowed] = OVERFLOWED_LIMB
            valid = AddInt((as_integers(native[1]) > 0).astype(np.int64))
        return Lifted(tuple(AddInt(limb) for limb in limbs), valid)
    return Lifted(tuple(AddInt(as_integers(column)) for column in native), valid)


def concat(left: AnyLifted, right: AnyLifted) -> AnyLifted:
    """The cells of `left`, then those of `right`."""
    if isinstance(left, Listed):
        assert isinstance(right, Listed)
        return left.concat(right)
    assert isinstance(right, Lifted)
    if left.dictionary is not None and right.dictionary is not None and not left.dictionary.equals(right.dictionary):
        left, right = _one_dictionary(left, right)
    valid = None
    if left.valid is not None or right.valid is not None:
        valid = AddInt(np.concatenate([_valid_or_ones(left), _valid_or_ones(right)]))
    parts = tuple(
        type(a)(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))
        for a, b in zip(left.parts, right.parts, strict=True)
    )
    # Neutral cells alone have no values, and so no dictionary yet.
    return Lifted(parts, valid, right.dictionary if left.dictionary is None else left.dictionary)


def neutral(planned: PlannedComponent, count: int) -> AnyLifted:
    """Cells that add nothing: a component over slices from before it was kept."""
    if planned.family.is_list:
        return no_lists(planned, count)
    kind, argument = planned.component.kind, planned.argument_type
    if kind in (ComponentKind.COUNT_STAR, ComponentKind.COUNT):
        return Lifted((AddInt(np.zeros(count, np.int64)),))
    if kind is ComponentKind.MOMENTS:
        return Lifted((Moments(*(np.zeros(count) for _ in Moments._fields)),))
    valid = AddInt(np.zeros(count, np.int64))
    if planned.family is Family.MAX_INT:
        return Lifted((MaxInt(np.full(count, LOWEST)),), valid)
    if argument is not None and argument.kind is TypeKind.FLOAT:
        return Lifted((AddFloat(np.zeros(count), np.zeros(count)),), valid)
    limbs = 4 if argument is not None and argument.kind is TypeKind.DECIMAL else len(planned.fields)
    return Lifted(tuple(AddInt(np.zeros(count, np.int64)) for _ in range(limbs)), valid)


def masked(planned: PlannedComponent, lifted: AnyLifted, mask: NDArray[np.bool_]) -> Lifted:
    """The same cells, where the mask does not hold with nothing in them."""
    nothing = neutral(planned, len(mask))
    assert isinstance(lifted, Lifted), "lists are filtered natively"
    assert isinstance(nothing, Lifted)
    parts = tuple(
        type(part)(*(np.where(mask, column, empty) for column, empty in zip(part, none, strict=True)))
        for part, none in zip(lifted.parts, nothing.parts, strict=True)
    )
    valid = None if nothing.valid is None else AddInt(np.where(mask, _valid_or_ones(lifted), nothing.valid.value))
    return replace(lifted, parts=parts, valid=valid)


def keep(lifted: AnyLifted, wanted: NDArray[np.bool_]) -> AnyLifted:
    """Only the wanted cells; values that none of them holds are forgotten once they are most."""
    if isinstance(lifted, Listed):
        return lifted.keep(wanted).without_unused()
    return without_unused(lifted.map_parts(lambda part: type(part)(*(column[wanted] for column in part))))


def without_unused(lifted: Lifted) -> Lifted:
    """The same cells, with a dictionary of the values they hold once most of it is of cells that are gone."""
    if lifted.dictionary is None or len(lifted.dictionary) <= 2 * len(lifted.parts[0][0]) + SMALL_DICTIONARY:
        return lifted
    keys = lifted.parts[0].value  # type: ignore[union-attr]
    held = keys[keys != LOWEST]
    used = np.unique(np.where(held < 0, ~held, held))
    place = np.zeros(len(lifted.dictionary), np.int64)
    place[used] = np.arange(len(used))
    return _ranked(lifted, place, lifted.dictionary.take(pa.array(used)))


def merge(lifted: AnyLifted, order: NDArray[np.int64], runs: NDArray[np.int64]) -> AnyLifted:
    """One cell for each run of cells in `order`."""
    if isinstance(lifted, Listed):
        return lifted.merge(order, runs)

    def merged(part: Columns) -> Columns:
        out = type(part)(*(np.empty(len(runs) - 1, column.dtype) for column in part))
        merge_runs(part, order, runs, out)
        return out

    return lifted.map_parts(merged)


def as_integers(column: Column) -> NDArray[np.int64]:
    return _as_numpy(column, np.int64)


def _floats(column: Column) -> NDArray[np.float64]:
    return _as_numpy(column, np.float64)


def _as_numpy(column: Column, kind: type[Number]) -> NDArray[Number]:
    """Values with NULL as 0, in memory of our own: Arrow's is read-only, for which Numba compiles kernels anew."""
    filled = pc.fill_null(column, 0) if column.null_count else column
    values = filled.to_numpy() if isinstance(filled, pa.ChunkedArray) else filled.to_numpy(zero_copy_only=False)
    return np.require(values, dtype=kind, requirements=["C", "W"])


def _valid(column: Column) -> AddInt | None:
    if not column.null_count:
        return None
    return AddInt(np.asarray(column.is_valid(), dtype=np.int64))


def _valid_or_ones(lifted: Lifted) -> NDArray[np.int64]:
    valid: NDArray[np.int64] = (
        np.ones(len(lifted.parts[0][0]), np.int64) if lifted.valid is None else lifted.valid.value
    )
    return valid


def _keys(column: Column) -> tuple[NDArray[np.int64], pa.Array | None]:
    """64-bit keys in the order of the values, NaN above everything as in Spark; ranks where values do not fit."""
    kind = column.type
    if pa.types.is_floating(kind):
        return float_keys(_floats(column)), None
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return as_integers(column.cast(pa.int64())), None
    if pa.types.is_date32(kind):
        return as_integers(column.cast(pa.int32())), None
    if pa.types.is_timestamp(kind):
        return as_integers(column.cast(pa.int64())), None
    return _ranks(as_array(column))


def _ranks(values: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The place of each value among the distinct ones, and these in order."""
    if pa.types.is_struct(values.type):
        return _pair_ranks(values)
    encoded = values.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    codes = as_integers(encoded.indices)
    keys = rank[codes] if len(rank) else np.zeros(len(codes), np.int64)
    return keys, encoded.dictionary.take(order)


def _pick_keys(by: Column, value: Column) -> tuple[NDArray[np.int64], pa.Array]:
    """Ranks of the pairs (by, value); what is looked at is kept as a key where it has one, 0.0 and -0.0 as one."""
    keys, ranked = _keys(by)
    if pa.types.is_floating(by.type):
        keys[keys == _KEY_OF_MINUS_ZERO] = 0
    if pa.types.is_timestamp(value.type) and value.type.tz is not None:
        # Spark writes the session's zone, which need not be the same when a stream is started again.
        value = value.cast(pa.timestamp("us", tz="UTC"))
    pairs = pa.StructArray.from_arrays(
        [pa.array(keys) if ranked is None else as_array(by), as_array(value)], names=["by", "value"]
    )
    if not by.null_count:
        return _ranks(pairs)
    known = as_array(by).is_valid()
    ranks = np.zeros(len(pairs), np.int64)
    ranks[np.asarray(known, dtype=np.bool_)], dictionary = _ranks(pairs.filter(known))
    return ranks, dictionary


def _pair_ranks(pairs: pa.StructArray) -> tuple[NDArray[np.int64], pa.Array]:
    """In Spark's order of structs: the second decides where the first is equal, NULL is lowest."""
    (first, _), (second, _) = _keys(pairs.field(0)), _keys(pairs.field(1))
    known = np.asarray(pairs.field(1).is_valid(), dtype=np.bool_)
    second[~known] = 0
    order = np.lexsort((second, known, first))
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = np.any([np.diff(one[order]) != 0 for one in (first, known, second)], axis=0)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(is_new) - 1
    return ranks, pairs.take(pa.array(order[is_new]))


def float_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Doubles as integers of the same order.

    >>> float_keys(np.array([-1.5, -0.0, 0.0, 2.0, np.inf, np.nan])).argsort().tolist()
    [0, 1, 2, 3, 4, 5]
    """
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def float_values(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """The inverse of `float_keys` (the mapping is its own inverse on bits)."""
    return (keys ^ ((keys >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)


def _limbs(column: Column) -> list[NDArray[np.int64]]:
    """A decimal's unscaled value as four limbs of 32 bits, the highest signed: limbs add up without carrying."""
    filled = as_array(pc.fill_null(column, 0) if column.null_count else column)
    wide = filled.cast(pa.decimal128(38, column.type.scale))
    words = np.frombuffer(wide.buffers()[1], dtype="<u4")[4 * wide.offset : 4 * (wide.offset + len(wide))]
    quads = words.reshape(-1, 4)
    low = [quads[:, i].astype(np.int64) for i in range(3)]
    return [*low, quads[:, 3].copy().view(np.int32).astype(np.int64)]


def _one_dictionary(left: Lifted, right: Lifted) -> tuple[Lifted, Lifted]:
    """Rank both sides in the union of their values."""
    assert left.dictionary is not None
    assert right.dictionary is not None
    place, union = _ranks(pa.concat_arrays([left.dictionary, right.dictionary]))
    of_left = len(left.dictionary)
    return _ranked(left, place[:of_left], union), _ranked(right, place[of_left:], union)


def _ranked(lifted: Lifted, place: NDArray[np.int64], dictionary: pa.Array) -> Lifted:
    """Ranks in another sorted dictionary, in which `place` is the rank of each entry of the old one."""
    keys = lifted.parts[0].value.copy()  # type: ignore[union-attr]
    ranks = keys != LOWEST
    # MIN keeps ranks reversed (~rank), so all its keys are negative.
    backwards = ranks & (keys < 0)
    forwards = ranks & (keys >= 0)
    keys[backwards] = ~place[~keys[backwards]]
    keys[forwards] = place[keys[forwards]]
    return replace(lifted, parts=(MaxInt(keys),), dictionary=dictionary)
