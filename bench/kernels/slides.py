"""Slide by slide: one query whose windows move a cell at a time, its operations and its latencies.

`python -m bench.kernels.slides` prints, as JSON, the operations counted at every slide of every technique; it needs
a counting build (see `operations`), as in `WINDLOOM_COUNT_OPERATIONS=1 python -m bench.kernels.slides`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windloom.errors import WindloomError
from windloom.kernels.compiling import COUNTING, counted_operations, reset_operations
from windloom.kernels.families import ADD_INT, MAX_INT, Family
from windloom.kernels.locate import sliding_lanes
from windloom.kernels.techniques.registry import STEPPING, allowed, find_technique

Ints = NDArray[np.int64]


def values_of(pattern: str, count: int) -> Ints:
    """Input of a named shape."""
    match pattern:
        case "random":
            return np.random.default_rng(7).integers(-(10**9), 10**9, count)
        case "ascending":
            return np.arange(count, dtype=np.int64)
        case "descending":
            return np.arange(count, 0, -1, dtype=np.int64)
        case "sawtooth":
            return np.arange(count, dtype=np.int64) % 1000
        case "constant":
            return np.full(count, 7, np.int64)
    raise WindloomError(f"unknown input '{pattern}'", hint="known: " + ", ".join(PATTERNS))


PATTERNS = ("random", "ascending", "descending", "sawtooth", "constant")


def stamps_of(technique: str, family: Family, values: Ints, length: int) -> Ints:
    """A stamp after each slide: operations so far in a counting build, the processor's clock otherwise."""
    if technique not in STEPPING:
        raise WindloomError(
            f"technique '{technique}' does not answer slide by slide", hint="use one of: " + ", ".join(STEPPING)
        )
    lanes = sliding_lanes(len(values), [length])
    stamps = np.zeros(len(values), np.int64)
    cells: Any = family.of(values)
    out = family.empty(len(values))
    reset_operations()
    STEPPING[technique].evaluate(cells, np.array([0, len(values)]), lanes, np.arange(1), out, stamps)
    return stamps


def operations_per_slide(technique: str, family: Family, values: Ints, length: int) -> Ints:
    """Operations of each slide, once the window is full."""
    _require_counting()
    return np.diff(stamps_of(technique, family, values, length))[length:]


def operations_per_answer(technique: str, family: Family, values: Ints, lengths: list[int]) -> float:
    """Mean operations per answer, of windows of all lengths together, whatever the technique prepares before."""
    _require_counting()
    lanes = sliding_lanes(len(values), lengths)
    cells: Any = family.of(values)
    given = (cells, np.array([0, len(values)]), lanes, np.arange(len(lengths)), family.empty(len(lanes)))
    reset_operations()
    if technique in STEPPING:  # stamped only so that its slides and its answers are counted by one compilation
        STEPPING[technique].evaluate(*given, np.zeros(len(lanes), np.int64))
    else:
        find_technique(technique).evaluate(*given)
    return counted_operations() / len(lanes)


def _require_counting() -> None:
    if not COUNTING:
        raise WindloomError(
            "this build does not count operations", hint="set WINDLOOM_COUNT_OPERATIONS=1 before windloom is imported"
        )


def report(length: int = 64, cells: int = 20_000) -> list[dict[str, Any]]:
    """Counted operations of every technique: a slide's mean and worst, and an answer's mean with several ranges."""
    rows = []
    ranges = [length // 8, length // 4, length // 2, length]
    for family in (ADD_INT, MAX_INT):
        for technique in allowed(family):
            for pattern in PATTERNS if family is MAX_INT else PATTERNS[:1]:
                values = values_of(pattern, cells)
                slides = operations_per_slide(technique, family, values, length) if technique in STEPPING else None
                rows.append(
                    {
                        "technique": technique,
                        "family": family.name,
                        "input": pattern,
                        "window": length,
                        "mean": operations_per_answer(technique, family, values, [length]),
                        "slide_mean": None if slides is None else float(slides.mean()),
                        "slide_worst": None if slides is None else int(slides.max()),
                        "four_ranges_per_slide": 4 * operations_per_answer(technique, family, values, ranges),
                    }
                )
    return rows


if __name__ == "__main__":
    json.dump(report(*(int(argument) for argument in sys.argv[1:])), sys.stdout)
