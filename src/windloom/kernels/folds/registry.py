"""The techniques of folds by name; a new one is one file and one line here."""

from __future__ import annotations

from typing import Protocol

from windloom.errors import WindloomError, near_names
from windloom.kernels.folds.matching import Linked, Matched
from windloom.kernels.folds.pairwise import Pairwise
from windloom.kernels.folds.recalculate import Recalculate


class FoldTechnique(Protocol):
    """Finds the rows of two sides that match, and the rows of the result."""

    @property
    def name(self) -> str: ...

    def match(self, linked: Linked) -> Matched: ...


FOLDS: dict[str, FoldTechnique] = {one.name: one for one in (Pairwise(), Recalculate())}


def find_fold(name: str) -> FoldTechnique:
    if name not in FOLDS:
        raise WindloomError(
            f"unknown fold '{name}'",
            "it says how the sides of a join are multiplied and added up",
            near_names(name, ["auto", *FOLDS]),
        )
    return FOLDS[name]
