"""Schedules: which answers a round gives if its time does not suffice for all of them; pure."""

from windloom.rounds.schedule.choose import Chosen, choose
from windloom.rounds.schedule.registry import DEFAULT_SCHEDULE, SCHEDULES, Schedule, find_schedule
from windloom.rounds.schedule.tasks import JointCosts, Task

__all__ = ["DEFAULT_SCHEDULE", "SCHEDULES", "Chosen", "JointCosts", "Schedule", "Task", "choose", "find_schedule"]
