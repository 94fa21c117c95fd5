"""The combine operations, compiled: one named tuple of columns a family, so every kernel is written once.

A family's columns travel as a named tuple of arrays, one of its values as the same tuple of scalars. Numba sees a
type of its own for each family and picks the right `combine` when it compiles a kernel; nothing is dispatched while
the kernel runs. A new family is a named tuple and its cases below.
"""

# Overloads return implementations whose parameter names Numba checks; the bodies are not Python-callable helpers.
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import overload

from windloom.kernels.memory import new_array
from windloom.kernels.operations import COUNTING, count_one
from windloom.kernels.vectors import WIDTH, any_above
from windloom.model.aggregate import Family


class AddInt(NamedTuple):
    value: Any


class MaxInt(NamedTuple):
    value: Any


class AddFloat(NamedTuple):
    high: Any
    low: Any


class Moments(NamedTuple):
    count: Any
    mean: Any
    square: Any  # sum of squared deviations from the mean


Columns = AddInt | MaxInt | AddFloat | Moments

COLUMNS: dict[Family, type[Any]] = {
    Family.ADD_INT: AddInt,
    Family.MAX_INT: MaxInt,
    Family.ADD_FLOAT: AddFloat,
    Family.MOMENTS: Moments,
}
DTYPES: dict[Family, type[np.generic]] = {
    Family.ADD_INT: np.int64,
    Family.MAX_INT: np.int64,
    Family.ADD_FLOAT: np.float64,
    Family.MOMENTS: np.float64,
}

#: Cells that `beats_batch` asks at once.
BATCH = WIDTH

#: Identity of MAX_INT. A real value may equal it; whether a window held any value is counted beside it.
LOWEST = int(np.iinfo(np.int64).min)


def empty_columns(family: Family, length: int) -> Columns:
    kind = COLUMNS[family]
    made: Columns = kind(*(new_array(length, DTYPES[family]) for _ in kind._fields))
    return made


# Names for compiled code only; the bodies are the overloads below.
def load(columns: Any, index: Any) -> Any:
    raise NotImplementedError("compiled code only")


def store(columns: Any, index: Any, item: Any) -> None:
    raise NotImplementedError("compiled code only")


def combine(left: Any, right: Any) -> Any:
    raise NotImplementedError("compiled code only")


def remove(left: Any, right: Any) -> Any:
    """`left` without `right`, which is part of it."""
    raise NotImplementedError("compiled code only")


def same(left: Any, right: Any) -> Any:
    """Of selective families: is it the same value?"""
    raise NotImplementedError("compiled code only")


def beats_batch(value: Any, columns: Any, first: Any) -> Any:
    """Of selective families: does the value stay if combined with any of `BATCH` cells from `first` on?"""
    raise NotImplementedError("compiled code only")


def identity(columns: Any) -> Any:
    raise NotImplementedError("compiled code only")


def like(columns: Any, length: Any) -> Any:
    raise NotImplementedError("compiled code only")


def _kind(numba_type: Any) -> type[Any] | None:
    return getattr(numba_type, "instance_class", None) if isinstance(numba_type, types.BaseNamedTuple) else None


def in_batches(columns: Any) -> bool:
    """While a kernel is compiled: is there `beats_batch` for these columns?"""
    return _kind(columns) is MaxInt and columns[0].layout == "C"


# Indices are never negative; saying so spares every access the test for counting from the end.
@overload(load, strict=False)
def _load(columns: Any, index: Any) -> Callable[..., Any] | None:
    kind = _kind(columns)
    if kind is AddInt:
        return lambda columns, index: AddInt(columns.value[np.uint64(index)])
    if kind is MaxInt:
        return lambda columns, index: MaxInt(columns.value[np.uint64(index)])
    if kind is AddFloat:
        return lambda columns, index: AddFloat(columns.high[np.uint64(index)], columns.low[np.uint64(index)])
    if kind is Moments:
        return lambda columns, index: Moments(
            columns.count[np.uint64(index)], columns.mean[np.uint64(index)], columns.square[np.uint64(index)]
        )
    return None


