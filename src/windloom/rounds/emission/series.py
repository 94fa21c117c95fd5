"""The rows of every query and group, in the order of their windows, and how these windows follow each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.arrow import as_array
from windloom.model.time import TICK_MIN
from windloom.plan.physical import Planned
from windloom.rounds.groups import number_groups
from windloom.rounds.state import State

#: Columns before the grouping columns: query, window_start, window_end.
LEADING = 3


@dataclass(frozen=True, slots=True)
class Pace:
    """How the windows of a query follow each other, and the tick up to which all of them are reported.

    No window is reported that begins after the last tuple of the streams. `grows`: all windows begin at a landmark.
    """

    slide_ticks: int
    until: int
    grows: bool = False


def paces_of(asked: Iterable[Planned], state: State) -> dict[str, Pace]:
    """Return the paces of queries after a round that left this state."""
    paces = {}
    for planned in asked:
        window, inputs = planned.query.window, planned.query.inputs
        # When a stream has ended, every window is closed, even those that begin after its last tuple.
        latest = max((state.seen[input_] for input_ in inputs if input_ in state.seen), default=TICK_MIN)
        until = min(state.answered_by(planned.query), window.last_start(latest) + window.range_ticks)
        paces[planned.name] = Pace(window.slide_ticks, until, window.extent_ticks is None)
    return paces


@dataclass(frozen=True, slots=True)
class Series:
    """Rows of a table by query and group. `order` are rows, series after series, each in the order of window ends.

    By row: `series` is the number of its series, `starts` and `ends` the edges of its window, `slide`, `until` and
    `grows` the pace of its query. By place in `order`: `follows` says whether the row's window comes right after that
    of the row before it.
    """

    order: NDArray[np.int64]
    series: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    slide: NDArray[np.int64]
    until: NDArray[np.int64]
    grows: NDArray[np.bool_]
    follows: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: pa.Table, groups: int, paces: Mapping[str, Pace]) -> Series:
        queries = as_array(rows[0])
        keys = [queries, *(as_array(rows.column(LEADING + i)) for i in range(groups))]
        starts, ends = (as_array(rows.column(index)).cast(pa.int64()).to_numpy() for index in (1, 2))
        if rows.num_columns == LEADING + groups:
            # Rows without values may be in a window several times: the first continues the first of the window before,
            # and so on.
            keys.append(pa.array(_occurrences([*keys, pa.array(ends)], rows.num_rows)))
        series, _ = number_groups(keys, rows.num_rows)
        order = np.lexsort((ends, series))
        encoded = queries.dictionary_encode()
        paces_of_queries = [paces[name] for name in encoded.dictionary.to_pylist()]
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        slide = np.array([pace.slide_ticks for pace in paces_of_queries], np.int64)[codes]
        follows = np.zeros(len(order), np.bool_)
        if len(order):
            later, earlier = order[1:], order[:-1]
            follows[1:] = (series[later] == series[earlier]) & (ends[later] == ends[earlier] + slide[later])
        return cls(
            order,
            series,
            starts,
            ends,
            slide,
            np.array([pace.until for pace in paces_of_queries], np.int64)[codes],
            np.array([pace.grows for pace in paces_of_queries], np.bool_)[codes],
            follows,
        )


def _occurrences(keys: list[pa.Array], rows: int) -> NDArray[np.int64]:
    """Return for each row the number of rows before it that have the same keys."""
    numbers, _ = number_groups(keys, rows)
    order = np.argsort(numbers, kind="stable")
    sorted_numbers = numbers[order]
    firsts = np.flatnonzero(np.append(True, sorted_numbers[1:] != sorted_numbers[:-1])[:rows])
    counts = np.diff(np.append(firsts, rows))
    occurrences = np.empty(rows, np.int64)
    occurrences[order] = np.arange(rows) - np.repeat(firsts, counts)
    return occurrences


def with_earlier(earlier: pa.Table | None, rows: pa.Table) -> pa.Table:
    """Return rows of earlier rounds, then those of this one."""
    return (rows if earlier is None else pa.concat_tables([earlier.cast(rows.schema), rows])).combine_chunks()
