"""Rows of EMIT EARLY, where each report of a window and group replaces the one before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.aggregates.arrow import as_array
from windloom.model.emission import AS_OF, REPORT
from windloom.rounds.groups import number_groups

WITHDRAWN = "withdrawn"
_EDGES = ("window_start", "window_end")


def replaced(
    rows: pa.Table, keys: Sequence[str], *, is_ordered: bool = True, keeps_withdrawn: bool = False
) -> pa.Table:
    """Return the last report of every window and group, in the order of rows; withdrawn rows are left out.

    `keys` are the grouping columns, and `query` if there are rows of several queries. Rows are in the order of rounds;
    if they are not (`is_ordered=False`), their `as_of` decides, and a row without one is the last report.
    """
    if not rows.num_rows:
        return rows
    by = np.zeros(rows.num_rows, np.int64) if is_ordered else _as_of(rows)
    chosen = np.sort(_last(rows, [*_EDGES, *keys], by))
    reports = rows.take(pa.array(chosen))
    return reports if keeps_withdrawn else reports.filter(pc.not_equal(reports[REPORT], WITHDRAWN))


def present(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the present result: all provisional rows, and the final row of each group in its last window."""
    is_final = pc.equal(rows[REPORT], "final")
    final = rows.filter(is_final)
    if not final.num_rows:
        return rows
    last = _last(final, keys, as_array(final["window_end"]).cast(pa.int64()).to_numpy())
    return pa.concat_tables([rows.filter(pc.invert(is_final)), final.take(pa.array(np.sort(last)))])


def _as_of(rows: pa.Table) -> NDArray[np.int64]:
    ticks = as_array(rows[AS_OF]).cast(pa.int64())
    instants: NDArray[np.int64] = ticks.fill_null(np.iinfo(np.int64).max).to_numpy(zero_copy_only=False)
    return instants


def _last(rows: pa.Table, keys: Sequence[str], by: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each group with the largest value of `by`; the last such row if there are several."""
    arrays = [as_array(rows[key]) for key in keys]
    numbers, _ = number_groups(arrays, rows.num_rows)
    last_rows = np.zeros(int(numbers.max()) + 1, np.int64)
    order = np.argsort(by, kind="stable")
    last_rows[numbers[order]] = order  # of several, the last one stays
    return last_rows
