"""An operation that reveals order: sequences as polynomial hashes, associative and nothing else.

`(power, hash) · (power', hash')` = `(power·power', hash·power' + hash')` modulo 2^64: the hash of the concatenation of
two sequences. Swapped, dropped or repeated cells change it. Registered with the kernels by importing this module; the
planner does not know it. What is compiled for it must not be kept on disk, see `nothing_cached`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from numba.extending import overload

from windloom.kernels import families
from windloom.kernels.families import counted

BASE = 0x9E3779B97F4A7C15


class Polynomial(NamedTuple):
    power: Any
    hash: Any


def polynomial_cells(values: Any) -> Polynomial:
    """One cell a value: a sequence of length one."""
    hashes = np.asarray(values).astype(np.uint64) + np.uint64(1)
    return Polynomial(np.full(len(hashes), BASE, np.uint64), hashes)


def empty_polynomials(length: int) -> Polynomial:
    return Polynomial(np.zeros(length, np.uint64), np.zeros(length, np.uint64))


@contextmanager
def nothing_cached() -> Iterator[None]:
    """Kernels compiled meanwhile stay in memory: an index on disk that names this module would break other programs."""
    dispatchers = {
        id(value): value
        for name, module in list(sys.modules.items())
        if name.startswith("windloom.kernels")
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    }
    caches = {key: dispatcher._cache for key, dispatcher in dispatchers.items()}
    for dispatcher in dispatchers.values():
        dispatcher._cache = NullCache()
    try:
        yield
    finally:
        for key, dispatcher in dispatchers.items():
            dispatcher._cache = caches[key]


def _is_polynomial(kind: Any) -> bool:
    return isinstance(kind, types.BaseNamedTuple) and kind.instance_class is Polynomial


@overload(families.load, strict=False)
def _load(columns: Any, index: Any) -> Callable[..., Any] | None:
    if _is_polynomial(columns):
        return lambda columns, index: Polynomial(columns.power[index], columns.hash[index])
    return None


@overload(families.store, strict=False)
def _store(columns: Any, index: Any, item: Any) -> Callable[..., Any] | None:
    if not _is_polynomial(columns):
        return None

    def store(columns: Any, index: Any, item: Any) -> None:
        columns.power[index] = item.power
        columns.hash[index] = item.hash

    return store


@overload(families.combine, strict=False)
def _combine(left: Any, right: Any) -> Callable[..., Any] | None:
    if _is_polynomial(left):
        return counted(lambda left, right: Polynomial(left.power * right.power, left.hash * right.power + right.hash))
    return None


@overload(families.identity, strict=False)
def _identity(columns: Any) -> Callable[..., Any] | None:
    if _is_polynomial(columns):
        return lambda columns: Polynomial(np.uint64(1), np.uint64(0))
    return None


@overload(families.like, strict=False)
def _like(columns: Any, length: Any) -> Callable[..., Any] | None:
    if _is_polynomial(columns):
        return lambda columns, length: Polynomial(np.empty(length, np.uint64), np.empty(length, np.uint64))
    return None
