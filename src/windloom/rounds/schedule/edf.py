"""`edf`: the earliest deadline first, every task by itself (source E, algorithm 9)."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.rounds.schedule.tasks import JointCosts, Task


class Edf:
    name = "edf"
    about = "the earliest deadline first, every task by itself"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        return []

    def waits(self, tasks: Sequence[Task], costs: JointCosts, round_seconds: float) -> set[Task]:
        return set()
