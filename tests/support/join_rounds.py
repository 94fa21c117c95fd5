"""Joins over streams that are cut into rounds: random cuts, and what each round must report, by definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from support.cut_rounds import CutRounds, Row, Rows
from support.join_catalogs import ATTACHED, STREAMS, Drawing, random_row, random_version
from support.join_texts import Asked
from windloom.model import LandmarkWindow, Query, Stream
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom_tools.oracle.joins import ARRIVED, Landmarks, answer_join


@dataclass(frozen=True)
class JoinRounds(CutRounds):
    """Streams with delays, joins over them, and what each round brings. The end of all streams follows.

    `versions` are those of relations in each round, that of the end included.
    """

    streams: Mapping[str, Stream]
    asked: Mapping[str, Asked]
    rounds: Sequence[Rows]
    versions: Sequence[Rows] = ()

    @property
    def everything(self) -> dict[str, list[Row]]:
        return self.arrived(len(self.rounds))

    def arrived(self, rounds: int) -> dict[str, list[Row]]:
        """All tuples of the first rounds, by stream, each with the relations that it was joined with when it came."""
        brought = list(enumerate(self.rounds[:rounds]))
        return {
            name: [self._came(row, number) for number, batch in brought for row in batch.get(name, ())]
            for name in self.streams
        }

    def _came(self, row: Row, number: int) -> Row:
        versions = self.versions[number] if self.versions else {}
        attached = {name: rows for name, rows in versions.items() if name in ATTACHED}
        return {**row, ARRIVED: attached} if attached else row

    def expected(self, query: Query) -> dict[int, list[Row]]:
        """By round: the windows that it closes, of all tuples that have arrived by then. The last round is the end."""
        found, done = {}, TICK_MIN
        for number in range(len(self.rounds) + 1):
            until = self.closed(query, number + 1)
            rows = answer_join(query, self.seen(number), landmarks=self.landmarks(query, number))
            found[number] = [row for row in rows if done < row["window_end"] <= until]
            done = until
        return found

    def seen(self, number: int) -> dict[str, Sequence[Row]]:
        """What the windows that close in a round see: tuples that have arrived, and the round's versions."""
        return {**self.arrived(number + 1), **(self.versions[number] if self.versions else {})}

    def landmarks(self, query: Query, number: int) -> Landmarks:
        """Where the landmark windows of a round begin and end."""
        assert query.join is not None
        starts = {}
        for side in query.join.sides:
            if not isinstance(side.window, LandmarkWindow):
                continue
            first = self._first(side.source.stream, number)
            if first is not None:
                starts[side.source.stream] = side.window.last_start(first)
        until = self.closed(query, number + 1)
        return Landmarks(starts, None if until == TICK_MAX else until)

    def _first(self, name: str, number: int) -> int | None:
        """The first tick of a stream, which is settled once the frontier has passed it."""
        first: int | None = None
        for place, batch in enumerate(self.rounds[: number + 1]):
            ticks = [row["tick"] for row in batch.get(name, ())]
            if ticks and (first is None or first >= self.frontier(name, place)):
                first = min([*ticks, *([] if first is None else [first])])
        return first

    def count_late(self, query: Query) -> int:
        """How many tuples, over all rounds and sides, come when a window of theirs is closed; 0 if none is late."""
        late = 0
        for number, batch in enumerate(self.rounds):
            closed = self.closed(query, number)
            late += sum(1 for name in query.streams for row in batch.get(name, ()) if row["tick"] < closed)
        return late


@st.composite
def join_rounds(
    draw: st.DrawFn, most: int = 3, disorder: bool = True, landmarks: bool = True, relations: Sequence[str] = ()
) -> JoinRounds:
    """Three streams whose times run apart, some of them silent for a while. Without disorder no tuple is late.

    Relations change in some of the rounds.
    """

    def choose(options: Sequence[Any]) -> Any:
        return draw(st.sampled_from(options))

    streams = {name: replace(stream, delay_ticks=choose([0, 0, 3, 10])) for name, stream in STREAMS.items()}
    drawing = Drawing(choose, landmarks, relations=relations)
    asked = {f"j{i}": drawing.asked(most) for i in range(choose([1, 1, 2]))}
    now, rounds = {name: choose(range(-10, 10)) for name in streams}, []
    for _ in range(choose([1, 2, 3, 4, 5])):
        found: dict[str, list[Row]] = {}
        for name in draw(st.lists(st.sampled_from(list(streams)), unique=True)):  # the others are silent
            behind = 10 if disorder else streams[name].delay_ticks
            for step in draw(st.lists(st.integers(-behind, 6), max_size=6)):
                found.setdefault(name, []).append(random_row(choose, now[name] + step))
                now[name] = max(now[name], now[name] + step)
        rounds.append(found)
    versions: list[Rows] = []
    for number in range(len(rounds) + 1 if relations else 0):
        new = {name: random_version(choose) for name in relations if not number or choose([True, False])}
        versions.append({**(versions[-1] if versions else {}), **new})
    return JoinRounds(streams, asked, rounds, versions)
