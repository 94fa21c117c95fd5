"""The input of a fold technique, two sides whose rows are to be matched, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windloom.model.arrays import Ints, Positions

Flags = NDArray[np.bool_]


class Alone(Enum):
    """The rows of the parent that become rows by themselves, with no row of the child."""

    NONE = "none"
    UNMATCHED = "unmatched"
    MATCHED = "matched"


@dataclass(frozen=True, slots=True)
class Matchable:
    """The groups of one side: rows `bounds[g] : bounds[g + 1]` ascend by `ends`, the ordinals of window ends.

    `codes` are the numbers of the groups' join keys, common to both sides; a group with -1 matches nothing. `outs` are
    the numbers, below `out_count`, of what remains of the groups in the result.
    """

    bounds: Ints
    ends: Positions
    codes: Ints
    outs: Ints
    out_count: int

    @property
    def groups(self) -> int:
        return len(self.bounds) - 1


@dataclass(frozen=True, slots=True)
class Allowed:
    """A further condition on pairs of groups g and h: `holds[parent[g], child[h]]`.

    If that table would be too large, there is none, and `test` decides for numbers of both sides.
    """

    parent: Ints
    child: Ints
    holds: NDArray[np.bool_] | None
    test: Callable[[Ints, Ints], NDArray[np.bool_]] | None = None


@dataclass(frozen=True, slots=True)
class Linked:
    """A parent and a child. Rows match if their ends and the codes of their groups are equal, and `allowed` holds.

    With `pairs`, matching rows become rows of the result, in the group (out of the parent, out of the child); rows of
    the parent that stand alone go to the group (out of the parent, `alone_out`).
    """

    parent: Matchable
    child: Matchable
    keys: int  # codes are below this number
    ends: int  # ordinals of ends are below this number
    pairs: bool
    alone: Alone
    alone_out: int
    allowed: Allowed | None = None


class Stretches(NamedTuple):
    """Matches of consecutive rows: for `i < length`, `parent + i` and `child + i` match and add to row `out + i`.

    If `child` is the number of rows of the child, the rows of the parent stand alone.
    """

    parent: Any
    child: Any
    out: Any
    length: Any


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows of the result, by group and then by end; a group may have none.

    `stretches()` gives all matches in blocks of bounded size, which are overwritten by the next one.
    """

    parent_outs: Ints  # by group
    child_outs: Ints
    bounds: Ints
    ends: Positions
    stretches: Callable[[], Iterator[Stretches]]
