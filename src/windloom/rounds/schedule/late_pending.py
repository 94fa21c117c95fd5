"""`late_pending`: as late, but also with tasks of its tree that would be late after this round (algorithm 11)."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.rounds.schedule.hybrid import Hybrid
from windloom.rounds.schedule.tasks import Task


class LatePending(Hybrid):
    name = "late_pending"
    about = "hybrid, and a late task is answered with all tasks of its tree that are late or about to be"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        if task.is_late:
            return [task for task in others if task.is_pending(round_seconds)]
        return super().together(task, others, round_seconds)
