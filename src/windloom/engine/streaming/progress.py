"""What a round did, as figures: for `handle.progress`, the commit record, JSON lines and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from windloom.model.time import TICK_MAX, TICK_MIN, TICKS_PER_SECOND


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """`events` are tuples taken into partials; `results` rows as they went to the sinks.

    `batch` is Spark's number of the micro-batch, None for history and for the round that finishes a stream. `lag` is
    by how many seconds the watermark is behind the clock. `state_bytes` is the size of the kept cells.
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
    placement: str = "driver"

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "total_seconds": self.total_seconds}

    def __getitem__(self, name: str) -> Any:
        return self.as_dict()[name]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RoundProgress:
        return cls(**{name: values[name] for name in cls.__slots__ if name in values})


def instant(tick: int) -> str | None:
    """A tick as an instant in UTC; None where nothing, or everything, is closed."""
    if not TICK_MIN < tick < TICK_MAX:
        return None
    seconds, micros = divmod(tick, TICKS_PER_SECOND)
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros).isoformat()
    except (OverflowError, ValueError):
        return None
