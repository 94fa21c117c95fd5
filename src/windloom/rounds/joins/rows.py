"""The input of a fold, which is the rows of each side, and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.lifted import Combined
from windloom.aggregates.listed import Listed
from windloom.aggregates.planned import PlannedComponent
from windloom.model.join import Link
from windloom.model.types import DataType

#: Returns for which pairs of rows a residual condition holds. It is given the grouping columns `__p{i}` of the parent
#: and `__c{i}` of the child that the condition reads, by name.
Residual = Callable[[Link, dict[str, pa.Array]], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class ListedRows:
    """A list component over rows: the list of row i consists of the lists of cells `lo[i] : hi[i]`."""

    listed: Listed
    lo: NDArray[np.int32]
    hi: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class SideRows:
    """The answers of one side for the windows that end at the given ends.

    Rows `bounds[g] : bounds[g + 1]` belong to group g, and ascend by end. Ends are ordinals, common to all sides.
    """

    keys: Sequence[pa.Array]  # one for each grouping column of the side, by group; groups are distinct
    bounds: NDArray[np.int64]
    ends: NDArray[np.int32]
    combined: tuple[Combined | ListedRows, ...]  # one for each component of the side, over rows


@dataclass(frozen=True, slots=True)
class FoldTypes:
    """The components of every side and those of the join, each with the type of its argument."""

    sides: tuple[tuple[PlannedComponent, ...], ...]
    folded: tuple[PlannedComponent, ...]
    groups: tuple[tuple[DataType, ...], ...] = ()  # of the grouping columns of every side, for residual conditions


@dataclass(frozen=True, slots=True)
class Refused:
    """A value that does not fit: the component of the join, the row, and what is wrong."""

    component: int
    row: int
    text: str


@dataclass(frozen=True, slots=True)
class FoldedRows:
    """The rows of a join, in order of group and then of end; only rows that exist.

    `refused` has the first row of each component whose value its layout cannot hold; such a value is undefined, and the
    whole answer must be refused.
    """

    groups: tuple[pa.Array, ...]  # one for each grouping column of the join, by group
    bounds: NDArray[np.int64]
    ends: NDArray[np.int32]
    combined: tuple[Combined | Listed, ...]  # one for each component of the join; a list per row
    refused: tuple[Refused, ...] = ()
