"""Measures the constants of every technique's terms, on cells and windows made for that purpose."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.families import ADD_FLOAT, ADD_INT, FAMILIES, MAX_INT, REGISTERS, Family
from windloom.kernels.lists.lists import Lists, RankedLists, RegisterQuestion
from windloom.kernels.locate import Lanes, WindowArrays, locate
from windloom.kernels.techniques.registry import TECHNIQUES, allowed
from windloom.model.arrays import Ints
from windloom.optimizer.cost.papers import cost_name
from windloom.optimizer.cost.seconds import uneven
from windloom.optimizer.cost.work import TERMS, Work
from windloom.optimizer.workloads import divisor_windows
from windloom_tools.calibration.fit import Fit, fit

Tell = Callable[[str], None]

#: Cases in which answers would cover more cells than this are not recalculated.
_MOST_COVERED = 20_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """Groups with this many cells; queries whose windows cover about `length` cells and move by 1 to 3 times `slide`.

    In mixed cases, slides are divisors of `slide`, and ranges are up to `length` times the slide.
    """

    groups: int
    cells: int
    queries: int
    length: int
    slide: int
    even: bool = True  # whether cells are evenly spaced; if not, every other slice is empty, at random
    mixed: bool = False

    def lanes(self) -> tuple[NDArray[np.int64], Lanes]:
        bounds = np.arange(self.groups + 1, dtype=np.int64) * self.cells
        starts = np.tile(np.arange(self.cells, dtype=np.int64), self.groups)
        if not self.even:
            steps = np.random.default_rng(5).geometric(0.5, self.groups * self.cells).reshape(self.groups, -1)
            starts = np.cumsum(steps, axis=1).ravel()
        apart = 1 if self.even else 2
        ranges, slides = self._mixed() if self.mixed else self._alike()
        windows = WindowArrays(apart * ranges, apart * slides, np.zeros(self.queries, np.int64))
        none = np.empty(0, np.int64)
        lanes = locate(starts, bounds, windows, -(2**62), 2**62, (none, none, np.empty(0, np.int32)))
        return bounds, lanes

    def _alike(self) -> tuple[Ints, Ints]:
        number = np.arange(self.queries, dtype=np.int64)
        ranges = np.maximum(1, (self.length * (0.5 + number / self.queries)).astype(np.int64))
        return ranges, self.slide * (1 + number % 3)

    def _mixed(self) -> tuple[Ints, Ints]:
        pairs = divisor_windows(self.queries, self.slide, self.length, seed=100 + self.queries)
        ranges, slides = np.array(list(pairs), np.int64).T.copy()
        return ranges, slides


#: Queries, length, slide.
_ALIKE = ((1, 16, 1), (1, 256, 4), (2, 6, 2), (4, 64, 1), (4, 1000, 10), (8, 4, 1), (16, 32, 2), (64, 64, 4))
_MIXED = ((8, 4, 12), (6, 10, 24), (14, 30, 36), (30, 20, 90), (60, 40, 48))


def _cases(*sizes: tuple[int, int]) -> list[Case]:
    found = []
    for even in (True, False):
        for groups, cells in sizes:
            found += [Case(groups, cells, *windows, even) for windows in _ALIKE if windows[1] <= 2 * cells]
            found += [
                Case(groups, cells, *windows, even, mixed=True)
                for windows in _MIXED
                if windows[1] * windows[2] <= 2 * cells
            ]
    return found


_LARGE = [Case(1, *size, even) for even in (True, False) for size in ((60_000, 40, 100, 3), (100_000, 12, 50, 2))]
FULL = [*_cases((1, 20_000), (100, 400), (500, 40)), *_LARGE]
QUICK = _cases((1, 10_000), (50, 200), (200, 40))


def work_of(case: Case, lanes: Lanes) -> Work:
    """The actual work of the lanes, not the estimated one."""
    length = np.maximum(lanes.hi - lanes.lo, 1).astype(np.float64)
    amounts = (
        case.queries,
        case.groups * case.cells,
        len(lanes),
        length.sum(),
        np.log2(np.maximum(length, 2)).sum(),
        length.max(),
        case.cells,
        len(lanes) / case.groups,
        0.0 if case.even else 1.0,
        0.0,
    )
    return Work(*(np.array([amount], np.float64) for amount in amounts))


def thread_seconds(action: Callable[[], object]) -> float:
    """Processor time of this thread; waiting for a core does not count."""
    begun = time.thread_time()
    action()
    return max(time.thread_time() - begun, 1e-7)


def measure_techniques(quick: bool, tell: Tell) -> dict[tuple[str, str], Fit]:
    """The fits by (cost name, family), for windows that move evenly and for those that do not.

    All cases are measured one after another, several times, and the least time of each counts: other processes (which
    also take caches and memory) can only add time, and seldom run during all passes.
    """
    cases = QUICK if quick else FULL
    passes = 3 if quick else 6
    terms: dict[tuple[str, str], dict[Case, dict[str, float]]] = {}
    least: dict[tuple[str, str], dict[Case, float]] = {}
    for number in range(passes + 1):
        tell(f"techniques, {'warming up' if number == 0 else f'pass {number} of {passes}'}")
        for case in cases:
            for name, family, work, action in _actions(case):
                took = thread_seconds(action)
                key = (name, family.name if case.even else uneven(family.name))
                terms.setdefault(key, {})[case] = {k: float(v[0]) for k, v in TERMS[name](work).items()}
                if number:  # the first pass compiles
                    times = least.setdefault(key, {})
                    times[case] = min(took, times.get(case, took))
    return {key: fit([terms[key][case] for case in least[key]], list(least[key].values())) for key in terms}


def _actions(case: Case) -> Iterator[tuple[str, Family, Work, Callable[[], None]]]:
    bounds, lanes = case.lanes()
    work = work_of(case, lanes)
    queries = np.arange(case.queries)
    for family in FAMILIES.values():
        if family.costs_like is not None:  # it uses the constants of another family
            continue
        cells, out = _made_for(family, case.groups * case.cells, len(lanes))
        for technique in allowed(family):
            name = cost_name(technique, family)
            covered = work.covered[0] * (_ENTRIES if family.is_list else 1)
            if name not in TERMS or (technique == "recalculate" and covered > _MOST_COVERED):
                continue
            evaluate = TECHNIQUES[technique].evaluate
            yield name, family, work, partial(evaluate, cells, bounds, lanes, queries, out)


def _made_for(family: Family, count: int, rows: int) -> tuple[Any, Any]:
    """Cells of a family, and columns for its answers."""
    if not family.is_list:
        return _values(family, count), family.empty(rows)
    cells = _lists(count)
    if family is REGISTERS:
        return cells, RegisterQuestion(_CODES, np.empty(rows, np.int64))
    return cells, RankedLists(_CODES, 0.5, np.empty(rows, np.int64), np.empty(rows, np.int32), np.empty(rows, np.int32))


#: Entries per cell if cells hold lists, and the number of values in all.
_ENTRIES, _CODES = 16, 1_000


def _lists(count: int) -> Lists:
    rng = np.random.default_rng(11)
    steps = rng.integers(1, _CODES // _ENTRIES, (count, _ENTRIES))
    codes = np.cumsum(steps, axis=1, dtype=np.int32).ravel()
    return Lists(np.arange(count + 1, dtype=np.int64) * _ENTRIES, codes, rng.integers(1, 12, len(codes)))


def _values(family: Family, count: int) -> Any:
    rng = np.random.default_rng(11)
    kind = family.columns
    if family in (ADD_INT, MAX_INT):
        return kind(rng.integers(0, 1_000_000, count))
    columns = [rng.random(count) * 100 for _ in kind._fields]
    if family is ADD_FLOAT:
        columns[1] *= 1e-9  # the rest of a head
    return kind(*columns)
