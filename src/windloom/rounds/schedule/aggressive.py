"""`aggressive`: a tree is one task, due with the first of its queries (source E, section 8.4.3).

The thesis refreshes all queries of the tree then, also those that are not due. Here a window is answered once, when it
is closed: what is answered along are the windows that are closed and not due yet. No other window is reported.
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
