"""Families that users define: their Python functions are compiled into the same kernels as the families that ship.

A user's value is a scalar or a named tuple. Inside kernels each aggregate has its own class with the same fields:
two aggregates may use one class of values and combine them differently. Code is compiled once per process and not kept
on disk (see `NEVER_KEPT`).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import numba
import numpy as np

from windloom.kernels.compiling import NEVER_KEPT, compiled, compiled_by_type
from windloom.kernels.families import Family, combine, declare, load, store
from windloom.model.aggregate import Property, UserDefined
from windloom.model.types import DataType, TypeKind

#: The functions that lift an argument to a value of the columns' class, and lower a value.
_LIFTS: dict[type[Any], Callable[..., Any]] = {}
_LOWERS: dict[type[Any], Callable[..., Any]] = {}


_LOCK = Lock()


def number_kind(kind: DataType) -> type[np.generic]:
    """Return the machine's type for a type of numbers; booleans are kept as they are."""
    if kind.kind is TypeKind.BOOLEAN:
        return np.bool_
    return np.int64 if kind.kind is TypeKind.INTEGER else np.float64


def compile_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's function as machine code, by the rules of all kernels: divisions do not raise."""
    return numba.njit(nogil=True, error_model="numpy")(function)


def user_family(own: UserDefined) -> Family:
    """Return the family of a user's aggregate, declared to kernels; all threads get one and the same."""
    with _LOCK:
        return _made(own)


@cache
def _made(own: UserDefined) -> Family:
    # Numba tells classes apart by their names: without the digest, another definition of that name would run this code.
    columns: Any = namedtuple(f"{own.name}_{own.digest}", [name for name, _ in own.fields])  # type: ignore[misc]
    NEVER_KEPT.add(columns)
    kinds = tuple(number_kind(kind) for _, kind in own.fields)
    inside, value_class = _inside(columns, kinds), own.value_class
    # A value of the columns' class, in the form that the user's functions take.
    outside = compile_function((lambda value: value[0]) if value_class is None else (lambda value: value_class(*value)))
    lift, lower = compile_function(own.lift), compile_function(own.lower)
    _LIFTS[columns] = lambda columns, argument: inside(lift(argument))
    _LOWERS[columns] = lambda value: lower(outside(value))
    usual, like = "block_decomposition", "max_int" if Property.SELECTIVE in own.has else "moments"
    if own.inverse is not None:
        usual, like = "prefix_ring", "add_int"
    family = Family(own.name, columns, kinds, own.has, usual, like)
    neutral = own.neutral if own.value_class is not None else (own.neutral,)
    return declare(
        family,
        _between(own.combine, inside, outside),
        neutral,
        remove=_between(own.inverse, inside, outside) if own.inverse is not None else None,
        same=(lambda left, right: left == right) if Property.SELECTIVE in own.has else None,
    )


def _inside(columns: type[Any], kinds: tuple[type[np.generic], ...]) -> Callable[..., Any]:
    """Compiled: a user's value as one of the columns' class, with every field cast to its type."""
    if len(kinds) == 1:
        return _alone(columns, kinds[0])
    fields = None
    for index in reversed(range(len(kinds))):
        fields = _with_field(index, kinds[index], fields)
    return compile_function(lambda value: columns(*fields(value)))  # type: ignore[misc]


def _alone(columns: type[Any], kind: type[np.generic]) -> Callable[..., Any]:
    """Return the only field of a value, which is a scalar or a named tuple of one."""

    @compiled_by_type
    def take(value: Any) -> Callable[..., Any]:
        if hasattr(value, "instance_class"):
            return lambda value: columns(kind(value[0]))
        return lambda value: columns(kind(value))

    return compile_function(lambda value: take(value))


def _with_field(place: int, kind: type[np.generic], others: Callable[..., Any] | None) -> Callable[..., Any]:
    if others is None:
        return compile_function(lambda value: (kind(value[place]),))
    return compile_function(lambda value: (kind(value[place]), *others(value)))


def _between(
    function: Callable[..., Any], inside: Callable[..., Any], outside: Callable[..., Any]
) -> Callable[..., Any]:
    body = compile_function(function)
    return lambda left, right: inside(body(outside(left), outside(right)))


@compiled_by_type
def lift_as(columns: Any, argument: Any) -> Callable[..., Any] | None:
    """Compiled code: the argument lifted to a value of the columns' family."""
    return _LIFTS.get(getattr(columns, "instance_class", None))  # type: ignore[arg-type]


@compiled_by_type
def lower_of(value: Any) -> Callable[..., Any] | None:
    """Compiled code: a value lowered to the answer."""
    return _LOWERS.get(getattr(value, "instance_class", None))  # type: ignore[arg-type]


@compiled
def update(cells, rows, every, arguments, out):  # type: ignore[no-untyped-def]
    """Fold tuples: `out[cells[i]]` is combined with `arguments[i]`, lifted, for every chosen tuple i in this order.

    As in `tuples.updates`, `rows` names the chosen tuples; with `every`, all are chosen. `out` holds neutral values, or
    those of earlier tuples.
    """
    for k in range(len(cells) if every else len(rows)):
        i = k if every else np.int64(rows[k])
        store(out, cells[i], combine(load(out, cells[i]), lift_as(out, arguments[i])))


@compiled
def lower_rows(columns, wanted, out):  # type: ignore[no-untyped-def]
    """`out[i]` = value i lowered, if it is wanted."""
    for i in range(len(out)):
        if wanted[i]:
            out[i] = lower_of(load(columns, i))
