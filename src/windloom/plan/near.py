"""Interval joins of two streams by plain keys, which need no Spark job: recognises them among the row queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.model.types import TypeKind
from windloom.plan.rows import PlannedRows

#: Types whose keys are equal if their Arrow values are. Floats are not among them, because zero has a sign.
_ALIKE = (
    TypeKind.INTEGER,
    TypeKind.DECIMAL,
    TypeKind.BOOLEAN,
    TypeKind.STRING,
    TypeKind.DATE,
    TypeKind.TIMESTAMP,
    TypeKind.TIMESTAMP_NTZ,
)


@dataclass(frozen=True, slots=True)
class NearJoin:
    """The keys that are equal on both sides, and the columns of pairs, by side (0 or 1) and name in the stream."""

    within_ticks: int
    keys: tuple[tuple[str, str], ...]
    columns: tuple[tuple[int, str], ...]


def near_join(planned: PlannedRows, streams: Mapping[str, Stream]) -> NearJoin | None:
    """The interval join of a query; None if the query is not such a join, so that Spark makes its rows."""
    rows = planned.rows
    if not rows.within or planned.is_aggregated:
        return None
    (selection,) = rows.selections
    strands = selection.strands
    ticks = selection.attached[0].within_ticks if selection.attached else None
    if len(strands) != 2 or ticks is None or any(strand.where is not None for strand in strands):
        return None
    column_of = {
        f"{Expression.of_column(strand.alias).sql}.{Expression.of_column(name).sql}": (side, name)
        for side, strand in enumerate(strands)
        for name in strand.columns
    }
    keys = []
    for condition in selection.conditions:
        left, equals, right = condition.expression.sql.partition(" = ")
        pair = sorted(column_of[column] for column in (left, right) if column in column_of)
        if not equals or [side for side, _ in pair] != [0, 1]:
            return None
        kinds = [streams[strand.stream].columns[name] for strand, (_, name) in zip(strands, pair, strict=True)]
        if kinds[0] != kinds[1] or kinds[0].kind not in _ALIKE:
            return None
        keys.append((pair[0][1], pair[1][1]))
    columns = [column_of.get(column.expression.sql) for column in selection.columns]
    plain = tuple(column for column in columns if column is not None)
    return NearJoin(ticks, tuple(keys), plain) if keys and len(plain) == len(columns) else None
