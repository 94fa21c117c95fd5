"""A projected column over the tuples of a block: its numbers, ordered keys and codes, each computed once, on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled
from windloom.kernels.hashing import KEY_OF_MINUS_ZERO, float_keys
from windloom.kernels.tuples.slices import moved
from windloom.model.arrays import Codes, Ints, Mask

# Properties that are made when first asked for, once per object, however many threads ask.
#
# `functools.cached_property` either holds one lock for all objects of a class, so that columns wait for one another
# (Python 3.11), or none at all, so that two threads make the same thing twice (later versions).

Made = TypeVar("Made")


class ComputedOnce(Protocol):
    """An object with such properties: it has its own lock, which one property may hold while it asks for another."""

    lock: RLock


class once(Generic[Made]):  # noqa: N801 - a decorator
    """A property that is made under the lock of its object, and kept there."""

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    def __get__(self, shared: ComputedOnce, owner: type[Any] | None = None) -> Made:
        values = shared.__dict__
        if self._name not in values:
            with shared.lock:
                if self._name not in values:
                    values[self._name] = self._make(shared)
        value: Made = values[self._name]
        return value


Number = TypeVar("Number", bound=np.generic)

#: Integers that span at most this many values, or twice the number of tuples, become codes by subtraction.
SMALL_SPAN = 1 << 16
MOST_SPAN = 1 << 24


@dataclass(frozen=True, slots=True)
class CodedColumn:
    """A number for the value of every tuple, and the values by number; NULL is a value like any other."""

    codes: Codes
    dictionary: pa.Array


@dataclass(frozen=True, slots=True)
class RankedValues:
    """The rank of every tuple's value among the distinct values, and these in order.

    Tuples without a value have no rank.
    """

    ranks: Codes
    dictionary: pa.Array


class Column:
    """One column of a block. Tuples without a value have an undefined number, key or rank.

    A column with a dictionary has one for all its chunks.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._source = column
        self.comes_coded = bool(pa.types.is_dictionary(column.type))  # whether the column came with a dictionary
        self.type = _plain(column.type.value_type if self.comes_coded else column.type)
        self.lock = RLock()

    def __len__(self) -> int:
        return len(self._source)

    @once
    def column(self) -> pa.ChunkedArray:
        return self._source if self._source.type == self.type else self._source.cast(self.type)

    @once
    def valid(self) -> Mask | None:
        """A mask of the tuples that have a value; None if all of them do."""
        if not self._source.null_count:
            return None
        return np.concatenate([chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in self.column.chunks])

    @once
    def floats(self) -> NDArray[np.float64]:
        """Numbers as doubles."""
        if pa.types.is_floating(self.type) or pa.types.is_integer(self.type):
            return _filled(self.column, _WIDTHS[self.type], np.float64)
        filled = pc.fill_null(self.column, 0) if self.column.null_count else self.column
        return _filled(filled.cast(pa.float64()), np.float64, np.float64)

    @once
    def integers(self) -> Ints:
        """Integers, days, microseconds and booleans as 64-bit integers."""
        if pa.types.is_boolean(self.type):
            filled = pc.fill_null(self.column, False) if self.column.null_count else self.column
            return _filled(filled.cast(pa.int8()), np.int8, np.int64)
        return _filled(self.column, _WIDTHS.get(self.type, np.int64), np.int64)

    @once
    def span(self) -> tuple[int, int]:
        """The smallest and the largest of `integers`, undefined ones included; (0, 0) if there are none."""
        low, high = _span(self.integers) if len(self) else (0, 0)
        return int(low), int(high)

    @once
    def limbs(self) -> NDArray[np.uint32]:
        """Decimals as four words of 32 bits each, the lowest first; the highest is signed."""
        out = np.empty((len(self), 4), np.uint32)
        begin = 0
        for chunk in self.column.chunks:
            if len(chunk):
                wide = chunk if chunk.type.bit_width == 128 else chunk.cast(pa.decimal128(38, chunk.type.scale))
                words = np.frombuffer(wide.buffers()[1], "<u4")[4 * wide.offset : 4 * (wide.offset + len(wide))]
                out[begin : begin + len(wide)] = words.reshape(-1, 4)
            begin += len(chunk)
        return out

    @once
    def is_ranked(self) -> bool:
        """Whether values have no 64-bit key: then ranks are used instead, and `ranked.dictionary` holds the values."""
        kind = self.type
        fits = pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind)
        return not (fits or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))

    @once
    def keys(self) -> Ints:
        """64-bit keys in Spark's order of the values, with NaN above everything."""
        if pa.types.is_floating(self.type):
            return float_keys(self.floats)
        return self.ranked.ranks.astype(np.int64) if self.is_ranked else self.integers

    @once
    def equal_keys(self) -> Ints:
        """The keys, with one key for 0.0 and -0.0."""
        keys = self.keys
        if pa.types.is_floating(self.type) and (keys == KEY_OF_MINUS_ZERO).any():
            return np.where(keys == KEY_OF_MINUS_ZERO, 0, keys)
        return keys

    @once
    def coded(self) -> CodedColumn:
        """Codes by which Spark groups: 0.0 and -0.0 are one value, and so are all NaN."""
        if self.comes_coded and (coded := _own_codes(self._source, self.type)) is not None:
            return coded
        if pa.types.is_integer(self.type) and not self.column.null_count and len(self):
            (low, high), tuples = self.span, len(self)
            if high - low < max(SMALL_SPAN, 2 * tuples) and high - low < MOST_SPAN:
                codes = np.empty(tuples, np.int32)
                _subtract(self.integers, low, codes)
                return CodedColumn(codes, pa.array(np.arange(low, high + 1, dtype=np.int64)).cast(self.type))
        column = self.column
        if pa.types.is_floating(self.type):
            # Adding 0.0 turns -0.0 into 0.0; NaN has many bit patterns.
            column = pc.add(column, pa.scalar(0.0, self.type))
            is_nan = pc.is_nan(column)
            if pc.any(is_nan).as_py():
                column = pc.if_else(is_nan, pa.scalar(float("nan"), self.type), column)
        if not column.num_chunks or not len(column):
            return CodedColumn(np.empty(0, np.int32), pa.array([], column.type))
        # Arrow gives all chunks of a column one dictionary.
        encoded = column.dictionary_encode(null_encoding="encode")
        return CodedColumn(_filled_codes(encoded), encoded.chunk(0).dictionary)

    @once
    def ranked(self) -> RankedValues:
        """Ranks in Spark's order; 0.0 and -0.0 are one value."""
        if pa.types.is_null(self.type):
            return RankedValues(np.zeros(len(self), np.int32), pa.array([], self.type))
        coded = self.coded
        codes, values = coded.codes, coded.dictionary
        # NaN comes after all numbers, NULL after everything.
        order = pc.array_sort_indices(values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values)
        places = order.to_numpy()
        rank = np.empty(len(places), np.int32)
        rank[places] = np.arange(len(places), dtype=np.int32)
        ranks = np.empty(len(codes), np.int32)
        _rank_rows(codes, rank, ranks)
        return RankedValues(ranks, values.take(order.slice(0, len(values) - values.null_count)))


