"""Families: named tuples of columns with compiled operations, so that every kernel is written once.

The columns of a family are a named tuple of arrays, one of its values is the same tuple of scalars. Numba sees a
separate type for each family and picks the right `combine` when it compiles a kernel; nothing is dispatched while
the kernel runs. A new family is a named tuple and a call of `declare`, in the file of the aggregator that needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.core.cgutils import get_item_pointer
from numba.core.types import BaseTuple
from numba.np.arrayobj import load_item, store_item

from windloom.kernels.compiling import COUNTING, compiled_by_type, compiled_in, count_one, new_array
from windloom.kernels.lists.lists import Lists
from windloom.kernels.simd import WIDTH, any_above
from windloom.model.aggregate import Property

# Instructions that read and write one value of any family.


def _pointer(context: Any, builder: Any, kind: Any, columns: Any, place: int, index: Any) -> Any:
    """Return the address of a value. Indices are never negative, so no access checks for an index from the end."""
    array = context.make_array(kind)(context, builder, builder.extract_value(columns, place))
    return get_item_pointer(context, builder, kind, array, [index], wraparound=False)  # type: ignore[no-untyped-call]


@compiled_in
def values_at(typing_context: Any, columns: Any, index: Any) -> Any:
    """Return the value at an index, as the same named tuple of scalars."""
    value = BaseTuple.from_types([column.dtype for column in columns], columns.instance_class)  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = [
            load_item(context, builder, kind, _pointer(context, builder, kind, arguments[0], place, arguments[1]))  # type: ignore[no-untyped-call]
            for place, kind in enumerate(columns)
        ]
        return context.make_tuple(builder, value, values)

    return value(columns, types.int64), generate


@compiled_in
def put_at(typing_context: Any, columns: Any, index: Any, item: Any) -> Any:
    """Store `item` at an index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for place, kind in enumerate(columns):
            value = context.cast(builder, builder.extract_value(arguments[2], place), item[place], kind.dtype)
            pointer = _pointer(context, builder, kind, arguments[0], place, arguments[1])
            store_item(context, builder, kind, value, pointer)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(columns, types.int64, item), generate


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


#: The columns of some family: a named tuple of arrays.
Columns = Any

#: Cells that `beats_batch` tests at once.
BATCH = WIDTH

#: Identity of MAX_INT. A real value may equal it; a separate count shows whether a window held any value.
LOWEST = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """A way to combine values. `usual` is the technique that is used unless another one is predicted to be faster.

    `costs_like` names a family whose measured constants are used if it has none of its own.
    """

    name: str
    columns: type[Any]
    kinds: tuple[type[np.generic], ...]  # those of the columns
    has: Property
    usual: str
    costs_like: str | None = None

    @property
    def is_list(self) -> bool:
        """Whether a cell holds a list instead of one value in each of a few columns."""
        return Property.LISTS in self.has

    def of(self, *columns: Any) -> Columns:
        """Return columns of this family."""
        return self.columns(*columns)

    def neutral(self, length: int) -> Columns:
        """Return columns of values that change nothing they are combined with."""
        value = _OPERATIONS[self.columns].neutral
        return self.of(*(np.full(length, field, kind) for field, kind in zip(value, self.kinds, strict=True)))

    def empty(self, length: int) -> Columns:
        """Return columns whose values are undefined."""
        return self.columns(*(new_array(length, kind) for kind in self.kinds))

    def __repr__(self) -> str:
        return f"<family {self.name}>"


@dataclass(frozen=True, slots=True)
class _Operation:
    combine: Callable[..., Any]
    neutral: Any  # a value of the family
    remove: Callable[..., Any] | None
    same: Callable[..., Any] | None


#: The families that ship, by name.
FAMILIES: dict[str, Family] = {}

_OPERATIONS: dict[type[Any], _Operation] = {}


def declare(
    family: Family,
    combine: Callable[..., Any],
    neutral: tuple[float, ...],
    remove: Callable[..., Any] | None = None,
    same: Callable[..., Any] | None = None,
    *,
    ships: bool = False,
) -> Family:
    """Declare a family to kernels: its operations, functions of `left` and `right`, are compiled into them.

    One that `ships` is known by its name wherever Windloom runs; snapshots name it.
    """
    value = family.columns(*(kind(neutral_field) for kind, neutral_field in zip(family.kinds, neutral, strict=True)))
    _OPERATIONS[family.columns] = _Operation(combine, value, remove, same)
    if ships:
        FAMILIES[family.name] = family
    return family


def _listed(name: str) -> Family:
    FAMILIES[name] = Family(name, Lists, (np.int64, np.int32, np.int64), Property.LISTS, "running_counts")
    return FAMILIES[name]


def _add_pairs(left: Any, right: Any) -> Any:
    # Knuth's error-free sum of the high halves; the low half collects what it loses. The halves are not renormalised
    # each time: a chain of additions would take seven times as long as for the high halves alone, and an error
    # of n · 2^-105 of Σ|x| after n additions is small enough. The reader of a pair adds up its halves.
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


_BOTH = Property.ASSOCIATIVE | Property.COMMUTATIVE

