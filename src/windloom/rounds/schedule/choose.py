"""Chooses what a round answers: everything if there is time for it, else the most urgent tasks that fit.

Tasks are taken by priority, and within a priority by deadline; among equals, the one that was passed over most often
comes first, which is round-robin. A task that does not fit is answered in part: its oldest windows. A task that was
passed over for many rounds comes before all others, but gets no more than a share of the time: no task starves, and no
task that is in time is made late by a backlog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windloom.rounds.schedule.registry import Schedule
from windloom.rounds.schedule.tasks import JointCosts, Task

#: After this many rounds, a task that was passed over comes first, with this share of the time.
MOST_PASSES = 16
STARVING_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Chosen:
    """`windows` is the number of windows that each chosen task answers; `seconds` are predicted."""

    windows: Mapping[Task, int]
    seconds: float
    wanted: float  # seconds that everything would take


def choose(
    tasks: Sequence[Task], schedule: Schedule, costs: JointCosts, seconds: float, round_seconds: float
) -> Chosen:
    """Return the tasks to answer within `seconds`: at least one, unless all of them can wait."""
    every = _Taking(costs)
    for task in tasks:
        every.take(task, task.windows)
    wanted = every.total
    if wanted <= seconds:
        return Chosen(every.windows, wanted, wanted)
    taking = _Taking(costs)
    starving = max(
        (task for task in tasks if task.passed >= MOST_PASSES),
        key=lambda task: (task.passed, -task.slack),
        default=None,
    )
    if starving is not None:
        taking.take_part(starving, seconds * STARVING_SHARE, is_first=True)
    waiting = schedule.waits(tasks, costs, round_seconds)
    order = sorted((task for task in tasks if task not in waiting and task is not starving), key=urgency)
    for task in order:
        if task in taking.windows:
            continue
        if not taking.take_whole(task, seconds):
            taking.take_part(task, seconds, is_first=task is order[0])
            continue
        others = [candidate for candidate in order if candidate.group == task.group and candidate not in taking.windows]
        for other in schedule.together(task, others, round_seconds):
            taking.take_whole(other, seconds)
    return Chosen(taking.windows, taking.total, wanted)


def urgency(task: Task) -> tuple[int, float, int, tuple[str, ...]]:
    """Return a sort key: less is more urgent."""
    return task.priority, task.slack, -task.passed, task.names


class _Taking:
    """The tasks taken so far, and their cost."""

    def __init__(self, costs: JointCosts) -> None:
        self.windows: dict[Task, int] = {}
        self.total = 0.0
        self._costs = costs
        self._groups: dict[int, tuple[dict[Task, int], float]] = {}  # what was taken of each, and its cost

    def take(self, task: Task, windows: int) -> None:
        taken, before = self._groups.get(task.group, ({}, 0.0))
        cost = self._cost(task, windows)
        self.windows[task] = windows
        self._groups[task.group] = ({**taken, task: windows}, cost)
        self.total += cost - before

    def take_whole(self, task: Task, seconds: float) -> bool:
        """Take a task if all of it fits."""
        if self._with(task, task.windows) > seconds:
            return False
        self.take(task, task.windows)
        return True

    def take_part(self, task: Task, seconds: float, *, is_first: bool) -> None:
        """Take as many of its windows as fit; one in any case if it is the first."""
        low, high = 0, task.windows
        while low < high:
            middle = (low + high + 1) // 2
            if self._with(task, middle) <= seconds:
                low = middle
            else:
                high = middle - 1
        if low or is_first:
            self.take(task, max(1, low))

    def _with(self, task: Task, windows: int) -> float:
        """Return all seconds if a task were taken too."""
        _, before = self._groups.get(task.group, ({}, 0.0))
        return self.total - before + self._cost(task, windows)

    def _cost(self, task: Task, windows: int) -> float:
        taken, _ = self._groups.get(task.group, ({}, 0.0))
        return self._costs.seconds(
            [*((taken_task, count) for taken_task, count in taken.items() if taken_task is not task), (task, windows)]
        )
