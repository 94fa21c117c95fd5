"""A stream: a name, columns, the column with the event time, and how late tuples may come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windloom.model.types import TIMESTAMP, DataType, TypeKind

#: The rate, in tuples per second, that is assumed if it is neither given nor measured.
DEFAULT_EVENTS_PER_SECOND = 1_000.0


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream that queries may read.

    `time_unit` is None for timestamp columns, else the unit (`s`, `ms`, `us`) of an integer time column.
    """

    name: str
    columns: Mapping[str, DataType] = field(hash=False)
    time: str = ""
    delay_ticks: int = 0
    time_unit: str | None = None
    events_per_second: float | None = None

    @property
    def window_type(self) -> DataType:
        """The type of `window_start` and `window_end`: the time column's, or TIMESTAMP if that is not an instant."""
        kind = self.columns[self.time]
        return kind if kind.kind is TypeKind.TIMESTAMP_NTZ else TIMESTAMP

    @property
    def is_relation(self) -> bool:
        """Whether its rows have no time: see `model.relation`."""
        return False

    @property
    def title(self) -> str:
        """Its kind and name, as used in messages.

        >>> Stream("trades", {}).title
        "stream 'trades'"
        """
        return f"{'relation' if self.is_relation else 'stream'} '{self.name}'"

    def find_column(self, name: str) -> str | None:
        """The spelling of the column; names are case-insensitive, as in Spark by default."""
        if name in self.columns:
            return name
        lowered = name.lower()
        return next((column for column in self.columns if column.lower() == lowered), None)
