"""Tuples without a usable time: in no window, as in Spark; left out and counted, or refused if the user says so."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from windloom.errors import WindloomError, WindloomWarning
from windloom.model.stream import Stream
from windloom.spark.native import has_time_sql

#: What can become of them; the first is the default everywhere.
UNTIMED = ("skip", "stop")


def check_untimed(untimed: str) -> None:
    if untimed not in UNTIMED:
        raise WindloomError(
            f"unknown choice untimed={untimed!r}",
            "it says what becomes of tuples without a usable time",
            "use 'skip', which leaves them out and counts them, or 'stop'",
        )


def without_time(stream: Stream, tuples: int) -> WindloomError:
    return WindloomError(
        f"stream '{stream.name}' has tuples without a usable time",
        f"column '{stream.time}' ({stream.columns[stream.time]}) is NULL, unreadable or out of range"
        f" in {tuples:,} of its rows",
        "leave them out and count them: untimed='skip', --untimed skip; or filter them out before they are registered:"
        f' df.where("{has_time_sql(stream)}")',
    )


@dataclass(frozen=True, slots=True)
class Untimed:
    """What becomes of tuples without a time in a batch run; `left_out` counts, by stream, those found beside scans."""

    streams: Mapping[str, Stream]
    skips: bool
    left_out: dict[str, int] = field(default_factory=dict)

    def add(self, stream: str, tuples: int) -> None:
        """Take note of all tuples of a stream that have no time, or refuse them."""
        if tuples and not self.skips:
            raise without_time(self.streams[stream], tuples)
        if tuples:
            self.left_out[stream] = tuples


def warn_of_untimed(streams: Mapping[str, Stream], counts: Mapping[str, int], *, stacklevel: int) -> None:
    """Say for each stream how many of its tuples are left out."""
    for name, tuples in counts.items():
        stream, rows = streams[name], "1 row is" if tuples == 1 else f"{tuples:,} rows are"
        warnings.warn(
            f"stream '{name}': {rows} in no window, because the time is NULL, unreadable or out of range"
            f" (column '{stream.time}', {stream.columns[stream.time]});"
            " untimed='stop' (--untimed stop) refuses such rows",
            WindloomWarning,
            stacklevel=stacklevel + 1,
        )
