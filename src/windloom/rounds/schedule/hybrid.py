"""`hybrid`: as conservative, but tasks may wait for each other where that is predicted to be cheaper.

The thesis shortens some periods, so that tasks of a tree meet more often (source E, section 8.4.4). A window that is
not closed cannot be answered, so here the same search lengthens periods instead, as far as deadlines allow: a task that
is in no hurry is passed over for some rounds, and then answers several windows in one pass, with others of its tree.
"""

from __future__ import annotations

from collections.abc import Sequence

from windloom.rounds.schedule.conservative import Conservative
from windloom.rounds.schedule.periods import cheapest_periods
from windloom.rounds.schedule.tasks import JointCosts, Task

#: The longest period that is tried, in rounds, and how many different ones.
LONGEST_PERIOD, TRIED_PERIODS = 64, 6


class Hybrid(Conservative):
    name = "hybrid"
    about = "conservative, and tasks without hurry wait for others of their tree"

    def waits(self, tasks: Sequence[Task], costs: JointCosts, round_seconds: float) -> set[Task]:
        waiting = set()
        for group in sorted({task.group for task in tasks}):
            group_tasks = [task for task in tasks if task.group == group]
            if len(group_tasks) > 1:
                # The number of rounds after which each task is answered; tasks can share a pass over the cells of the
                # tree.
                once = [costs.seconds([(task, 0)]) for task in group_tasks]
                periods = cheapest_periods(once, [_candidates(task, round_seconds) for task in group_tasks])
                waiting |= {
                    task
                    for task, period in zip(group_tasks, periods, strict=True)
                    if task.passed + 1 < period and not task.is_pending(round_seconds)
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
