"""Periods that make sharing cheap (source E, section 8.4.4): the cost of tasks that run together whenever they meet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod

from windloom.slicing.edges import EdgeClass, EdgeSet

#: Up to this many combinations of periods are all tried; beyond, one period after the other is improved, this often.
MOST_COMBINATIONS, MOST_SWEEPS = 512, 4


def cost_rate(costs: Sequence[float], periods: Sequence[int]) -> float:
    """Cost per unit of time of tasks with these periods; tasks that meet cost as much as the dearest of them.

    The example of seven queries in three sub-groups (the thesis prints 11.63 for the first):

    >>> [round(cost_rate([9, 14, 29], periods), 2) for periods in ([2, 3, 5], [2, 2, 5], [2, 2, 2])]
    [11.93, 11.4, 14.5]
    >>> [round(cost_rate([9, 14, 29], periods), 2) for periods in ([2, 3, 3], [2, 3, 2])]
    [12.67, 16.83]
    """
    total, covered, running = 0.0, 0.0, list[int]()
    for cost, period in sorted(zip(costs, periods, strict=True), reverse=True):
        if any(period % other == 0 for other in running):
            continue  # a dearer task runs whenever this one does
        running = [*(other for other in running if other % period), period]
        reached = _density(tuple(sorted(running)))  # instants at which this task runs, or a dearer one
        total += cost * (reached - covered)
        covered = reached
    return total


@lru_cache(maxsize=1 << 16)
def _density(periods: tuple[int, ...]) -> float:
    """Return the share of instants that are multiples of one of these periods."""
    return float(EdgeSet.of([EdgeClass(period) for period in periods]).density.value)


def cheapest_periods(costs: Sequence[float], candidates: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return one of the candidates for each task, such that all together cost least per unit of time.

    >>> cheapest_periods([9, 14, 29], [[2], [2, 3], [2, 3, 5]])
    (2, 2, 5)
    """
    if prod(map(len, candidates)) <= MOST_COMBINATIONS:
        return min(product(*candidates), key=lambda periods: (cost_rate(costs, periods), periods))
    best = [max(each) for each in candidates]
    least, improves = cost_rate(costs, best), True
    for _ in range(MOST_SWEEPS):
        if not improves:
            break
        improves = False
        for index, each in enumerate(candidates):
            for period in each:
                tried = [*best[:index], period, *best[index + 1 :]]
                cost = cost_rate(costs, tried)
                if cost < least * (1 - 1e-9):
                    best, least, improves = tried, cost, True
    return tuple(best)


def shortened(periods: Sequence[int]) -> list[list[int]]:
    """For each task its own period and all shorter ones: the candidates of the thesis, where a task may run sooner."""
    return [sorted({period, *(other for other in periods if other < period)}) for period in periods]
