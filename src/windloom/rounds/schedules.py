"""Schedules, by name: which tasks a round answers together, and which may wait. `choose` decides how much is answered.

A task is queries whose closed windows are answered together or not at all. The schedules are those of source E, section
8.4; a new one is a class here, and an entry in `SCHEDULES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Protocol

from windloom.errors import WindloomError, near_names
from windloom.slicing.edges import EdgeClass, EdgeSet


@dataclass(frozen=True, slots=True)
class Task:
    """Queries of one tree with the same slide, deadline and priority (a sub-group of source E, section 8.4.3).

    Tasks of one `group` read the same cells, and cost less together than one by one. `slack` are the seconds until
    the oldest window is late; below 0 it is late already. `windows` are closed and not answered. `period` and
    `within` are the slide and the deadline in seconds. `passed` is how many rounds have passed it over so far.
    """

    group: int
    names: tuple[str, ...]
    priority: int
    slack: float
    windows: int
    period: float
    within: float
    passed: int = 0

    @property
    def is_late(self) -> bool:
        return self.slack < 0

    def due_round(self, round_seconds: float) -> int:
        """Return how many more rounds it can wait; below 0 if it is late."""
        return int(self.slack // max(round_seconds, 1e-9))


class JointCosts(Protocol):
    """The predicted time of answers."""

    def seconds(self, tasks: Sequence[tuple[Task, int]]) -> float:
        """Return seconds to answer the given number of windows of each task, all of one group, in one pass."""
        ...


class Schedule:
    """Decides what is answered together: here, every task by itself (source E, algorithm 9).

    `round_seconds` is how long it takes until the next round is done. `about` says what it does, for EXPLAIN.
    """

    name = "edf"
    about = "the earliest deadline first, every task by itself"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        """Return the other tasks of the same tree that are answered along with a task."""
        return []

    def waits(self, tasks: Sequence[Task], costs: JointCosts, round_seconds: float) -> set[Task]:
        """Return tasks that this round does not answer, because they are cheaper later and still in time."""
        return set()


class Conservative(Schedule):
    """Answers tasks of a tree that are due in the same round together (source E, algorithm 10)."""

    name = "conservative"
    about = "the earliest deadline first, with tasks of its tree that are due in the same round"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        return [other for other in others if other.due_round(round_seconds) == task.due_round(round_seconds)]


class Aggressive(Schedule):
    """Answers a tree as one task, due with the first of its queries (source E, section 8.4.3).

    The thesis then refreshes all queries of the tree. Here a window is answered once, when it is closed, so only closed
    windows that are not due yet are answered along.
    """

    name = "aggressive"
    about = "the earliest deadline first, with all tasks of its tree"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        return list(others)


# Periods that make sharing cheap (source E, section 8.4.4): the cost of tasks that run together whenever they meet.

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


#: The longest period that is tried, in rounds, and how many different ones.
LONGEST_PERIOD, TRIED_PERIODS = 64, 6


class Hybrid(Conservative):
    """Lets tasks of a tree also wait for each other where that is predicted to be cheaper.

    The thesis shortens some periods, so that tasks meet more often (source E, section 8.4.4). A window that is not
    closed cannot be answered, so here the same search lengthens periods instead, as far as deadlines allow.
    """

    name = "hybrid"
    about = "conservative, and tasks without hurry wait for others of their tree"

    def waits(self, tasks: Sequence[Task], costs: JointCosts, round_seconds: float) -> set[Task]:
        waiting = set()
        for group in sorted({task.group for task in tasks}):
            group_tasks = [task for task in tasks if task.group == group]
            if len(group_tasks) > 1:
                # The rounds after which each task is answered; tasks can share a pass over the cells of the tree.
                once = [costs.seconds([(task, 0)]) for task in group_tasks]
                periods = cheapest_periods(once, [_candidates(task, round_seconds) for task in group_tasks])
                waiting |= {
                    task
                    for task, period in zip(group_tasks, periods, strict=True)
                    if task.passed + 1 < period and task.slack >= round_seconds  # in time in the next round too
                }
        return waiting


def _candidates(task: Task, round_seconds: float) -> list[int]:
    """Return periods in rounds, from that of the slide to the longest that keeps the deadline."""
    length = max(round_seconds, 1e-9)
    own_period = int(max(1, task.period // length))
    longest = int(min(own_period + task.within // length, LONGEST_PERIOD))
    if longest <= own_period:
        return [own_period]
    step = max(1, -(-(longest - own_period) // (TRIED_PERIODS - 1)))
    return sorted({*range(own_period, longest, step), longest})


class LateSchedule(Hybrid):
    """Answers a late task with all late tasks of its tree (source E, section 8.4.5)."""

    name = "late"
    about = "hybrid, and a late task is answered with all late tasks of its tree"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        if task.is_late:
            return [task for task in others if task.is_late]
        return super().together(task, others, round_seconds)


class LatePending(Hybrid):
    """Answers a late task also with those of its tree that would be late after this round (algorithm 11)."""

    name = "late_pending"
    about = "hybrid, and a late task is answered with all tasks of its tree that are late or about to be"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        if task.is_late:
            return [task for task in others if task.slack < round_seconds]
        return super().together(task, others, round_seconds)


SCHEDULES: dict[str, Schedule] = {
    schedule.name: schedule
    for schedule in (Schedule(), Aggressive(), Conservative(), Hybrid(), LateSchedule(), LatePending())
}
#: The one that answers most windows in time (docs/experiments/schedules.md); the thesis, whose tasks may run ahead of
#: their windows, recommends late_pending under overload (source E, section 8.5.4).
DEFAULT_SCHEDULE = "aggressive"


def find_schedule(name: str) -> Schedule:
    """Return the schedule with a name; raise for an unknown one."""
    if name not in SCHEDULES:
        raise WindloomError(
            f"unknown schedule '{name}'",
            "it says what a round answers first if its budget does not suffice for everything",
            near_names(name, list(SCHEDULES)),
        )
    return SCHEDULES[name]
