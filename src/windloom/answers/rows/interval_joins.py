"""Interval joins of two streams by plain keys, made here: tuples are sorted by key and time, and looked up.

Joining the tuples of one round is little work compared with Spark's planning, compiling and shuffling. New tuples of
the first stream look up all tuples of the second, and kept tuples of the first look up new tuples of the second: no
pair is made that was reported before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.answers.blocks import Block, block_of
from windloom.model.arrays import Ints
from windloom.model.types import arrow_type, as_array, as_integers
from windloom.plan.plan import Plan
from windloom.plan.rows import NearJoin
from windloom.state.cells import number_groups
from windloom.state.tuple_store import ReportedWindows, RowSpan, needed_from, needed_until

#: About this many pairs are made at a time.
BLOCK_PAIRS = 1 << 20


@dataclass(frozen=True, slots=True)
class NearTuples:
    """The tuples of one side: ticks, rounds, and columns by name."""

    ticks: Ints
    rounds: Ints
    columns: Mapping[str, pa.Array]

    def take(self, rows: Ints) -> NearTuples:
        chosen = pa.array(rows)
        columns = {name: column.take(chosen) for name, column in self.columns.items()}
        return NearTuples(self.ticks[rows], self.rounds[rows], columns)


def fits(sides: Sequence[NearTuples], join: NearJoin) -> bool:
    """Return whether all keys, each with all times, fit into 64 bits; otherwise Spark makes the pairs."""
    ticks = np.concatenate([near_tuples.ticks for near_tuples in sides])
    if not len(ticks):
        return True
    length = min(int(ticks.max()) - int(ticks.min()), len(ticks) * join.within_ticks) + 2 * join.within_ticks
    return len(ticks) * length < 2**62


def near_blocks(plan: Plan, asked: ReportedWindows, join: NearJoin, sides: Sequence[NearTuples]) -> Iterator[Block]:
    """Yield the pairs that a span reports, some at a time."""
    planned, span = asked.planned, asked.span
    (selection,) = planned.rows.selections
    needed = []
    for side_tuples, strand in zip(sides, selection.strands, strict=True):
        ticks, begin = side_tuples.ticks, needed_from(planned.rows, strand.window, span)
        inside = (ticks >= begin) & (ticks < needed_until(span))
        needed.append(side_tuples if inside.all() else side_tuples.take(np.flatnonzero(inside)))
    left, right = needed
    for rows, others in _pairs(left, right, join, span):
        near_tuples, other = left.take(rows), right.take(others)
        earlier, later = np.minimum(near_tuples.ticks, other.ticks), np.maximum(near_tuples.ticks, other.ticks)
        enters = later + 1 if span.first is None else np.maximum(later + 1, span.first)
        stays = enters <= earlier + join.within_ticks
        if span.last is not None:
            stays &= enters <= span.last
        if stays.any():
            chosen, shape = pa.array(np.flatnonzero(stays)), plan.shapes[planned.shape]
            arrays = [pa.array(edge[stays]).view(arrow_type(shape.time)) for edge in (earlier, later)]
            for (side, name), (_, kind) in zip(join.columns, shape.columns, strict=True):
                arrays.append((near_tuples, other)[side].columns[name].take(chosen).cast(arrow_type(kind)))
            yield block_of(planned, shape, arrays)


def _pairs(left: NearTuples, right: NearTuples, join: NearJoin, span: RowSpan) -> Iterator[tuple[Ints, Ints]]:
    """Yield rows of both sides with equal keys, less than `within_ticks` apart, of which one is new."""
    if not len(left.ticks) or not len(right.ticks):
        return
    left_rows, right_rows, left_places, right_places = _placed(left, right, join)
    is_new_left, is_new_right = _new(left, span)[left_rows], _new(right, span)[right_rows]
    yield from _looked_up(left_rows[is_new_left], left_places[is_new_left], right_rows, right_places, join.within_ticks)
    if not is_new_left.all():
        is_kept_left = ~is_new_left
        sides = left_rows[is_kept_left], left_places[is_kept_left], right_rows[is_new_right], right_places[is_new_right]
        yield from _looked_up(*sides, join.within_ticks)


def _new(near_tuples: NearTuples, span: RowSpan) -> NDArray[np.bool_]:
    """Return which tuples cannot be part of a pair that was reported before."""
    if not span.follows:
        return np.ones(len(near_tuples.ticks), np.bool_)
    assert span.first is not None
    return (near_tuples.ticks >= span.first - 1) | (near_tuples.rounds > span.seen)


def _placed(left: NearTuples, right: NearTuples, join: NearJoin) -> tuple[Ints, Ints, Ints, Ints]:
    """Return rows of both sides that have all keys, and their places on one line: key by key, and by time within a key.

    Keys lie so far apart on this line that no tuple is near a tuple of another key.
    """
    rows = [_with_keys(left, [mine for mine, _ in join.keys]), _with_keys(right, [other for _, other in join.keys])]
    keys = [
        pa.concat_arrays([left.columns[mine].take(pa.array(rows[0])), right.columns[its].take(pa.array(rows[1]))])
        for mine, its in join.keys
    ]
    numbers, _ = number_groups(keys, len(rows[0]) + len(rows[1]))
    ticks = np.concatenate([left.ticks[rows[0]], right.ticks[rows[1]]])
    if not len(ticks):
        return rows[0], rows[1], ticks, ticks
    # Ranks keep the line short: how far apart two distant tuples lie does not matter.
    order = np.argsort(ticks, kind="stable")
    steps = np.minimum(np.diff(ticks[order]), join.within_ticks)
    times = np.empty(len(ticks), np.int64)
    times[order] = np.concatenate([[0], np.cumsum(steps)])
    length = int(times.max()) + 2 * join.within_ticks
    places = numbers * length + times
    order = np.argsort(places[len(rows[0]) :], kind="stable")
    return rows[0], rows[1][order], places[: len(rows[0])], places[len(rows[0]) :][order]


def _with_keys(near_tuples: NearTuples, names: Sequence[str]) -> Ints:
    """Return the rows that have no NULL among their keys: NULL equals nothing."""
    whole = np.ones(len(near_tuples.ticks), np.bool_)
    for name in names:
        whole &= np.asarray(pc.is_valid(near_tuples.columns[name]).to_numpy(zero_copy_only=False))
    return np.flatnonzero(whole)


def _looked_up(rows: Ints, places: Ints, others: Ints, sorted_places: Ints, within: int) -> Iterator[tuple[Ints, Ints]]:
    first = np.searchsorted(sorted_places, places - within, side="right")
    counts = np.searchsorted(sorted_places, places + within, side="left") - first
    before = np.concatenate([[0], np.cumsum(counts)])
    begin = 0
    while begin < len(rows):
        end = max(begin + 1, int(np.searchsorted(before, before[begin] + BLOCK_PAIRS, side="right")) - 1)
        row_index = np.repeat(np.arange(begin, end), counts[begin:end])
        if len(row_index):
            other_index = first[row_index] + np.arange(before[begin], before[end]) - before[row_index]
            yield rows[row_index], others[other_index]
        begin = end


def near_tuples(table: pa.Table, names: Mapping[str, str], tick: str, round: str) -> NearTuples:
    """Return one side from a table; `names` has its columns, by name of the stream's column."""
    columns = {name: as_array(table.column(column_name)) for name, column_name in names.items()}
    return NearTuples(as_integers(table.column(tick)), as_integers(table.column(round)), columns)
