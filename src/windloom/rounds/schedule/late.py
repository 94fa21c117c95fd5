"""`late`: as hybrid, but a late task is answered with all late tasks of its tree (source E, section 8.4.5)."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.rounds.schedule.hybrid import Hybrid
from windloom.rounds.schedule.tasks import Task


class Late(Hybrid):
    name = "late"
    about = "hybrid, and a late task is answered with all late tasks of its tree"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        if task.is_late:
            return [task for task in others if task.is_late]
        return super().together(task, others, round_seconds)
