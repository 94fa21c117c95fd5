"""The bare compiled loops that kernels are measured against, and how.

The technique and the loops take turns, so that whatever else the machine does falls on all, and the fastest of the
turns counts for each. The *reading* loop is `for value in values`, adding (or comparing) and keeping only the result,
over the very array the technique reads; the *float* loop is the same over the same values as doubles, whose additions
must wait for one another; the *vector* loop counts an index instead, which lets the compiler take several integers at
once; the *writing* loop also stores the running value of each element, as every technique must store answers.

A loop runs twice in its turn and the second time counts: the first brings the array as near as it can be, whatever the
technique before it left in the caches.

Kernels run in one thread and are timed by that thread's processor time: time spent waiting for a core does not count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from bench.kernels.slides import Ints
from windloom.kernels.compiling import compiled


@compiled
def _read_sum(values, out):  # type: ignore[no-untyped-def]
    total = values[0] * 0
    for value in values:
        total += value
    out[0] = total


@compiled
def _read_max(values, out):  # type: ignore[no-untyped-def]
    most = values[0]
    for value in values:
        most = max(most, value)
    out[0] = most


@compiled
def _vector_sum(values, out):  # type: ignore[no-untyped-def]
    total = values[0] * 0
    for i in range(len(values)):
        total += values[i]
    out[0] = total


@compiled
def _vector_max(values, out):  # type: ignore[no-untyped-def]
    most = values[0]
    for i in range(len(values)):
        most = max(most, values[i])
    out[0] = most


@compiled
def _write_sum(values, out):  # type: ignore[no-untyped-def]
    total = values[0] * 0
    for i in range(len(values)):
        total += values[i]
        out[i] = total


@compiled
def _write_max(values, out):  # type: ignore[no-untyped-def]
    most = values[0]
    for i in range(len(values)):
        most = max(most, values[i])
        out[i] = most


_LOOPS = {
    "sum": {"reading": _read_sum, "float": _read_sum, "vector": _vector_sum, "writing": _write_sum},
    "max": {"reading": _read_max, "float": _read_max, "vector": _vector_max, "writing": _write_max},
}


def _seconds(action: Callable[[], object]) -> float:
    begun = time.thread_time()
    action()
    return time.thread_time() - begun


def fastest(actions: Mapping[str, Callable[[], object]], repeats: int, twice: Collection[str] = ()) -> dict[str, float]:
    """Seconds of each action, its fastest of several turns; of those run `twice` in a turn, the second time counts."""
    for action in actions.values():
        action()
    best = dict.fromkeys(actions, math.inf)
    for _ in range(repeats):
        for name, action in actions.items():
            if name in twice:
                action()
            best[name] = min(best[name], _seconds(action))
    return best


def against_loops(kind: str, values: Ints, action: Callable[[], object], answers: int, repeats: int) -> dict[str, Any]:
    """Nanoseconds an answer, those of the bare loops an element, and the loops' as a share of the answer's."""
    floats = values.astype(np.float64)
    out = {name: np.empty(len(values), floats.dtype if name == "float" else values.dtype) for name in _LOOPS[kind]}
    actions = {
        name: partial(loop, floats if name == "float" else values, out[name]) for name, loop in _LOOPS[kind].items()
    }
    seconds = fastest({**actions, "ours": action}, repeats, twice=actions)
    ours = 1e9 * seconds["ours"] / answers
    loops = {name: 1e9 * seconds[name] / len(values) for name in actions}
    shares = {f"ratio_{name}": nanoseconds / ours for name, nanoseconds in loops.items()}
    return {"ns": ours, **shares, **{f"{name}_ns": nanoseconds for name, nanoseconds in loops.items()}}
