"""EMIT CHANGES: rows that are new or different since the window before, and groups that have vanished.

For every query and group, the rows of consecutive windows are compared. A row after a window without one is an insert,
a row that differs from the one before is an update, and the first window without a row after one with a row is a
delete. A window that HAVING leaves out has no row. A row that was reported last and has not vanished is *standing*: it
is kept for the next round.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.arrow import as_array
from windloom.model.emission import CHANGE
from windloom.rounds.emission.same import same_rows
from windloom.rounds.emission.series import LEADING, Pace, Series, with_earlier

# Not an Arrow array: making the first one imports pandas, which takes longer than a plan.
_KINDS = ("insert", "update", "delete")
_INSERT, _UPDATE, _DELETE = range(3)


def changes(
    standing: pa.Table | None, rows: pa.Table, groups: int, paces: Mapping[str, Pace]
) -> tuple[pa.Table, pa.Table]:
    """Return (the changes, the rows that stand after them); the first table has a further column, `change`.

    The columns of all tables are `query`, `window_start`, `window_end`, `groups` grouping columns, and the others.
    Changes come in the order of windows, so that they can be applied one after another.
    """
    known = 0 if standing is None else standing.num_rows
    every = with_earlier(standing, rows)
    every_series = Series.of(every, groups, paces)
    order, ends = every_series.order, every_series.ends
    # A row is compared with that of the window right before it.
    later = np.flatnonzero(every_series.follows)
    before, after = every_series.order[later - 1], every_series.order[later]
    same = np.ones(len(later), np.bool_)
    for column in range(LEADING + groups, every.num_columns):
        same &= same_rows(as_array(every.column(column)), before, after)
    differs = np.ones(len(every_series.order), np.bool_)
    differs[later[same]] = False
    changed = differs & (order >= known)
    is_last = ~np.append(every_series.follows[1:], False)[: len(order)]
    passed = ends[order] <= every_series.until[order] - every_series.slide[order]
    gone, left = order[is_last & passed], order[is_last & ~passed]
    reported = order[changed]
    kinds = np.concatenate([np.where(every_series.follows[changed], _UPDATE, _INSERT), np.full(len(gone), _DELETE)])
    at = np.concatenate([ends[reported], ends[gone] + every_series.slide[gone]])
    by_window = np.lexsort((every_series.series[np.concatenate([reported, gone])], at))
    table = pa.concat_tables([every.take(pa.array(reported)), _vanished(every, gone, groups, every_series)])
    table = table.append_column(CHANGE, pa.array(_KINDS, pa.string()).take(pa.array(kinds)))
    return table.take(pa.array(by_window)).combine_chunks(), every.take(pa.array(np.sort(left)))


def _vanished(every: pa.Table, gone: NDArray[np.int64], groups: int, every_series: Series) -> pa.Table:
    """Return rows of the windows from which groups are missing: their keys, and NULL for everything else."""
    rows = every.take(pa.array(gone))
    moved = np.where(every_series.grows[gone], 0, every_series.slide[gone])
    arrays = [rows.column(column) for column in range(LEADING + groups)]
    arrays[1:LEADING] = [
        pa.array(every_series.starts[gone] + moved).cast(every.schema.field(1).type),
        pa.array(every_series.ends[gone] + every_series.slide[gone]).cast(every.schema.field(2).type),
    ]
    arrays += [pa.nulls(len(gone), field.type) for field in list(every.schema)[LEADING + groups :]]
    return pa.Table.from_arrays(arrays, schema=every.schema)
