"""Positions of tuples between rounds: how many are counted, and which still wait for the frontier of their stream.

The position of a tuple is final when the frontier of its stream has passed it, since no earlier tuple can come then.
Until then it waits, as it came. A tuple that comes behind the frontier is late, and has no position. So positions, and
with them the windows of rows, are the same however a stream is divided into rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windloom.model.arrays import Ints
from windloom.model.expression import Expression
from windloom.model.time import TICK_MIN
from windloom.model.types import DataType, arrow_type, as_array
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import WovenScan
from windloom.state.cells import concat_keys, number_groups


class Counting(NamedTuple):
    """Tuples that are counted together: those of a stream, separately for each value of the keys (SQL)."""

    stream: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PositionCounts:
    """The number of tuples with a position, per key: columns `k0…` and `count`; without keys there is one row or none.

    Tuples up to the tick `after` are not counted, because they came before the first query.
    """

    table: pa.Table | None = None
    after: int = TICK_MIN

    @property
    def most(self) -> int:
        """The next position of the key that has come furthest."""
        return 0 if self.table is None or not self.table.num_rows else int(np.max(self._numbers))

    @property
    def _numbers(self) -> Ints:
        assert self.table is not None
        return np.asarray(self.table["count"].to_numpy(), np.int64)

    @property
    def _keys(self) -> list[pa.Array]:
        assert self.table is not None
        return [as_array(column) for column in self.table.columns[:-1]]

    def plus(self, more: pa.Table) -> PositionCounts:
        """Return the counts with further tuples, given in the same columns."""
        if self.table is None:
            return PositionCounts(more, self.after)
        added = PositionCounts(more)
        rows = self.table.num_rows + more.num_rows
        numbers, keys = number_groups(concat_keys(self._keys, added._keys), rows)
        total = np.zeros(len(keys[0]) if keys else 1, np.int64)
        np.add.at(total, numbers, np.concatenate([self._numbers, added._numbers]))
        names = self.table.column_names
        return PositionCounts(pa.Table.from_arrays([*keys, pa.array(total)], names=names), self.after)

    def of(self, keys: list[pa.Array], groups: int) -> Ints:
        """Return the next position of each group, by its values of the keys."""
        if self.table is None or not self.table.num_rows:
            return np.zeros(groups, np.int64)
        if not keys:
            return np.full(groups, self._numbers[0])
        known = self.table.num_rows
        numbers, distinct = number_groups(concat_keys(keys, self._keys), groups + known)
        next_position = np.zeros(len(distinct[0]), np.int64)
        next_position[numbers[groups:]] = self._numbers
        return next_position[numbers[:groups]]


@dataclass(frozen=True, slots=True)
class Positions:
    """`waiting` are tuples in front of the frontier, by stream, in its own columns."""

    waiting: Mapping[str, pa.Table] = field(default_factory=dict)
    counts: Mapping[Counting, PositionCounts] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        counted = sum(counts.table.nbytes for counts in self.counts.values() if counts.table is not None)
        return int(counted + sum(table.nbytes for table in self.waiting.values()))

    def counts_of(self, counted: PartialSet | WovenScan) -> PositionCounts:
        return self.counts.get(counting_of(counted), PositionCounts())

    def carried(self, plan: Plan, seen: Mapping[str, int]) -> Positions:
        """Return the positions for the queries of another plan. A new counting begins with the tuples after `seen`."""
        counted = [partial_set for partial_set in plan.sets if partial_set.counted_by is not None]
        streams = {partial_set.stream for partial_set in counted}
        counts = {
            counting_of(partial_set): self.counts.get(
                counting_of(partial_set), PositionCounts(after=seen.get(partial_set.stream, TICK_MIN))
            )
            for partial_set in counted
        }
        return Positions({name: table for name, table in self.waiting.items() if name in streams}, counts)


def counting_of(counted: PartialSet | WovenScan) -> Counting:
    return Counting(counted.stream, tuple(key.sql for key in counted.counted_by or ()))


def counted_scans(plan: Plan) -> Iterable[WovenScan]:
    return (scan for scan in plan.scans if isinstance(scan, WovenScan) and scan.counted_by is not None)


def counted_tuples(plan: Plan, scan: WovenScan, tuples: pa.Table) -> pa.Table:
    """Return the number of tuples of each key: `k0…`, `count`. A scan of positions leaves no tuple out."""
    keys = scan.counted_by or ()
    places = [next(i for i, column in enumerate(scan.columns) if column.sql == key.sql) for key in keys]
    first = tuples.num_columns - len(scan.columns)
    values = [
        as_array(tuples.column(first + place)).cast(arrow_type(kind))
        for place, kind in zip(places, key_types(plan, scan, keys), strict=True)
    ]
    numbers, distinct = number_groups(values, tuples.num_rows)
    total = np.bincount(numbers, minlength=len(distinct[0]) if distinct else 1).astype(np.int64)
    columns = [*distinct, pa.array(total)] if tuples.num_rows else [*distinct, pa.array([], pa.int64())]
    return pa.Table.from_arrays(columns, names=[*(f"k{i}" for i in range(len(keys))), "count"])


def key_types(plan: Plan, scan: WovenScan, keys: Sequence[Expression]) -> list[DataType]:
    partial_set = plan.sets[scan.feeds[0].number]
    return [partial_set.group_types[partial_set.group_by.index(key)] for key in keys]
