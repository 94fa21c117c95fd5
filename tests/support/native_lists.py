"""What Spark computes natively for list components, in plain Python: a row an entry, as `spark.lists` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from windloom.plan import PartialSet
from windloom.plan.physical import PlannedComponent
from windloom.rounds.lower import arrow_type
from windloom.testing.holistic import frequencies

Row = Mapping[str, Any]


def entry_types(planned: PlannedComponent) -> list[pa.DataType]:
    assert planned.argument_type is not None
    return [arrow_type(planned.argument_type), pa.int64()]


def with_entries(one: PartialSet, table: pa.Table, members: Sequence[Sequence[Row]]) -> pa.Table:
    """The table with a row for each entry of every list; `members` are the tuples of each of its rows."""
    keys, column = 1 + len(one.group_by), 1 + len(one.group_by)
    tables = [table]
    for planned in one.components:
        if planned.family.is_list:
            found = [(cell, *entry) for cell, rows in enumerate(members) for entry in _entries(planned, rows)]
            cells = pa.array([entry[0] for entry in found], pa.int64())
            arrays = [table.column(i).take(cells) for i in range(keys)]
            arrays += [pa.nulls(len(found), table.schema.types[i]) for i in range(keys, table.num_columns)]
            for place, kind in enumerate(entry_types(planned)):
                arrays[column + place] = pa.array([entry[1 + place] for entry in found], kind)
            tables.append(pa.Table.from_arrays(arrays, names=table.column_names))
        column += len(planned.fields)
    return pa.concat_tables(tables)


def _entries(planned: PlannedComponent, rows: Sequence[Row]) -> list[tuple[Any, int]]:
    assert planned.component.argument is not None
    values = [row[str(planned.component.argument.column)] for row in rows]
    return frequencies([value for value in values if value is not None])
