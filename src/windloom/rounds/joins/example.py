"""Folds of two tiny sides that use every kernel, so that set-up compiles them all."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa

from windloom.aggregates.lifted import Combined, Lifted
from windloom.aggregates.listed import Listed
from windloom.aggregates.planned import PlannedComponent, neutral
from windloom.kernels.folds.registry import ROW_FOLDS
from windloom.kernels.lists.cells import Lists
from windloom.model.aggregate import COUNT_STAR, Component
from windloom.model.expression import Expression
from windloom.model.join import Carried, Corner, Folded, Join, JoinKind, KeyPair, Link, Product, Side, Summed
from windloom.model.source import WindowedStream
from windloom.model.types import DataType
from windloom.model.windows import TimeWindow
from windloom.rounds.joins.fold import fold_sides
from windloom.rounds.joins.rows import FoldTypes, ListedRows, SideRows

_SUMMED = ("bigint", "double", "decimal(38,2)")
_COMPARED = _SUMMED
#: Kinds of components with the types of their arguments: one for each family, and for each way of adding up.
_KEPT = (
    *(("sum", kind) for kind in _SUMMED),
    *((extreme, kind) for kind in _COMPARED for extreme in ("min", "max")),
    ("moments", "double"),
    ("bit_or", "bigint"),
    ("bit_xor", "bigint"),
    ("frequencies", "bigint"),
)


def fold_examples() -> None:
    """Fold everything that can be asked for, by every technique."""
    components = (
        PlannedComponent(COUNT_STAR, None),
        *(PlannedComponent(Component(kind, Expression.of_column("x")), DataType.parse(name)) for kind, name in _KEPT),
    )
    folded, planned = _folded(components)
    keys, bounds = [pa.array([1, None])], np.array([0, 1, 2])
    rows = SideRows(
        keys, bounds, np.zeros(2, np.int32), tuple(_two_rows(planned_component) for planned_component in components)
    )
    side_components = tuple(planned_component.component for planned_component in components)
    side = Side(WindowedStream("s", TimeWindow(1, 1)), None, None, (Expression.of_column("k"),), side_components)
    types = FoldTypes((components, components), planned)
    for kind, technique in product((JoinKind.INNER, JoinKind.LEFT), ROW_FOLDS):
        join = Join((side, side), (Link(0, 1, kind, (KeyPair(0, 0),)),), (), folded)
        fold_sides(join, types, (rows, rows), 1, (0,), technique)


def _folded(components: tuple[PlannedComponent, ...]) -> tuple[tuple[Folded, ...], tuple[PlannedComponent, ...]]:
    numbers = {named: number + 1 for number, named in enumerate(_KEPT)}
    examples: list[tuple[Folded, PlannedComponent]] = [
        (Carried(0, number, (0, 0)), components[number]) for number in range(1, len(components))
    ]
    for name in _SUMMED:
        number_of_sum = numbers["sum", name]
        products = (Product(1, (number_of_sum, number_of_sum)), Product(-1, (number_of_sum, 0)))
        examples.append((Summed(products, Product(1, (number_of_sum, number_of_sum))), components[number_of_sum]))
    for name in _COMPARED:
        low, high = numbers["min", name], numbers["max", name]
        kind = DataType.parse("decimal(38,4)" if name.startswith("decimal") else name)
        result = PlannedComponent(components[high].component, kind)
        examples.append((Corner("-", (0, low, high), (1, low, high), (0, 0)), result))
    return tuple(folded for folded, _ in examples), tuple(planned for _, planned in examples)


def _two_rows(planned: PlannedComponent) -> Combined | ListedRows:
    """Return values of a side, the second of them NULL; sums of decimals need more than 64 bits."""
    nothing = neutral(planned, 2)
    if isinstance(nothing, Listed):
        cells = Lists(np.array([0, 1, 1]), np.zeros(1, np.int32), np.ones(1, np.int64))
        places = np.arange(2, dtype=np.int32)
        return ListedRows(replace(nothing, cells=cells, dictionary=pa.array([1])), places, places + np.int32(1))
    assert isinstance(nothing, Lifted)
    limbs = tuple(type(limb)(*(column + column.dtype.type(1) for column in limb)) for limb in nothing.limbs)
    return Combined(limbs, None if nothing.valid is None else np.array([True, False]), None)
