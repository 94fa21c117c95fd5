"""Recalculate: compares every row of the parent with every row of the child.

| time   | O(rows of the parent × rows of the child)           |
| space  | one entry per match                                 |
| needs  | nothing: every kind of join, every value            |
| source | nested loops                                        |

The slow reference that every other technique is tested against.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from windloom.kernels.compiling import compiled
from windloom.kernels.folds.matching import (
    LinkedRows,
    MatchedRows,
    PairCondition,
    Stretches,
    UnmatchedRows,
    groups_of_rows,
)
from windloom.model.arrays import Ints

#: Matches in a block.
BLOCK_MATCHES = 1 << 16


class RecalculateFold:
    name = "recalculate"

    def match(self, linked: LinkedRows) -> MatchedRows:
        parent, child = linked.parent, linked.child
        allowed = linked.allowed or PairCondition(
            np.zeros(parent.groups, np.int64), np.zeros(child.groups, np.int64), np.ones((1, 1), np.bool_)
        )
        holds = allowed.holds
        if holds is None:
            assert allowed.test is not None
            places = np.indices((int(allowed.parent.max()) + 1, int(allowed.child.max()) + 1))
            holds = allowed.test(places[0].ravel(), places[1].ravel()).reshape(places.shape[1:])
        arguments = (
            *(groups_of_rows(parent), parent.ends, parent.codes, allowed.parent),
            *(groups_of_rows(child), child.ends, child.codes, allowed.child),
            holds,
            linked.pairs,
            linked.alone is UnmatchedRows.UNMATCHED,
            linked.alone is UnmatchedRows.MATCHED,
        )
        nothing = np.empty(0, np.int64)
        count = _compare(*arguments, True, nothing, nothing)
        rows, others = np.empty(count, np.int64), np.empty(count, np.int64)
        _compare(*arguments, False, rows, others)
        return _numbered(linked, rows, others)


@compiled
def _compare(  # type: ignore[no-untyped-def]
    groups, ends, codes, classes, other_groups, other_ends, other_codes, other_classes, holds,
    with_pairs, if_unmatched, if_matched, counting, rows, others,
):  # fmt: skip
    count = 0
    for i in range(len(groups)):
        group = groups[i]
        matches = 0
        for j in range(len(other_groups)):
            other = other_groups[j]
            if (
                ends[i] == other_ends[j]
                and codes[group] >= 0
                and codes[group] == other_codes[other]
                and holds[classes[group], other_classes[other]]
            ):
                matches += 1
                if with_pairs:
                    if not counting:
                        rows[count], others[count] = i, j
                    count += 1
        if (if_unmatched and matches == 0) or (if_matched and matches > 0):
            if not counting:
                rows[count], others[count] = i, len(other_groups)
            count += 1
    return count


def _numbered(linked: LinkedRows, rows: Ints, others: Ints) -> MatchedRows:
    parent, child = linked.parent, linked.child
    first = parent.outs[groups_of_rows(parent)[rows]]
    second = np.append(child.outs[groups_of_rows(child)], linked.alone_out)[others]
    seconds = max(child.out_count, linked.alone_out + 1)
    groups, group_of = np.unique(first * seconds + second, return_inverse=True)
    every, out = np.unique(group_of * max(1, linked.ends) + parent.ends[rows], return_inverse=True)
    bounds = np.searchsorted(every, np.arange(len(groups) + 1) * max(1, linked.ends))
    length = np.ones(len(rows), np.int32)

    def stretches() -> Iterator[Stretches]:
        for begin in range(0, len(rows), BLOCK_MATCHES):
            portion = slice(begin, begin + BLOCK_MATCHES)
            columns = (rows[portion], others[portion], out[portion], length[portion])
            yield Stretches(*(column.astype(np.int32) for column in columns))

    ends = (every % max(1, linked.ends)).astype(np.int32)
    return MatchedRows(groups // seconds, groups % seconds, bounds.astype(np.int64), ends, stretches)