def _moved(name: str) -> Any:
    """Return a property whose values are those of the first column, each at its new place."""
    return once(lambda column: moved(getattr(column._from, name), column._places))


class MovedColumn(Column):
    """A column whose tuples are in another order; `places` are their new places."""

    floats, integers, limbs, keys, equal_keys = map(_moved, ("floats", "integers", "limbs", "keys", "equal_keys"))

    def __init__(self, column: Column, places: Codes) -> None:
        self._from, self._places, self.type, self.comes_coded = column, places, column.type, column.comes_coded
        self.lock = RLock()

    def __len__(self) -> int:
        return len(self._places)

    @once
    def column(self) -> pa.ChunkedArray:
        rows = moved(np.arange(len(self), dtype=np.int32), self._places)
        return self._from.column.take(pa.array(rows))

    @once
    def valid(self) -> Mask | None:
        return None if self._from.valid is None else moved(self._from.valid, self._places)

    @once
    def span(self) -> tuple[int, int]:
        return self._from.span

    @once
    def coded(self) -> CodedColumn:
        return CodedColumn(moved(self._from.coded.codes, self._places), self._from.coded.dictionary)


_WIDTHS: dict[pa.DataType, type[np.generic]] = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
    pa.date32(): np.int32,
}


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return one type for all types that Spark, depending on its settings, may write for the same values."""
    if pa.types.is_timestamp(kind) and kind.tz not in (None, "UTC"):
        return pa.timestamp("us", tz="UTC")  # the session's zone does not change the instants
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def _filled(column: pa.ChunkedArray, width: type[np.generic], kind: type[Number]) -> NDArray[Number]:
    """Return a copy of the values in one array: Arrow's is read-only, and Numba would compile kernels again for it."""
    out = np.empty(len(column), kind)
    begin = 0
    for chunk in column.chunks:
        if len(chunk):
            values = np.frombuffer(chunk.buffers()[1], width)[chunk.offset : chunk.offset + len(chunk)]
            out[begin : begin + len(chunk)] = values
        begin += len(chunk)
    return out


def _own_codes(column: pa.ChunkedArray, kind: pa.DataType) -> CodedColumn | None:
    """Return the codes of its own dictionary; None unless that holds strings or integers, each once, and no NULL."""
    if not len(column) or column.null_count or not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
        return None
    dictionary = column.chunk(0).dictionary.cast(kind)
    if dictionary.null_count or len(dictionary.unique()) != len(dictionary):
        return None
    return CodedColumn(_filled_codes(column), dictionary)


def _filled_codes(encoded: pa.ChunkedArray) -> Codes:
    codes = np.empty(len(encoded), np.int32)
    begin = 0
    for chunk in encoded.chunks:
        codes[begin : begin + len(chunk)] = chunk.indices.to_numpy(zero_copy_only=False)
        begin += len(chunk)
    return codes


@compiled
def _span(values):  # type: ignore[no-untyped-def]
    low = values[0]
    high = values[0]
    for i in range(1, len(values)):
        low = min(low, values[i])
        high = max(high, values[i])
    return low, high


@compiled
def _subtract(values, low, codes):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        codes[i] = values[i] - low


@compiled
def _rank_rows(codes, rank, ranks):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        ranks[i] = rank[np.uint32(codes[i])]
