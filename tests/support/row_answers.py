"""What the Spark job of row queries does, in plain Python: rows of a span, from the tuples in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from support.native import field_types, fields_of
from windloom.answers.blocks import Block
from windloom.answers.rows.row_queries import summarised
from windloom.checkpoint.tuple_files import ROUND, TICK, column_name
from windloom.checkpoint.tuple_folder import TupleFolder
from windloom.model import RowQuery, Selection, Stream
from windloom.model.types import arrow_type
from windloom.plan.plan import Plan
from windloom.plan.rows import PlannedRows
from windloom.state.cells import Cells
from windloom.state.tuple_store import ReportedWindows, RowSpan, TupleStores, last_end_upto
from windloom_tools.oracle.joins import Joined
from windloom_tools.oracle.rows import changed, ends_of, joined_tuples, labelled, pair_answer, passing, standing
from windloom_tools.oracle.scalars import scalar

Row = dict[str, Any]


def row_blocks(plan: Plan, asked: Sequence[ReportedWindows], kept: TupleStores, folder: TupleFolder) -> Iterator[Block]:
    for asked_rows in asked:
        rows = rows_in_span(asked_rows.planned.rows, _streams_of(plan, asked_rows, kept, folder), asked_rows.span)
        if rows:
            yield block_of(plan, asked_rows.planned, rows)


def row_summaries(
    plan: Plan, asked: Sequence[ReportedWindows], kept: TupleStores, folder: TupleFolder
) -> dict[str, Cells]:
    """Partials of the rows that enter in a span, by first and last end and group."""
    found = {}
    for asked_rows in asked:
        streams = _streams_of(plan, asked_rows, kept, folder)
        lines = _entering(asked_rows.planned, streams, asked_rows.span)
        if lines:
            found[asked_rows.planned.name] = summarised(
                asked_rows.planned, plan, _partials(plan, asked_rows.planned, lines)
            )
    return found


def _streams_of(
    plan: Plan, asked_rows: ReportedWindows, kept: TupleStores, folder: TupleFolder
) -> dict[str, list[Row]]:
    names = asked_rows.planned.rows.streams
    return {stream.name: tuples_of(stream, kept, folder) for stream in plan.streams if stream.name in names}


def _entering(
    planned: PlannedRows, streams: Mapping[str, Sequence[Row]], span: RowSpan
) -> dict[tuple[Any, ...], list[Joined]]:
    """Rows that enter, by first end, last end and group."""
    rows = planned.rows
    (selection,) = rows.selections
    held = [passing(strand, streams) for strand in selection.strands]
    found: dict[tuple[Any, ...], list[Joined]] = {}
    for parts in joined_tuples(selection, held, TICK):
        ends = _ends(selection, parts, span)
        if ends is not None:
            first, last = ends
            row = Joined({strand.alias: part for strand, part in zip(selection.strands, parts, strict=True)})
            group = tuple(scalar(grouping.expression.sql)(row) for grouping in planned.query.group_by)
            found.setdefault((first, last, *group), []).append(row)
    return found


def _partials(plan: Plan, planned: PlannedRows, lines: Mapping[tuple[Any, ...], list[Joined]]) -> pa.Table:
    kinds = [pa.int64(), pa.int64(), *(arrow_type(kind) for _, kind in plan.shapes[planned.shape].groups)]
    arrays = [pa.array([key[i] for key in lines], kind) for i, kind in enumerate(kinds)]
    for component in planned.components:
        fields = [fields_of(component, members) for members in lines.values()]
        for place, kind in enumerate(field_types(component, {})):
            arrays.append(pa.array([field[place] for field in fields], kind))
    return pa.Table.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])


def tuples_of(stream: Stream, kept: TupleStores, folder: TupleFolder) -> list[Row]:
    """All tuples that are kept of a stream, by the names of its columns, with `__tick` and `__round`."""
    found = []
    for file in kept[stream.name].files if stream.name in kept else ():
        for row in folder.read(file).to_pylist():
            own = {name: row.get(column_name(stream, name)) for name in stream.columns}
            found.append({**own, TICK: row[TICK], ROUND: row[ROUND]})
    return found


def rows_in_span(rows: RowQuery, streams: Mapping[str, Sequence[Row]], span: RowSpan) -> list[Row]:
    """What a query reports of the windows of a span."""
    if rows.within:
        return _pairs(rows, streams, span)
    if rows.tells_end:
        return list(_with_ends(rows, streams, span))
    slide, before, last = rows.window.slide_ticks, [], None
    if span.follows:
        assert span.first is not None
        seen = {name: [row for row in own if row[ROUND] <= span.seen] for name, own in streams.items()}
        last = span.first - slide
        before = standing(rows, seen, last, TICK)
    found = []
    for end in ends_of(rows, streams, TICK):
        if (span.first is None or end >= span.first) and (span.last is None or end <= span.last):
            now = standing(rows, streams, end, TICK)
            found += labelled(rows, changed(rows, now, before if last == end - slide else []), end)
            before, last = now, end
    return found


def _ends(selection: Selection, parts: Sequence[Row | None], span: RowSpan) -> tuple[int, int] | None:
    """The first and the last end at which a row stands that a round reports; None if it reports none."""
    pairs = [(part, strand.window) for part, strand in zip(parts, selection.strands, strict=True) if part]
    first = max(last_end_upto(window, part[TICK]) + window.slide_ticks for part, window in pairs)
    last = min(last_end_upto(window, part[TICK] + window.range_ticks) for part, window in pairs)
    if span.first is not None and first < span.first:
        if span.follows and all(part[ROUND] <= span.seen for part, _ in pairs):
            return None
        first = span.first
    return (first, last) if first <= last and (span.last is None or first <= span.last) else None


def _with_ends(rows: RowQuery, streams: Mapping[str, Sequence[Row]], span: RowSpan) -> Iterator[Row]:
    """Rows where they enter, with the end of the first window without them."""
    slide, length = rows.window.slide_ticks, rows.window.range_ticks
    for selection in rows.selections:
        held = [passing(strand, streams) for strand in selection.strands]
        for parts in joined_tuples(selection, held, TICK):
            ends = _ends(selection, parts, span)
            if ends is not None:
                first, last = ends
                row = Joined({strand.alias: part for strand, part in zip(selection.strands, parts, strict=True)})
                scope = row if len(selection.strands) > 1 else parts[0]
                values = [scalar(column.expression.sql)(scope) for column in selection.columns]
                named = dict(zip((column.name for column in rows.columns), values, strict=True))
                yield {"window_start": first - length, "window_end": first, **named, "valid_until": last + slide}


def _pairs(rows: RowQuery, streams: Mapping[str, Sequence[Row]], span: RowSpan) -> list[Row]:
    (selection,) = rows.selections
    held = [passing(strand, streams) for strand in selection.strands]
    found = []
    for parts in joined_tuples(selection, held, TICK):
        tuples = [part for part in parts if part is not None]
        enters = max(part[TICK] for part in tuples) + 1
        leaves = min(
            part[TICK] + strand.window.range_ticks for part, strand in zip(tuples, selection.strands, strict=True)
        )
        if span.first is not None and enters < span.first:
            if span.follows and all(part[ROUND] <= span.seen for part in tuples):
                continue
            enters = span.first
        if enters <= leaves and (span.last is None or enters <= span.last):
            found.append(pair_answer(rows, selection, parts, TICK))
    return found


def block_of(plan: Plan, planned: PlannedRows, rows: Sequence[Row]) -> Block:
    shape = plan.shapes[planned.shape]
    edges = [("window_start", shape.time), ("window_end", shape.time)]
    arrays = [pa.array([row[name] for row in rows], pa.int64()).view(arrow_type(kind)) for name, kind in edges]
    columns = shape.groups + shape.columns
    arrays += [pa.array([row[name] for row in rows], arrow_type(kind)) for name, kind in columns]
    table = pa.Table.from_arrays(arrays, names=[name for name, _ in (*edges, *columns)])
    return Block(planned.shape, (planned.name,), np.array([0, table.num_rows], np.int64), table)
