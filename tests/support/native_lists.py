"""What Spark computes natively for list components, in plain Python: a row an entry, as `spark.lists` says."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from windloom.aggregates.arrow import arrow_type
from windloom.model.approximate import (
    FIRST_BUCKET,
    GROWTH,
    INFINITE_BUCKET,
    MOST_ENTRIES,
    NAN_BUCKET,
    RANK_BITS,
    REGISTER_BITS,
    REGISTERS,
)
from windloom.plan.physical import PlannedComponent, Scan
from windloom.testing.holistic import frequencies, most_frequent

Row = Mapping[str, Any]


def entry_types(planned: PlannedComponent) -> list[pa.DataType]:
    assert planned.argument_type is not None
    if planned.component.own is not None:
        return [arrow_type(planned.component.own.argument), pa.int64()]
    if planned.component.kind in ("buckets", "registers"):
        return [pa.int64(), pa.int64()]
    return [arrow_type(planned.argument_type), pa.int64()]


def with_entries(one: Scan, table: pa.Table, members: Sequence[Sequence[Row]]) -> pa.Table:
    """The table with a row for each entry of every list; `members` are the tuples of each of its rows."""
    keys = column = 1 + len(one.key_types)
    tables = [table]
    for planned in one.components:
        if planned.card.by_value:
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
    where = planned.component.where
    if where is not None:
        rows = [row for row in rows if row[str(where.column)] is True]
    assert planned.component.argument is not None
    values = [row[str(planned.component.argument.column)] for row in rows]
    values = [value for value in values if value is not None]
    match planned.component.kind:
        case "buckets":
            return frequencies([_bucket(float(value)) for value in values])
        case "registers":
            ranks: dict[int, int] = {}
            for value, _ in frequencies(values):
                register, rank = _hashed(value)
                ranks[register] = max(rank, ranks.get(register, 0))
            return list(ranks.items())
        case "top_frequencies":
            return [(one["value"], one["count"]) for one in most_frequent(frequencies(values))[:MOST_ENTRIES]]
    return frequencies(values)


def _bucket(value: float) -> int:
    if math.isnan(value):
        return NAN_BUCKET
    if value == 0:
        return 0
    size = INFINITE_BUCKET if math.isinf(value) else FIRST_BUCKET + math.ceil(math.log(abs(value)) / math.log(GROWTH))
    return size if value > 0 else -size


def _hashed(value: Any) -> tuple[int, int]:
    """Any hash will do, the same in every process."""
    number = int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=8).digest(), "little")
    rest = number >> REGISTER_BITS | 1 << RANK_BITS
    return number % REGISTERS, (rest ^ rest - 1).bit_count()
