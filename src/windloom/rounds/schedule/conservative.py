"""`conservative`: tasks of a tree that are due in the same round are answered together (source E, algorithm 10)."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.rounds.schedule.edf import Edf
from windloom.rounds.schedule.tasks import Task


class Conservative(Edf):
    name = "conservative"
    about = "the earliest deadline first, with tasks of its tree that are due in the same round"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        return [other for other in others if other.due_round(round_seconds) == task.due_round(round_seconds)]