@overload(store, strict=False)
def _store(columns: Any, index: Any, item: Any) -> Callable[..., Any] | None:
    kind = _kind(columns)
    if kind is AddInt or kind is MaxInt:

        def store_one(columns: Any, index: Any, item: Any) -> None:
            columns.value[np.uint64(index)] = item.value

        return store_one
    if kind is AddFloat:

        def store_pair(columns: Any, index: Any, item: Any) -> None:
            columns.high[np.uint64(index)] = item.high
            columns.low[np.uint64(index)] = item.low

        return store_pair
    if kind is Moments:

        def store_moments(columns: Any, index: Any, item: Any) -> None:
            columns.count[np.uint64(index)] = item.count
            columns.mean[np.uint64(index)] = item.mean
            columns.square[np.uint64(index)] = item.square

        return store_moments
    return None


@overload(combine, strict=False)
def _combine(left: Any, right: Any) -> Callable[..., Any] | None:
    kind = _kind(left)
    if kind is AddInt:
        return counted(lambda left, right: AddInt(left.value + right.value))
    if kind is MaxInt:
        return counted(lambda left, right: MaxInt(max(left.value, right.value)))
    if kind is AddFloat:
        return counted(_add_pairs)
    if kind is Moments:
        return counted(_merge_moments)
    return None


def counted(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The operation itself, or in a counting build one that also counts."""
    if not COUNTING:
        return operation
    body = numba.njit(operation)

    def operation_counted(left: Any, right: Any) -> Any:
        count_one()
        return body(left, right)

    return operation_counted


def _add_pairs(left: Any, right: Any) -> Any:
    # Knuth's error-free sum of the high halves; what it loses gathers in the low half. The halves are not set straight
    # each time: a chain of additions would wait for that seven times as long as for the high halves alone, and an error
    # of n · 2^-105 of Σ|x| after n of them needs no better. Whoever reads a pair adds its halves up.
    high = left.high + right.high
    moved = high - left.high
    error = (left.high - (high - moved)) + (right.high - moved)
    low = left.low + (right.low + error)
    # Infinity and NaN have no error term: their sum is the answer.
    if not np.isfinite(high):
        low = 0.0
    return AddFloat(high, low)


def _merge_moments(left: Any, right: Any) -> Any:
    # Chan, Golub and LeVeque: stable, because only the difference of the means is squared.
    count = left.count + right.count
    if left.count == 0.0:
        return right
    if right.count == 0.0:
        return left
    apart = right.mean - left.mean
    share = right.count / count
    mean = left.mean + apart * share
    return Moments(count, mean, left.square + right.square + apart * apart * left.count * share)


@overload(remove, strict=False)
def _remove(left: Any, right: Any) -> Callable[..., Any] | None:
    if _kind(left) is AddInt:
        return counted(lambda left, right: AddInt(left.value - right.value))
    return None


@overload(same, strict=False)
def _same(left: Any, right: Any) -> Callable[..., Any] | None:
    if _kind(left) is MaxInt:
        return lambda left, right: left.value == right.value
    return None


@overload(beats_batch, strict=False)
def _beats_batch(value: Any, columns: Any, first: Any) -> Callable[..., Any] | None:
    if not in_batches(columns):
        return None
    if not COUNTING:
        return lambda value, columns, first: not any_above(columns.value, first, value.value)

    def counted_batch(value: Any, columns: Any, first: Any) -> Any:
        for _ in range(BATCH):
            count_one()
        return not any_above(columns.value, first, value.value)

    return counted_batch


@overload(identity, strict=False)
def _identity(columns: Any) -> Callable[..., Any] | None:
    kind = _kind(columns)
    if kind is AddInt:
        return lambda columns: AddInt(np.int64(0))
    if kind is MaxInt:
        return lambda columns: MaxInt(np.int64(LOWEST))
    if kind is AddFloat:
        return lambda columns: AddFloat(0.0, 0.0)
    if kind is Moments:
        return lambda columns: Moments(0.0, 0.0, 0.0)
    return None


@overload(like, strict=False)
def _like(columns: Any, length: Any) -> Callable[..., Any] | None:
    kind = _kind(columns)
    if kind is AddInt:
        return lambda columns, length: AddInt(np.empty(length, np.int64))
    if kind is MaxInt:
        return lambda columns, length: MaxInt(np.empty(length, np.int64))
    if kind is AddFloat:
        return lambda columns, length: AddFloat(np.empty(length, np.float64), np.empty(length, np.float64))
    if kind is Moments:
        return lambda columns, length: Moments(
            np.empty(length, np.float64), np.empty(length, np.float64), np.empty(length, np.float64)
        )
    return None
