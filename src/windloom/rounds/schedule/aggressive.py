"""`aggressive`: a tree is one task, due with the first of its queries (source E, section 8.4.3).

The thesis then refreshes all queries of the tree, even those that are not due. Here a window is answered once, when it
is closed. So the windows that are answered along with those that are due are the closed ones that are not due yet; no
other window is reported.
"""

from __future__ import annotations

from collections.abc import Sequence

from windloom.rounds.schedule.edf import Edf
from windloom.rounds.schedule.tasks import Task


class Aggressive(Edf):
    name = "aggressive"
    about = "the earliest deadline first, with all tasks of its tree"

    def together(self, task: Task, others: Sequence[Task], round_seconds: float) -> list[Task]:
        return list(others)
