"""The schedules by name; a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from windloom.errors import WindloomError, near_names
from windloom.rounds.schedule.aggressive import Aggressive
from windloom.rounds.schedule.conservative import Conservative
from windloom.rounds.schedule.edf import Edf
from windloom.rounds.schedule.hybrid import Hybrid
from windloom.rounds.schedule.late import Late
from windloom.rounds.schedule.late_pending import LatePending
from windloom.rounds.schedule.tasks import JointCosts, Task


class Schedule(Protocol):
    """Decides what is answered together; `choose` decides in which order, and how much.

    `round_seconds` is how long it takes until the next round is done.
    """

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str:
        """What it does, in a few words, for EXPLAIN."""
        ...

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        """Return the other tasks of the same tree that are answered along with a task."""
        ...

    def waits(self, tasks: Sequence[Task], costs: JointCosts, round_seconds: float) -> set[Task]:
        """Return tasks that this round does not answer, because they are cheaper later and still in time."""
        ...


_ALL: tuple[Schedule, ...] = (Edf(), Aggressive(), Conservative(), Hybrid(), Late(), LatePending())
SCHEDULES: dict[str, Schedule] = {schedule.name: schedule for schedule in _ALL}
#: The one that the thesis recommends under overload (source E, section 8.5.4).
DEFAULT_SCHEDULE = "late_pending"


def find_schedule(name: str) -> Schedule:
    if name not in SCHEDULES:
        raise WindloomError(
            f"unknown schedule '{name}'",
            "it says what a round answers first if its budget does not suffice for everything",
            near_names(name, list(SCHEDULES)),
        )
    return SCHEDULES[name]
