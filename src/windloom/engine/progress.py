"""The figures of a round: for `handle.progress`, the commit record, JSON lines and the terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from windloom.engine.views import facts_table
from windloom.model.time import TICK_MAX, TICK_MIN, TICKS_PER_SECOND
from windloom.plan.plan import Plan
from windloom.rounds.lateness import LateCount
from windloom.state.state import State

if TYPE_CHECKING:  # the figures of past rounds are read where no round can run
    from windloom.engine.budget import AnswerFigures
    from windloom.engine.round import Round
    from windloom.sinks.round_rows import Outcome


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """Figures of a round: `events` counts tuples in partials, `results` the rows that went to the sinks.

    Late tuples are counted once per stream; a tuple that several queries missed is in the figures of each of them.
    `batch` is Spark's number of the micro-batch, None for history and for the round that finishes a stream.
    For each stream that some query reads, `frontiers` has the instant up to which windows over it are closed, and
    `lags` how many seconds that is behind the clock; None if nothing, or everything, is closed. `watermark` and `lag`
    belong to the stream that is furthest behind: up to there the windows of all queries are closed. A query that does
    not read that stream may have closed later windows too. `state_bytes` is the size of the kept cells.
    `tuples` counts the tuples of each stream, whether a query wants them or not; `cells` counts the cells
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

    `changes` says, of the first round after a start, what the streams have otherwise since then: delays, new columns.
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
    changes: Sequence[str] = ()

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "changes": list(self.changes), "total_seconds": self.total_seconds}

    def _repr_html_(self) -> str:
        return facts_table(f"round {self.round}", {name: fact for name, fact in self.as_dict().items() if fact != {}})

    def __getitem__(self, name: str) -> Any:
        """Return a figure by its name, or by the name that it has in the progress of Spark's own streams."""
        match name:
            case "batchId":
                return self.batch
            case "numInputRows":
                return sum(self.tuples.values())
            case "durationMs":
                parts = {part: round(seconds * 1e3) for part, seconds in self.seconds.items()}
                return {**parts, "triggerExecution": round(self.total_seconds * 1e3)}
        return self.as_dict()[name]


def frontier_ticks(plan: Plan, state: State) -> dict[str, int]:
    """Return the frontier of each stream that some query reads."""
    return {stream.name: state.frontiers.get(stream.name, TICK_MIN) for stream in plan.streams}


def instant(tick: int) -> str | None:
    """Return a tick as an instant in UTC; None if nothing, or everything, is closed."""
    if not TICK_MIN < tick < TICK_MAX:
        return None
    seconds, micros = divmod(tick, TICKS_PER_SECOND)
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros).isoformat()
    except (OverflowError, ValueError):
        return None


def events_of(plan: Plan, tuples: Mapping[int, int]) -> int:
    """Return the number of tuples of all streams: of each, those of its largest set, because its sets read one stream.

    Sets of positions take a tuple when its position is final, which may be rounds later, and an enriched stream has a
    tuple as often as it matches. Such sets count only if a stream has no others.
    """
    sets = [partial_set for partial_set in plan.sets if not partial_set.is_relation]
    plain = {partial_set.stream for partial_set in sets if partial_set.counted_by is None}
    most: dict[str, int] = {}
    for partial_set in sets:
        if (partial_set.counted_by is None and partial_set.stream == partial_set.base) or partial_set.base not in plain:
            most[partial_set.base] = max(most.get(partial_set.base, 0), tuples.get(partial_set.number, 0))
    return sum(most.values())


def progress_of(
    round: Round, batch: int | None, outcome: Outcome, rows: int, seconds: Mapping[str, float], answering: AnswerFigures
) -> RoundProgress:
    """Return the figures of a round whose `rows` are with the sinks."""
    counts, state = outcome.counts, outcome.state
    late = {stream.name: asdict(counts.late.streams.get(stream.name, LateCount())) for stream in round.plan.streams}
    cells = dict.fromkeys((stream.name for stream in round.plan.streams), 0)
    for partial_set in round.plan.sets:
        if partial_set.identity in outcome.observed.sets:
            cells[partial_set.base] += outcome.observed.sets[partial_set.identity].held
    ticks = frontier_ticks(round.plan, state)
    frontiers, lags = {name: instant(tick) for name, tick in ticks.items()}, _lags(ticks)
    behind = min(ticks, key=lambda name: ticks[name])
    return RoundProgress(
        round=round.number,
        batch=batch,
        events=events_of(round.plan, counts.tuples),
        late_partly=sum(late_counts["partly"] for late_counts in late.values()),
        late_dropped=sum(late_counts["dropped"] for late_counts in late.values()),
        untimed=sum(outcome.untimed.values()),
        partials=sum(counts.partials.values()),
        results=rows,
        watermark=frontiers[behind],
        lag=lags[behind],
        seconds=seconds,
        state_bytes=outcome.state_bytes,
        queries=len(round.record.queries),
        trees=sum(1 for _ in round.plan.trees),
        plan_version=round.record.version,
        late=late,
        late_queries={name: asdict(late) for name, late in sorted(counts.late.queries.items())},
        frontiers=frontiers,
        lags=lags,
        tuples={stream.name: outcome.observed.streams[stream.name].tuples for stream in round.plan.streams},
        cells=cells,
        postponed=answering.postponed,
        late_answers=answering.late,
        answered_windows=answering.windows,
        late_windows=answering.late_windows,
        relations=_versions(round, state),
        lost=list(outcome.lost),
    )


def _versions(round: Round, after: State) -> dict[str, dict[str, Any]]:
    """Return the versions of relations that a round has seen; if it did not look, those of an earlier round."""
    versions = {}
    for planned_relation in round.plan.relations:
        version, before = after.versions.get(planned_relation.name), round.state.versions.get(planned_relation.name)
        if version is not None:
            changed = before is None or before.number != version.number
            facts = {"version": version.number, "round": version.round, "rows": version.rows, "bytes": version.nbytes}
            versions[planned_relation.name] = {**facts, "changed": changed}
    return versions


def _lags(ticks: Mapping[str, int]) -> dict[str, float | None]:
    """Return how many seconds each tick is behind the clock; None for ticks that are not instants."""
    now = time.time()
    return {
        name: None if instant(tick) is None else round(now - tick / TICKS_PER_SECOND, 3) for name, tick in ticks.items()
    }
