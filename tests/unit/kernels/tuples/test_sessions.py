"""Sessions of a block, and sessions that are joined, against brute force."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.weaving import tuples_of
from windloom.kernels.merge import session_starts


def true_sessions(ticks: list[int], gap: int) -> list[list[int]]:
    found: list[list[int]] = []
    for tick in sorted(ticks):
        if found and tick - found[-1][-1] <= gap:
            found[-1].append(tick)
        else:
            found.append([tick])
    return found


@pytest.mark.parametrize("is_ordered", [True, False])
@pytest.mark.parametrize("own", [(), (0,)])
@pytest.mark.parametrize("gap", [1, 4, 1000])
def test_a_cell_is_a_run_of_a_groups_tuples_without_a_longer_pause(
    gap: int, own: tuple[int, ...], is_ordered: bool
) -> None:
    rng = random.Random(gap)
    ticks = [rng.randrange(-300, 300) for _ in range(200)]
    if is_ordered:
        ticks.sort()
    keys = [rng.choice(["a", "b", None]) for _ in ticks]
    bits = [rng.randrange(2) for _ in ticks]
    tuples = tuples_of(ticks, pa.array(bits, pa.int64()), pa.array(keys), words=1)
    grid = tuples.sessions((0,), gap, own)
    kept = grid.every
    found: dict[Any, list[int]] = {}
    names, starts = grid.keys(kept)[0].to_pylist(), grid.starts_of(kept).tolist()
    for group in range(len(kept.bounds) - 1):
        for place in range(kept.bounds[group], kept.bounds[group + 1]):
            chosen = [i for i in range(len(ticks)) if not own or bits[i]]
            found[names[group], starts[place]] = sorted(ticks[i] for i in chosen if grid.cells[i] == kept.cells[place])
    wanted = {}
    for key in ("a", "b", None):
        mine = [tick for tick, k, bit in zip(ticks, keys, bits, strict=True) if k == key and (bit or not own)]
        wanted |= {(key, session[0]): session for session in true_sessions(mine, gap)}
    assert found == wanted


def test_only_tuples_that_come_in_time_are_left() -> None:
    tuples = tuples_of([3, 9, 4, 1], pa.array(["a", "b", "c", "d"]))
    later = tuples.since(4)
    assert later.tick.integers.tolist() == [9, 4]
    assert later.column(0).column.to_pylist() == ["b", "c"]
    assert tuples.since(0) is tuples
    assert tuples.since(4) is later


@pytest.mark.parametrize("seed", range(20))
def test_joined_cells_are_the_sessions_of_all_their_tuples(seed: int) -> None:
    rng = random.Random(seed)
    gap, closed = rng.randint(1, 6), rng.randint(-10, 60)
    starts, lasts, bounds, wanted = [], [], [0], []
    for _ in range(3):
        ticks = [rng.randrange(60) for _ in range(rng.randint(0, 25))]
        # Cells of two portions of the tuples, which overlap.
        parts = [session for part in (ticks[::2], ticks[1::2]) for session in true_sessions(part, gap)]
        cells = sorted((session[0], session[-1]) for session in parts)
        whole = true_sessions(ticks, gap)
        starts += [start for start, _ in cells]
        lasts += [last for _, last in cells]
        bounds.append(len(starts))
        wanted += [next(session[0] for session in whole if session[0] <= start <= session[-1]) for start, _ in cells]
    out = np.empty(len(starts), np.int64)
    arrays = (np.array(column, np.int64) for column in (starts, lasts, bounds))
    session_starts(*arrays, gap, -(2**62), out)
    assert out.tolist() == wanted
    session_starts(*(np.array(column, np.int64) for column in (starts, lasts, bounds)), gap, closed, out)
    for group in range(3):
        last = None
        for i in range(bounds[group], bounds[group + 1]):
            joins = last is not None and last + gap >= closed and starts[i] - last <= gap
            assert out[i] == starts[i] if not joins else out[i] == out[i - 1]
            last = max(last, lasts[i]) if joins else lasts[i]
