"""Measuring the kernels: throughput, many ranges, latency of single slides, memory, and the step around them.

Every figure is a ratio within one run or comes with one, see `loops`.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.kernels.loops import against_loops, fastest
from bench.kernels.slides import PATTERNS, Ints, stamps_of, values_of
from windloom.answers.answers import BLOCK_ROWS
from windloom.kernels.compiling import new_array
from windloom.kernels.families import ADD_INT, MAX_INT, Family
from windloom.kernels.locate import Lanes, sliding_lanes
from windloom.kernels.techniques.registry import STEPPING, TECHNIQUES, allowed
from windloom.model import (
    Aggregate,
    DataType,
    Expression,
    ExpressionKey,
    Grouping,
    Output,
    Query,
    Stream,
    TimeWindow,
    WindowedStream,
)
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.scans import NativeScan
from windloom.rounds.step import step
from windloom.state.frontiers import all_closed
from windloom.state.state import State
from windloom.weave.round_input import RoundInput, take_partials

FAMILIES = {"sum": ADD_INT, "max": MAX_INT}
_BY_NAME = {family.name: family for family in FAMILIES.values()}

#: Whose work grows with the window is measured on short windows only.
_SLOW = {"recalculate": 256}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    cells: int
    lengths: tuple[int, ...]
    ranges_cells: int
    all_ranges: int
    latency_window: int
    repeats: int
    inputs: tuple[str, ...] = PATTERNS
    techniques: frozenset[str] = frozenset(TECHNIQUES)
    memory: bool = True


FULL = Size(2_000_000, (1, 16, 256, 4096, 65_536, 1_048_576), 100_000, 512, 1_048_576, 9)
QUICK = Size(400_000, (1, 64, 4096, 65_536), 20_000, 64, 65_536, 5)


def bars_only(size: Size) -> Size:
    """Of what is measured, that for which a bar is set, and techniques which might meet it."""
    fast = {"prefix_ring", "block_decomposition", "subtract_on_evict", "slick_deque", "two_stacks", "daba"}
    return replace(size, lengths=(4096,), all_ranges=0, inputs=("random",), techniques=frozenset(fast), memory=False)


def _techniques(size: Size, family: Family) -> list[str]:
    return [name for name in allowed(family) if name in size.techniques]


def _evaluation(technique: str, family: Family, values: Ints, lanes: Lanes, queries: int) -> Callable[[], None]:
    cells: Any = family.of(values)
    out = family.empty(len(lanes))
    bounds = np.array([0, len(values)])
    return lambda: TECHNIQUES[technique].evaluate(cells, bounds, lanes, np.arange(queries), out)


def single_query(size: Size, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Every technique and window length on random input; every input at one length."""
    rows = []
    cases = [("random", length) for length in size.lengths] + [(pattern, 4096) for pattern in size.inputs[1:]]
    for kind, family in FAMILIES.items():
        for pattern, length in cases:
            tell(f"{kind}, {pattern} input, window {length:,}")
            values = values_of(pattern, size.cells)
            lanes = sliding_lanes(len(values), [length])
            for technique in _techniques(size, family):
                if length <= _SLOW.get(technique, length):
                    action = _evaluation(technique, family, values, lanes, 1)
                    found = against_loops(kind, values, action, len(values), size.repeats)
                    rows.append({"technique": technique, "kind": kind, "input": pattern, "window": length, **found})
    return rows


