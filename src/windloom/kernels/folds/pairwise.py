"""Pairwise: finds pairs of groups by their keys and walks along the rows of both, stretch by stretch.

| time   | O(groups of both sides) to find pairs, O(stretches) per pair, O(matching rows) per value that is folded |
| space  | pairs in blocks, stretches in blocks, the rows of the result                                            |
| needs  | nothing: every kind of join, every value                                                                |
| source | the fold of aggregate states of Tran and Lee (source D), at the ends of windows instead of per tuple;   |
|        | stretches are ours                                                                                      |

A lane has a row for each end while its group is active, so the ordinals of its ends come in runs without gaps. If runs
of two lanes overlap, their rows match one by one: such a stretch is found with a few comparisons, and kernels add it up
without comparing ends again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from windloom.kernels.compiling import compiled
from windloom.kernels.folds.matching import (
    Flags,
    GroupPairs,
    LinkedRows,
    MatchedRows,
    Stretches,
    UnmatchedRows,
    runs_of,
)
from windloom.model.arrays import Ints, Positions

#: Stretches in a block: they stay near the caches while each value is folded.
BLOCK_STRETCHES = 1 << 16


class Pairwise:
    name = "pairwise"

    def match(self, linked: LinkedRows) -> MatchedRows:
        pairs = GroupPairs(linked)
        # What kernels walk along: bounds, ends, and runs of consecutive ends, of the parent and of the child.
        both = (linked.parent, linked.child)
        sides = tuple(column for side in both for column in (side.bounds, side.ends, runs_of(side.ends, side.bounds)))
        wanted = np.zeros(0, np.bool_)  # the rows of the parent that stand alone
        if linked.alone is not UnmatchedRows.NONE:
            every = replace(linked, pairs=True, alone=UnmatchedRows.NONE, alone_out=0)
            matched = np.zeros(len(linked.parent.ends), np.bool_)
            for parents, children in GroupPairs(every).blocks():
                _mark_matched(parents, children, *sides, matched)
            wanted = matched if linked.alone is UnmatchedRows.MATCHED else ~matched
        parent_outs, child_outs, bounds, ends = _find_rows(linked, pairs, sides, wanted)
        stretches = partial(_stretches, linked, pairs, sides, wanted, bounds, ends)
        return MatchedRows(parent_outs, child_outs, bounds, ends, stretches)


@compiled
def _next_stretch(i, last_i, ends, runs, j, last_j, other_ends, other_runs):  # type: ignore[no-untyped-def]
    """Return the next rows of two lanes, from i and j on, that have the same end, and how many follow; 0 if none."""
    while i < last_i and j < last_j:
        apart = other_ends[j] - ends[i]
        if apart == 0:
            return i, j, np.int64(min(runs[i], other_runs[j]))
        if apart > 0:
            i += min(apart, runs[i])
        else:
            j += min(-apart, other_runs[j])
    return i, j, np.int64(0)


@compiled
def _next_alone(i, last_i, runs, wanted):  # type: ignore[no-untyped-def]
    """Return the next wanted rows of a lane, from i on, whose ends follow each other, and their number; 0 if none."""
    while i < last_i and not wanted[i]:
        i += 1
    length = np.int64(0)
    while i + length < last_i and length < runs[i] and wanted[i + length]:
        length += 1
    return i, length


@compiled
def _mark_matched(parents, children, bounds, ends, runs, other_bounds, other_ends, other_runs, matched):  # type: ignore[no-untyped-def]
    for k in range(len(parents)):
        i, last_i = bounds[parents[k]], bounds[parents[k] + 1]
        j, last_j = other_bounds[children[k]], other_bounds[children[k] + 1]
        while True:
            i, j, length = _next_stretch(i, last_i, ends, runs, j, last_j, other_ends, other_runs)
            if length == 0:
                break
            matched[i : i + length] = True
            i += length
            j += length


def _find_rows(
    linked: LinkedRows, pairs: GroupPairs, sides: tuple[Any, ...], wanted: Flags
) -> tuple[Ints, Ints, Ints, Positions]:
    """Return what remains of both sides by group of the result, the bounds of its rows, and their ends."""
    marks = np.zeros(linked.ends + 1, np.bool_)
    state = np.array([-1, -1, 0, 0, -1], np.int64)  # the open group, its ends so far, the first and the last of them
    outs: list[list[Ints]] = [[], [], []]
    ends: list[Positions] = []
    blocks = pairs.blocks()
    listed = next(blocks, None)
    while listed is not None:
        parents, children = listed
        listed = next(blocks, None)
        room = _most_rows(parents, children, linked.parent.bounds, linked.child.bounds, linked.ends)
        found_outs = [np.empty(len(parents) + 1, np.int64) for _ in outs]
        found_ends = np.empty(room + linked.ends, np.int32)
        given = (parents, children, *sides, linked.parent.outs, linked.child.outs, linked.alone_out, wanted)
        groups, rows = _mark_rows(*given, listed is None, marks, state, *found_outs, found_ends)
        for column, new in zip(outs, found_outs, strict=True):
            column.append(new[:groups])
        ends.append(found_ends[:rows])
    parent_outs, child_outs, counts = (np.concatenate([np.zeros(0, np.int64), *out]) for out in outs)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    if bounds[-1] >= 2**31:
        raise OverflowError("a fold has at most 2**31 rows")
    return parent_outs, child_outs, bounds, np.concatenate([np.zeros(0, np.int32), *ends])


@compiled
def _most_rows(parents, children, bounds, other_bounds, ends):  # type: ignore[no-untyped-def]
    """Return an upper bound on the rows of the result that these pairs make."""
    most = np.int64(0)
    for k in range(len(parents)):
        rows = bounds[parents[k] + 1] - bounds[parents[k]]
        if children[k] >= 0:
            rows = min(rows, other_bounds[children[k] + 1] - other_bounds[children[k]])
        most += min(rows, ends)
    return most


@compiled
def _mark_rows(  # type: ignore[no-untyped-def]
    parents, children, bounds, ends, runs, other_bounds, other_ends, other_runs, outs, other_outs, alone_out, wanted,
    is_last, marks, state, out_parents, out_children, out_counts, out_ends,
):  # fmt: skip
    """Write the groups of the result that are complete, and their ends; return the numbers of both."""
    out, other_out, marked, low, high = state
    every = len(marks) - 1
    groups, rows = np.int64(0), np.int64(0)
    for k in range(len(parents)):
        parent, child = parents[k], children[k]
        this_out, this_other = outs[parent], other_outs[child] if child >= 0 else np.int64(alone_out)
        if this_out != out or this_other != other_out:
            if out >= 0:
                out_parents[groups], out_children[groups], out_counts[groups] = out, other_out, marked
                groups += 1
                rows = _write_marked(marks, low, high, out_ends, rows)
            out, other_out, marked, low, high = this_out, this_other, np.int64(0), np.int64(every), np.int64(-1)
        if marked == every:
            continue  # nothing is left to find: most pairs of a large group end here
        i, last_i = bounds[parent], bounds[parent + 1]
        j, last_j = np.int64(0), np.int64(0)
        if child >= 0:
            j, last_j = other_bounds[child], other_bounds[child + 1]
        while True:
            if child >= 0:
                i, j, length = _next_stretch(i, last_i, ends, runs, j, last_j, other_ends, other_runs)
            else:
                i, length = _next_alone(i, last_i, runs, wanted)
            if length == 0:
                break
            first = np.int64(ends[i])
            low, high = min(low, first), max(high, first + length - 1)
            for end in range(first, first + length):
                marked += not marks[end]
                marks[end] = True
            i += length
            j += length
    if is_last and out >= 0:
        out_parents[groups], out_children[groups], out_counts[groups] = out, other_out, marked
        groups += 1
        rows = _write_marked(marks, low, high, out_ends, rows)
        out = np.int64(-1)
    state[0], state[1], state[2], state[3], state[4] = out, other_out, marked, low, high
    return groups, rows


@compiled
def _write_marked(marks, low, high, out_ends, rows):  # type: ignore[no-untyped-def]
    for end in range(low, high + 1):
        if marks[end]:
            out_ends[rows] = end
            rows += 1
            marks[end] = False
    return rows


def _stretches(
    linked: LinkedRows, pairs: GroupPairs, sides: tuple[Any, ...], wanted: Flags, bounds: Ints, ends: Positions
) -> Iterator[Stretches]:
    room = Stretches(*(np.empty(BLOCK_STRETCHES, np.int32) for _ in Stretches._fields))
    row_of_end = np.empty(linked.ends, np.int64)  # the row of each end, in the current group
    state = np.array([-1, -1, -1, 0, 0, 0], np.int64)  # the current group and its number; the next pair, and its rows
    for parents, children in pairs.blocks():
        given = (parents, children, *sides, linked.parent.outs, linked.child.outs, linked.alone_out, wanted)
        state[3] = 0
        state[4] = -1
        while True:
            count = _list_stretches(*given, bounds, ends, row_of_end, state, *room)
            if count:
                yield Stretches(*(column[:count] for column in room))
            if state[3] == len(parents):
                break


@compiled
def _list_stretches(  # type: ignore[no-untyped-def]
    parents, children, bounds, ends, runs, other_bounds, other_ends, other_runs, outs, other_outs, alone_out, wanted,
    out_bounds, out_ends, place, state, to_parent, to_child, to_out, to_length,
):  # fmt: skip
    """List stretches from where the last call stopped until there is no room; return their number."""
    out, other_out, group, k, i, j = state
    count = 0
    while k < len(parents):
        parent, child = parents[k], children[k]
        if i < 0:
            this_out, this_other = outs[parent], other_outs[child] if child >= 0 else np.int64(alone_out)
            if this_out != out or this_other != other_out:
                out, other_out = this_out, this_other
                group += 1
                for row in range(out_bounds[group], out_bounds[group + 1]):
                    place[out_ends[row]] = row
            i, j = bounds[parent], other_bounds[child] if child >= 0 else np.int64(0)
        last_i, last_j = bounds[parent + 1], other_bounds[child + 1] if child >= 0 else np.int64(0)
        length = np.int64(1)
        while count < len(to_parent):
            if child >= 0:
                i, j, length = _next_stretch(i, last_i, ends, runs, j, last_j, other_ends, other_runs)
            else:
                i, length = _next_alone(i, last_i, runs, wanted)
            if length == 0:
                break
            to_parent[count] = i
            to_child[count] = j if child >= 0 else len(other_ends)
            to_out[count] = place[ends[i]]
            to_length[count] = length
            count += 1
            i += length
            j += length
        if length != 0:
            break
        k += 1
        i = np.int64(-1)
    state[0], state[1], state[2], state[3], state[4], state[5] = out, other_out, group, k, i, j
    return count
