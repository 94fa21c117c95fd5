"""What the Spark job of row queries does, in plain Python: rows of a span, from the tuples in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windloom.aggregates.arrow import arrow_type
from windloom.durable.tuples import ROUND, TICK, TupleFolder, column_name
from windloom.model import Rows, Stream
from windloom.plan import Plan
from windloom.plan.rows import PlannedRows
from windloom.rounds import Block
from windloom.rounds.rows.kept import Kept
from windloom.rounds.rows.spans import AskedRows, RowSpan
from windloom.testing.rows import changed, joined_tuples, labelled, pair_answer, passing, standing

Row = dict[str, Any]


def row_blocks(plan: Plan, asked: Sequence[AskedRows], kept: Kept, folder: TupleFolder) -> Iterator[Block]:
    for one in asked:
        streams = {
            stream.name: tuples_of(stream, kept, folder)
            for stream in plan.streams
            if stream.name in one.planned.rows.streams
        }
        rows = rows_in_span(one.planned.rows, streams, one.span)
        if rows:
            yield block_of(plan, one.planned, rows)


def tuples_of(stream: Stream, kept: Kept, folder: TupleFolder) -> list[Row]:
    """All tuples that are kept of a stream, by the names of its columns, with `__tick` and `__round`."""
    found = []
    for file in kept[stream.name].files if stream.name in kept else ():
        for row in folder.read(file).to_pylist():
            own = {name: row.get(column_name(stream, name)) for name in stream.columns}
            found.append({**own, TICK: row[TICK], ROUND: row[ROUND]})
    return found


def rows_in_span(rows: Rows, streams: Mapping[str, Sequence[Row]], span: RowSpan) -> list[Row]:
    """What a query reports of the windows of a span."""
    if rows.within:
        return _pairs(rows, streams, span)
    slide = rows.window.slide_ticks
    before = []
    if span.follows:
        assert span.first is not None
        seen = {name: [row for row in own if row[ROUND] <= span.seen] for name, own in streams.items()}
        before = standing(rows, seen, span.first - slide, TICK)
    found = []
    for end in _ends(rows, streams, span):
        now = standing(rows, streams, end, TICK)
        found += labelled(rows, changed(rows, now, before), end)
        before = now
    return found


def _ends(rows: Rows, streams: Mapping[str, Sequence[Row]], span: RowSpan) -> range:
    slide, residue = rows.window.slide_ticks, rows.window.end_ticks
    ticks = [row[TICK] for own in streams.values() for row in own]
    if not ticks:
        return range(0)
    lowest, highest = min(ticks), max(ticks) + rows.window.range_ticks + 2 * slide
    first = lowest - (lowest - residue) % slide if span.first is None else span.first
    return range(first, highest if span.last is None else min(highest, span.last + 1), slide)


def _pairs(rows: Rows, streams: Mapping[str, Sequence[Row]], span: RowSpan) -> list[Row]:
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
    arrays += [pa.array([row[name] for row in rows], arrow_type(kind)) for name, kind in shape.columns]
    table = pa.Table.from_arrays(arrays, names=[name for name, _ in (*edges, *shape.columns)])
    return Block(planned.shape, (planned.name,), np.array([0, table.num_rows], np.int64), table)
