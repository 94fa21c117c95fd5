"""Several streams that are cut into rounds: how far each has come, by definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windloom.model import Query, Stream
from windloom.model.time import TICK_MAX, TICK_MIN

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]


class CutRounds:
    """`rounds` are the tuples that each round brings, by stream; the end of all streams follows."""

    streams: Mapping[str, Stream]
    rounds: Sequence[Rows]

    def arrived(self, rounds: int) -> dict[str, list[Row]]:
        """All tuples of the first rounds, by stream."""
        return {name: [row for batch in self.rounds[:rounds] for row in batch.get(name, ())] for name in self.streams}

    def frontier(self, name: str, rounds: int) -> int:
        """How far a stream has come after so many rounds; the end comes after all of them."""
        if rounds > len(self.rounds):
            return TICK_MAX
        ticks = [row["tick"] for row in self.arrived(rounds)[name]]
        return max(ticks) - self.streams[name].delay_ticks if ticks else TICK_MIN

    def closed(self, query: Query, rounds: int) -> int:
        """Up to where the windows of a query are closed after so many rounds: the least frontier of its streams."""
        return min(self.frontier(name, rounds) for name in query.streams)
