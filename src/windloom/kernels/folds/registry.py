"""The techniques of folds by name; a new one is one file and one line here."""

from __future__ import annotations

from typing import Protocol

from windloom.errors import find_named
from windloom.kernels.folds.matching import LinkedRows, MatchedRows
from windloom.kernels.folds.pairwise import Pairwise
from windloom.kernels.folds.recalculate import RecalculateFold
from windloom.kernels.folds.slice_matrix import SliceMatrix


class FoldTechnique(Protocol):
    name: str


class RowFold(FoldTechnique, Protocol):
    """Folds the answers of sides, window by window: it finds the rows that match, and the rows of the result."""

    def match(self, linked: LinkedRows) -> MatchedRows: ...


#: The techniques that fold any join.
ROW_FOLDS: dict[str, RowFold] = {fold.name: fold for fold in (Pairwise(), RecalculateFold())}
FOLDS: dict[str, FoldTechnique] = {**ROW_FOLDS, SliceMatrix.name: SliceMatrix()}


def find_fold(name: str) -> FoldTechnique:
    return find_named("fold", name, FOLDS, "it says how the sides of a join are multiplied and added up", "auto")
