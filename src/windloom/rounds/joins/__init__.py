"""Folds of joins: the answers of the sides, matched by key and end, multiplied and added up; pure."""

from windloom.rounds.joins.fold import fold_sides
from windloom.rounds.joins.rows import FoldedRows, FoldTypes, Refused, SideRows

__all__ = ["FoldTypes", "FoldedRows", "Refused", "SideRows", "fold_sides"]
