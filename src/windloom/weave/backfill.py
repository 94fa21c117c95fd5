"""The cells of a set that was not kept, made from the tuples in the logs of past rounds.

Tuples are logged as they were projected for the queries of their round. They can be woven again, in any grouping
and at any edges, for a set whose columns are among those that were projected and whose predicate had a bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.tuples.set_tuples import ComponentInput
from windloom.kernels.tuples.tuples import TICK, Tuples
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import WovenFeed, WovenScan
from windloom.state.cells import Cells, merge_all
from windloom.state.state import CellCoverage
from windloom.weave.weave import weave_set


@dataclass(frozen=True, slots=True)
class LoggedRound:
    """The tuples of a past round, by number of the scan, and the largest tick of each stream before it."""

    plan: Plan
    tuples: Mapping[int, pa.Table]
    seen_before: Mapping[str, int]


def woven_again(
    partial_set: PartialSet, newest_first: Iterable[LoggedRound]
) -> tuple[Cells | None, CellCoverage] | None:
    """Return the set's cells from the last rounds, as far back as these hold everything that it needs without a gap."""
    parts: list[Cells] = []
    history: CellCoverage | None = None
    for round in newest_first:
        scan = next(
            (
                scan
                for scan in round.plan.scans
                if scan.stream == partial_set.stream and scan.number in round.tuples and isinstance(scan, WovenScan)
            ),
            None,
        )
        if scan is None:
            break
        table = round.tuples[scan.number]
        fed = _fed(scan, partial_set, table.num_columns - 1 - scan.signature.words)
        if fed is None:
            break
        if table.num_rows:
            tuples = Tuples.of(table, scan.signature.words, partial_set.edges)
            parts.append(weave_set(tuples, fed, partial_set))
        seen = round.seen_before.get(partial_set.base)
        history = CellCoverage() if seen is None else CellCoverage(seen + 1)
    if history is None:
        return None
    non_empty = [part for part in parts if len(part)]
    return merge_all(non_empty) if non_empty else None, history


def _fed(scan: WovenScan, partial_set: PartialSet, logged: int) -> WovenFeed | None:
    """Return how a scan would feed the set from its log, or None if something is missing there.

    `logged` is the number of columns in the log: the last columns, which are only kept, may be missing.
    """
    # A guard may have replaced values of tuples that the set wants by NULL.
    columns = {column.sql: index for index, column in enumerate(scan.columns[:logged]) if column.guards is None}
    signature = scan.signature
    bits = {predicate.sql: bit for bit, predicate in enumerate(signature.predicates)}
    bit: int | None = None
    if partial_set.predicate is None:
        if not signature.sees_all:
            return None
    elif signature.where is None or signature.where.sql != partial_set.predicate.sql or signature.only_signed:
        bit = bits.get(partial_set.predicate.guarded_sql)
        if bit is None or (bit >= signature.wanting and not signature.sees_all):
            return None
    reads = [_read(planned, columns, bits) for planned in partial_set.components]
    groups = [columns.get(expression.sql) for expression in partial_set.group_by]
    if None in reads or None in groups:
        return None
    return WovenFeed(
        partial_set.number,
        bit,
        tuple(index for index in groups if index is not None),
        tuple(read for read in reads if read is not None),
    )


def _read(planned: PlannedComponent, columns: Mapping[str, int], bits: Mapping[str, int]) -> ComponentInput | None:
    component = planned.component
    condition = None if component.where is None else bits.get(f"CAST({component.where.sql} AS BOOLEAN)")
    if component.where is not None and condition is None:
        return None
    if component.argument is None:
        return ComponentInput(filter=condition)
    argument = columns.get(planned.aggregator.woven_sql(component.argument.sql, planned.argument_type))
    by = TICK if component.kind in planned.aggregator.by_tick else None
    others = tuple(columns[other.sql] for other in component.others if other.sql in columns)
    if component.by is not None:
        by = columns.get(component.by.sql)
        if by is None:
            return None
    if argument is None or len(others) < len(component.others):
        return None
    return ComponentInput(argument, by, condition, others)
