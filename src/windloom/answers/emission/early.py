"""EMIT EARLY: provisional rows of open windows; each holds until another one, or the final one, replaces it.

A report is about the rows of all open windows, computed from the tuples so far. It gives only rows that are new, or
that differ from the row last reported for the same window and group. A reported row that no longer exists is withdrawn:
HAVING may leave it out now, or the landmark of its window has moved. When a window is closed, its rows are final: all
of them are reported, and provisional rows that are not among them are withdrawn. Rows reported of open windows are
*standing*: they are kept for the next round.

The largest event time of the streams that a query reads passes multiples of its EVERY, counted from the epoch as
windows are. A round in which it passes one, or several, makes one report, as of the last of them, over all tuples
that have come. The first round of a query makes one too. So a report depends only on what came before its round and
in it, and a round that is repeated makes the same report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.answers.emission.changes import LEADING, rows_without_values, same_rows, with_earlier
from windloom.model.clauses import AS_OF, REPORT, Emits
from windloom.model.query import Query
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.model.types import as_array
from windloom.plan.plan import Plan
from windloom.state.cells import number_groups
from windloom.state.state import State


@dataclass(frozen=True, slots=True)
class EarlyTurn:
    """A query in a round: windows that end by `closed` are final; if it `is_due`, others are reported as of `as_of`."""

    closed: int
    is_due: bool
    as_of: int


def early_turns(plan: Plan, before: State, after: State) -> dict[str, EarlyTurn]:
    """Return what a round means for each query that reports early, by name, given the states before and after it."""
    turns = {}
    shapes = {number for number, shape in enumerate(plan.shapes) if shape.emits is Emits.EARLY}
    for planned in (planned for planned in plan.queries if planned.shape in shapes) if shapes else ():
        query = planned.query
        closed, passed = after.closed_over(query.inputs), _passed(query, after.seen)
        earlier = TICK_MIN if planned.name in before.fresh else _passed(query, before.seen)
        turns[planned.name] = EarlyTurn(closed, earlier < passed and closed < TICK_MAX, passed)
    return turns


def _passed(query: Query, seen: Mapping[str, int]) -> int:
    """Return the last multiple of EVERY that the largest event time of all inputs has reached."""
    latest = max((seen[stream] for stream in query.inputs if stream in seen), default=TICK_MIN)
    return latest if latest == TICK_MIN else latest - latest % query.emission.every_ticks


# Not an Arrow array: making the first one imports pandas, which takes longer than a plan.
_REPORTS = ("withdrawn", "early", "final")
_WITHDRAWN, _EARLY, _FINAL = range(3)


def early_rows(
    standing: pa.Table | None, rows: pa.Table, groups: int, turns: Mapping[str, EarlyTurn]
) -> tuple[pa.Table, pa.Table]:
    """Return (the reported rows, with two further columns `report` and `as_of`; the rows that stand after them).

    The columns of all tables are `query`, `window_start`, `window_end`, `groups` grouping columns, and the others. Rows
    of closed windows have no `as_of`: nothing replaces them. Rows come in the order of windows; within a window,
    withdrawn rows come first.
    """
    known = 0 if standing is None else standing.num_rows
    every = with_earlier(standing, rows)
    is_closed, is_due, as_of = _turns_of(every, turns)
    # Rows that stood, and the rows of the round that have the same query, window and group.
    keys = [as_array(every.column(column)) for column in range(LEADING + groups)]
    numbers, _ = number_groups(keys, every.num_rows)
    row_of = np.full(int(numbers.max()) + 1 if len(numbers) else 0, -1, np.int64)
    row_of[numbers[:known]] = np.arange(known)
    matched = row_of[numbers[known:]]
    earlier, later = matched[matched >= 0], known + np.flatnonzero(matched >= 0)
    is_row = np.arange(every.num_rows) >= known
    is_replaced, is_same = np.zeros(every.num_rows, np.bool_), np.zeros(every.num_rows, np.bool_)
    is_replaced[earlier] = True
    same = np.ones(len(later), np.bool_)
    for column in range(LEADING + groups, every.num_columns):
        same &= same_rows(as_array(every.column(column)), earlier, later)
    is_same[later[same]] = True
    final, early = np.flatnonzero(is_row & is_closed), np.flatnonzero(is_row & ~is_closed & ~is_same)
    gone = np.flatnonzero(~is_row & (is_closed | is_due) & ~is_replaced)
    left = np.flatnonzero(~is_closed & np.where(is_due, is_row, ~is_row))

    reported = np.concatenate([gone, early, final])
    kinds = np.repeat([_WITHDRAWN, _EARLY, _FINAL], [len(gone), len(early), len(final)])
    table = pa.concat_tables(
        [rows_without_values(every, gone, groups), every.take(pa.array(np.concatenate([early, final])))]
    )
    instants = pa.array(as_of[reported], mask=is_closed[reported]).cast(every.schema.field(2).type)
    table = table.append_column(REPORT, pa.array(_REPORTS, pa.string()).take(pa.array(kinds))).append_column(
        AS_OF, instants
    )
    by_window = np.lexsort((kinds, as_array(every.column(2)).cast(pa.int64()).to_numpy()[reported]))
    return table.take(pa.array(by_window)).combine_chunks(), every.take(pa.array(left))


def _turns_of(
    every: pa.Table, turns: Mapping[str, EarlyTurn]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """Return for each row whether its window is closed, whether its query reports open windows, and as of when."""
    encoded = as_array(every.column(0)).dictionary_encode()
    turns_of_queries = [turns[name] for name in encoded.dictionary.to_pylist()]
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    ends = as_array(every.column(2)).cast(pa.int64()).to_numpy()
    closed = np.array([turn.closed for turn in turns_of_queries], np.int64)[codes]
    due = np.array([turn.is_due for turn in turns_of_queries], np.bool_)[codes]
    return ends <= closed, due, np.array([turn.as_of for turn in turns_of_queries], np.int64)[codes]


def all_final(rows: pa.Table) -> pa.Table:
    """Return the rows of windows that are all closed, as they are reported."""
    reports = pa.repeat(pa.scalar(_REPORTS[_FINAL], pa.string()), rows.num_rows)
    instants = pa.nulls(rows.num_rows, rows.schema.field("window_end").type)
    return rows.append_column(REPORT, reports).append_column(AS_OF, instants)
