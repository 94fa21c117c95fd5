"""A task: queries whose closed windows are answered together or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


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

    def is_pending(self, round_seconds: float) -> bool:
        """Return whether it is late when the next round is done, if this one does not answer it."""
        return self.slack < round_seconds

    def due_round(self, round_seconds: float) -> int:
        """Return how many more rounds it can wait; below 0 if it is late."""
        return int(self.slack // max(round_seconds, 1e-9))


class JointCosts(Protocol):
    """The predicted time of answers."""

    def seconds(self, tasks: Sequence[tuple[Task, int]]) -> float:
        """Return seconds to answer the given number of windows of each task, all of one group, in one pass."""
        ...
