"""Combines values of one side over matching rows, each value as often as its row is matched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload

from windloom.kernels.compiling.compiled import compiled
from windloom.kernels.families.algebra import Columns, Moments, combine, empty_like, identity, is_selective, load, store


def weigh(value: Any, times: Any) -> Any:
    """Compiled code only: the value combined with itself so that it counts `times` times, at least once."""
    raise NotImplementedError("compiled code only")


@overload(weigh, strict=False)
def _weigh(value: Any, times: Any) -> Callable[..., Any] | None:
    if getattr(value, "instance_class", None) is Moments:
        return lambda value, times: Moments(value.count * times, value.mean, value.square * times)
    if is_selective(value):
        return lambda value, times: value
    return _doubled


def _doubled(value: Any, times: Any) -> Any:
    # Like computing a power: the value is doubled for every binary digit, and added for each digit that is 1.
    while times & 1 == 0:
        value = combine(value, value)
        times >>= 1
    total = value
    times >>= 1
    while times > 0:
        value = combine(value, value)
        if times & 1 == 1:
            total = combine(total, value)
        times >>= 1
    return total


@compiled
def combine_weighed(left_rows, right_rows, out_rows, lengths, left, left_last, times, times_last, out):  # type: ignore[no-untyped-def]
    """`out` is combined with `left`, counted `times` times; `times` is integers, or doubles for moments."""
    for s in range(len(out_rows)):
        i, j, o = np.int64(left_rows[s]), np.int64(right_rows[s]), np.int64(out_rows[s])
        step, other_step = np.int64(i < left_last), np.int64(j < times_last)
        for _ in range(lengths[s]):
            if times[j] > 0:
                store(out, o, combine(load(out, o), weigh(load(left, i), times[j])))
            i += step
            j += other_step
            o += 1


@compiled
def fill_neutral(out):  # type: ignore[no-untyped-def]
    """Sets every value to the neutral one."""
    for i in range(len(out[0])):
        store(out, i, identity(out))


def combine_arrays(left: Columns, right: Columns) -> Columns:
    """Every value of `left` combined with the value of `right` at the same place."""
    out = empty_like(left, len(left[0]))
    _combine_arrays(left, right, out)
    return out


@compiled
def _combine_arrays(left, right, out):  # type: ignore[no-untyped-def]
    for i in range(len(out[0])):
        store(out, i, combine(load(left, i), load(right, i)))
