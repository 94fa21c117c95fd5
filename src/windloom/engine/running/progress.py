"""The figures of a round: for `handle.progress`, the commit record, JSON lines and the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from windloom.engine.notebook import facts_table
from windloom.model.time import TICK_MAX, TICK_MIN, TICKS_PER_SECOND
from windloom.plan.physical import Plan
from windloom.rounds import State


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """`events` counts the tuples taken into partials, `results` the rows that went to the sinks.

    Late tuples are counted once per stream; a tuple that several queries missed is in the figures of each of them.
    `batch` is Spark's number of the micro-batch, None for history and for the round that finishes a stream.
    For each stream that some query reads, `frontiers` has the instant up to which windows over it are closed, and
    `lags` how many seconds that is behind the clock; None if nothing, or everything, is closed. `watermark` and `lag`
    belong to the stream that is furthest behind: up to there the windows of all queries are closed. A query that does
    not read that stream may have closed later windows too. `state_bytes` is the size of the kept cells.
    `tuples` counts the tuples that each stream brought, whether a query wants them or not; `cells` counts the cells
    from which windows over the stream were answered, cells of earlier rounds included.
    `lost` are files of kept tuples that were found missing or damaged: row queries leave out windows that need them.
    For each sink, `sinks` has the seconds that it took, the seconds that the round `waited` for it if it was down, and
    figures of its own. For each relation that some query reads, `relations` has the `version` that was last seen, the
    `round` that took it, its `rows` and `bytes` as far as they are known, and whether it `changed` in this round.

    If plans follow the data, `predicted` are the seconds that the round was expected to take, before it began. Since
    the stream began, `switches` counts how often another plan followed, and `moves` how often estimates came into
    another region of their chart: 0 without charts. `previews` is always 0; earlier versions counted it. `fidelity` is
    the share of judged rounds whose plan was the best for what the round was, and `regret` are the seconds that the
    other rounds lost.

    `postponed` has, by query, how many closed windows are left to later rounds. `answered_windows` counts the answered
    windows of queries with a deadline, `late_windows` those of them that were answered after it; `late_answers` has, by
    query, the number of late windows and by how many seconds the latest one was late.
    """

    round: int
    batch: int | None
    events: int
    late_partly: int
    late_dropped: int
    untimed: int
    partials: int
    results: int
    watermark: str | None
    lag: float | None
    seconds: Mapping[str, float]
    state_bytes: int
    queries: int
    trees: int
    plan_version: int
    late: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by stream
    late_queries: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by query, if it missed any
    frontiers: Mapping[str, str | None] = field(default_factory=dict)  # by stream
    lags: Mapping[str, float | None] = field(default_factory=dict)  # by stream
    tuples: Mapping[str, int] = field(default_factory=dict)  # by stream
    cells: Mapping[str, int] = field(default_factory=dict)  # by stream
    placement: str = "driver"
    lost: Sequence[str] = field(default_factory=list)
    sinks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by name
    relations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by name
    predicted: float | None = None
    moves: int = 0
    switches: int = 0
    previews: int = 0
    fidelity: float | None = None
    regret: float = 0.0
    postponed: Mapping[str, int] = field(default_factory=dict)  # by query
    late_answers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by query
    answered_windows: int = 0
    late_windows: int = 0

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "total_seconds": self.total_seconds}

    def _repr_html_(self) -> str:
        return facts_table(f"round {self.round}", {name: fact for name, fact in self.as_dict().items() if fact != {}})

    def __getitem__(self, name: str) -> Any:
        return self.as_dict()[name]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RoundProgress:
        return cls(**{name: values[name] for name in cls.__slots__ if name in values})


def frontier_ticks(plan: Plan, state: State) -> dict[str, int]:
    """The frontier of each stream that some query reads."""
    return {stream.name: state.frontiers.get(stream.name, TICK_MIN) for stream in plan.streams}


def instant(tick: int) -> str | None:
    """A tick as an instant in UTC; None if nothing, or everything, is closed."""
    if not TICK_MIN < tick < TICK_MAX:
        return None
    seconds, micros = divmod(tick, TICKS_PER_SECOND)
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros).isoformat()
    except (OverflowError, ValueError):
        return None