#: 64-bit integers; exact.
ADD_INT = declare(
    Family("add_int", AddInt, (np.int64,), _BOTH | Property.INVERTIBLE, "prefix_ring"),
    lambda left, right: AddInt(left.value + right.value),
    (0,),
    remove=lambda left, right: AddInt(left.value - right.value),
    ships=True,
)
#: Double-double pairs. Subtraction loses digits that a huge value has absorbed, so only code that checks for that
#: may subtract.
ADD_FLOAT = declare(
    Family("add_float", AddFloat, (np.float64, np.float64), _BOTH | Property.NEARLY_INVERTIBLE, "block_decomposition"),
    _add_pairs,
    (0.0, 0.0),
    ships=True,
)
#: Order-preserving 64-bit keys; MIN uses the reversed order.
MAX_INT = declare(
    Family("max_int", MaxInt, (np.int64,), _BOTH | Property.SELECTIVE, "block_decomposition"),
    lambda left, right: MaxInt(max(left.value, right.value)),
    (LOWEST,),
    same=lambda left, right: left.value == right.value,
    ships=True,
)
#: (count, mean, sum of squared deviations).
MOMENTS = declare(
    Family("moments", Moments, (np.float64,) * 3, _BOTH, "block_decomposition"),
    _merge_moments,
    (0.0, 0.0, 0.0),
    ships=True,
)
#: Lists of (value, count).
FREQUENCIES = _listed("frequencies")
#: Lists of (register, largest rank): HyperLogLog.
REGISTERS = _listed("registers")


def empty_like(columns: Columns, length: int) -> Columns:
    """Return columns of the same family whose values are undefined."""
    return type(columns)(*(new_array(length, column.dtype) for column in columns))


def can_remove(columns: Columns) -> bool:
    """Return whether these columns have `remove`."""
    return _OPERATIONS[type(columns)].remove is not None


def _operation(numba_type: Any) -> _Operation | None:
    return _OPERATIONS.get(getattr(numba_type, "instance_class", None))  # type: ignore[arg-type]


def is_selective(numba_type: Any) -> bool:
    """Return, while a kernel is compiled, whether a value combined with itself is that value."""
    operation = _operation(numba_type)
    return operation is not None and operation.same is not None


def in_batches(columns: Any) -> bool:
    """Return, while a kernel is compiled, whether these columns have `beats_batch`."""
    return getattr(columns, "instance_class", None) is MaxInt and columns[0].layout == "C"


@compiled_by_type
def load(columns: Any, index: Any) -> Callable[..., Any] | None:
    """Compiled code: the value at an index."""
    return None if _operation(columns) is None else lambda columns, index: values_at(columns, index)


@compiled_by_type
def store(columns: Any, index: Any, item: Any) -> Callable[..., Any] | None:
    """Compiled code: store a value at an index."""
    return None if _operation(columns) is None else lambda columns, index, item: put_at(columns, index, item)


@compiled_by_type
def combine(left: Any, right: Any) -> Callable[..., Any] | None:
    """Compiled code: two values combined."""
    operation = _operation(left)
    return None if operation is None else counted(operation.combine)


def counted(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Return the operation itself, or in a counting build one that also counts."""
    if not COUNTING:
        return operation
    body = numba.njit(operation)

    def operation_counted(left: Any, right: Any) -> Any:
        count_one()
        return body(left, right)

    return operation_counted


@compiled_by_type
def remove(left: Any, right: Any) -> Callable[..., Any] | None:
    """Compiled code: `left` without `right`, which is part of it."""
    operation = _operation(left)
    return None if operation is None or operation.remove is None else counted(operation.remove)


@compiled_by_type
def same(left: Any, right: Any) -> Callable[..., Any] | None:
    """Compiled code: whether two values of a selective family are equal."""
    operation = _operation(left)
    return None if operation is None else operation.same


@compiled_by_type
def beats_batch(value: Any, columns: Any, first: Any) -> Callable[..., Any] | None:
    """Compiled code: whether a value of a selective family beats all of the `BATCH` cells from `first` on."""
    if not in_batches(columns):
        return None
    if not COUNTING:
        return lambda value, columns, first: not any_above(columns.value, first, value.value)

    def counted_batch(value: Any, columns: Any, first: Any) -> Any:
        for _ in range(BATCH):
            count_one()
        return not any_above(columns.value, first, value.value)

    return counted_batch


@compiled_by_type
def identity(columns: Any) -> Callable[..., Any] | None:
    """Compiled code: the neutral value of the columns' family."""
    operation = _operation(columns)
    if operation is None:
        return None
    neutral = operation.neutral
    return lambda columns: neutral


@compiled_by_type
def like(columns: Any, length: Any) -> Callable[..., Any] | None:
    """Compiled code: columns of the same family, whose values are undefined."""
    if _operation(columns) is None:
        return None
    kind = columns.instance_class
    last, *others = (np.dtype(str(column.dtype)).type for column in reversed(list(columns)))
    arrays = _with_array(last, None)
    for other in others:
        arrays = _with_array(other, arrays)
    return lambda columns, length: kind(*arrays(length))


def _with_array(kind: type[np.generic], others: Callable[..., Any] | None) -> Callable[..., Any]:
    """Compiled: a tuple of new arrays of a length, one more than in `others`."""
    if others is None:
        return numba.njit(lambda length: (np.empty(length, kind),))  # type: ignore[no-any-return]
    return numba.njit(lambda length: (np.empty(length, kind), *others(length)))  # type: ignore[no-any-return]