def many_ranges(size: Size, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """100 ranges, and all ranges from 1 to n, each answered at every cell."""
    rows = []
    hundred = [int(length) for length in np.linspace(10, size.ranges_cells // 10, 100)]
    for name, lengths, cells in (
        ("100 ranges", hundred, size.ranges_cells),
        (f"all ranges 1..{size.all_ranges}", list(range(1, size.all_ranges + 1)), size.ranges_cells // 5),
    ):
        if not lengths:
            continue
        lanes = sliding_lanes(cells, lengths)
        values = values_of("random", cells)
        for kind, family in FAMILIES.items():
            tell(f"{kind}, {name}")
            for technique in _techniques(size, family):
                if technique not in _SLOW:
                    action = _evaluation(technique, family, values, lanes, len(lengths))
                    found = against_loops(kind, values, action, len(lanes), size.repeats)
                    rows.append({"technique": technique, "kind": kind, "ranges": name, **found})
    return rows


def latencies(size: Size, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Nanoseconds of single slides once the window is full.

    The compiled loop itself reads the processor's clock after every answer, which costs about 8 ns per slide and is
    part of the figures. The run is repeated on the same input and each slide counts with its fastest time: the work of
    a slide is the same every time, what other processes do is not.
    """
    window = size.latency_window
    values = values_of("random", 3 * window + 17)
    rows = []
    for kind, family in FAMILIES.items():
        for technique in _techniques(size, family):
            if technique not in STEPPING or technique in ("b_int", "flat_fat"):
                continue
            tell(f"latency of {technique}, {kind}, window {window:,}")
            best: Any = None
            for _ in range(size.repeats + 1):
                begun = time.perf_counter()
                stamps = stamps_of(technique, family, values, window)
                elapsed = time.perf_counter() - begun
                slides = np.diff(stamps)[window:]
                best = slides if best is None else np.minimum(best, slides)
            nanoseconds = best * _clock_nanoseconds()
            p50, p999 = np.percentile(nanoseconds, [50, 99.9])
            rows.append(
                {
                    "technique": technique,
                    "kind": kind,
                    "window": window,
                    "p50_ns": float(p50),
                    "p999_ns": float(p999),
                    "max_ns": float(nanoseconds.max()),
                    "seconds": elapsed,
                }
            )
    return rows


def _clock_nanoseconds() -> float:
    """Nanoseconds a tick of the clock `mark` reads, from a tenth of a second of it."""
    begun = time.perf_counter(), int(stamps_of("subtract_on_evict", ADD_INT, np.zeros(1, np.int64), 1)[0])
    time.sleep(0.1)
    ended = time.perf_counter(), int(stamps_of("subtract_on_evict", ADD_INT, np.zeros(1, np.int64), 1)[0])
    return 1e9 * (ended[0] - begun[0]) / (ended[1] - begun[1])


def memory(size: Size, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """What evaluating adds to a process's peak memory, cells and answers excluded; a process each."""
    rows: list[dict[str, Any]] = []
    if not size.memory:
        return rows
    for kind, family in FAMILIES.items():
        for technique in allowed(family):
            if technique in _SLOW:
                continue
            tell(f"memory of {technique}, {kind}")
            command = [sys.executable, "-m", "bench.kernels.measure", technique, family.name]
            command += [str(size.cells), str(size.latency_window)]
            finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            added = int(finished.stdout)
            rows.append(
                {
                    "technique": technique,
                    "kind": kind,
                    "cells": size.cells,
                    "window": size.latency_window,
                    "bytes": added,
                    "bytes_per_cell_of_window": added / size.latency_window,
                }
            )
    return rows


def _added_memory(technique: str, family: Family, cells: int, window: int) -> int:
    small = values_of("descending", 64)
    _evaluation(technique, family, small, sliding_lanes(64, [8]), 1)()  # compiled before anything is measured
    values = values_of("descending", cells)  # the longest deque
    lanes = sliding_lanes(cells, [window])
    held: Any = family.of(values)
    out = family.empty(cells)
    out[0][:] = 0
    ctypes.CDLL(None).malloc_trim(0)  # else what was freed above, and is still resident, would be used for nothing
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak begins anew at what is resident now
    before = _peak_bytes()
    TECHNIQUES[technique].evaluate(held, np.array([0, cells]), lanes, np.arange(1), out)
    return _peak_bytes() - before


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def through_step(size: Size, tell: Callable[[str], None]) -> dict[str, Any]:
    """100 queries over 100 groups from partials to Arrow tables, against writing the same columns alone."""
    tell("100 queries × 100 groups through step")
    columns = {name: DataType.parse(kind) for name, kind in (("ts", "bigint"), ("k", "int"), ("n", "int"))}
    stream = Stream("s", columns, "ts", time_unit="us")
    total = Aggregate("sum", Expression.of_column("n"))
    queries = [
        Query(
            f"q{i}",
            WindowedStream("s", TimeWindow((10 + 3 * i) * TICKS_PER_SECOND, TICKS_PER_SECOND)),
            None,
            (Grouping("k", Expression.of_column("k")),),
            (total,),
            (Output("total", 0),),
            None,
            "",
        )
        for i in range(100)
    ]
    types = {ExpressionKey("s", name): kind for name, kind in columns.items()}
    plan = make_plan({"s": stream}, queries, types, PlanOptions("shared", intake="native"), PlanningFacts())
    (scan,) = plan.scans
    assert isinstance(scan, NativeScan)
    slices = size.cells // 4000
    starts = np.repeat(np.arange(slices, dtype=np.int64) * TICKS_PER_SECOND, 100)
    groups = np.tile(np.arange(100, dtype=np.int32), slices)
    values = np.random.default_rng(3).integers(0, 1000, len(starts))
    table = pa.table({"slice": starts, "g0": groups, "c0": np.ones(len(starts), np.int64), "c1": values})

    def ours() -> int:
        _, answers, _ = step(State(), RoundInput(take_partials(plan, scan, table), all_closed(plan.streams)), plan)
        return sum(block.table.num_rows for block in answers.blocks())

    rows = ours()
    source = np.arange(1 << 16, dtype=np.int64)

    def writing() -> None:
        """The same tables without anything worked out: two times, a group's code, a value; a block at a time."""
        for first in range(0, rows, BLOCK_ROWS):
            count = min(BLOCK_ROWS, rows - first)
            columns = [new_array(count, kind) for kind in (np.int64, np.int64, np.int32, np.int64)]
            for column in columns:
                for at in range(0, count, len(source)):
                    part = column[at : at + len(source)]
                    part[:] = source[: len(part)]
            pa.table([pa.array(column) for column in columns], names=["a", "b", "c", "d"])

    seconds = fastest({"writing": writing, "ours": ours}, size.repeats)  # Arrow's part runs in this thread too
    return {
        "rows": rows,
        "rows_per_second": rows / seconds["ours"],
        "ratio_writing": seconds["writing"] / seconds["ours"],
    }


if __name__ == "__main__":
    name, kind_name, cells_text, window_text = sys.argv[1:]
    print(_added_memory(name, _BY_NAME[kind_name], int(cells_text), int(window_text)))
