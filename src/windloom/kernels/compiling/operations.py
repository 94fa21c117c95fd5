"""Counts operations and reads clocks inside compiled loops; compiled away unless requested.

`WINDLOOM_COUNT_OPERATIONS=1`, read when this module is imported, makes every `combine` and `remove` add one to a
counter. Without it no kernel counts anything. Counting code contains the address of this process's counter, so
it is never kept on disk, and the caches of the two builds cannot mix.

A kernel that answers window after window calls `mark(stamps, row)` after each answer. `stamps` is None except in
measurements, and Numba then compiles nothing for the call. If it is an array, `stamps[row]` becomes the number of
operations so far in a counting build, and the processor's clock otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

#: The build-time switch.
COUNTING = os.environ.get("WINDLOOM_COUNT_OPERATIONS", "0") not in ("", "0")

_COUNTER = np.zeros(1, np.int64)
_ADDRESS = int(_COUNTER.ctypes.data)


def reset_operations() -> None:
    _COUNTER[0] = 0


def counted_operations() -> int:
    """Operations since the last reset; always 0 unless this is a counting build."""
    return int(_COUNTER[0])


def compiled_in(build: Callable[..., Any]) -> Any:
    """An instruction for compiled code; Numba passes its typing context."""
    return intrinsic(build)


def _counter_pointer() -> Any:
    word = ir.IntType(64)
    return ir.Constant(word, _ADDRESS).inttoptr(word.as_pointer())


@compiled_in
def count_one(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _counter_pointer()
        builder.store(builder.add(builder.load(pointer), ir.Constant(ir.IntType(64), 1)), pointer)
        return context.get_dummy_value()

    return types.void(), generate


@compiled_in
def _operations_so_far(typing_context: Any) -> Any:
    return types.int64(), lambda context, builder, signature, arguments: builder.load(_counter_pointer())


@compiled_in
def read_clock(typing_context: Any) -> Any:
    """The processor's time-stamp counter: a constant rate on current x86, about 8 ns to read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        clock = builder.module.declare_intrinsic("llvm.readcyclecounter", (), ir.FunctionType(ir.IntType(64), []))
        return builder.call(clock, [])

    return types.int64(), generate


def mark(stamps: Any, row: Any) -> None:
    raise NotImplementedError("compiled code only")


@overload(mark, strict=False)
def _mark(stamps: Any, row: Any) -> Callable[..., Any]:
    if isinstance(stamps, types.NoneType):
        return lambda stamps, row: None
    if COUNTING:

        def mark_count(stamps: Any, row: Any) -> None:
            stamps[row] = _operations_so_far()

        return mark_count

    def mark_clock(stamps: Any, row: Any) -> None:
        stamps[row] = read_clock()

    return mark_clock
