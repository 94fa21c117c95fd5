"""The values of a term over the rows of a relation: numbers, values of a family, or flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.lifted import Combined
from windloom.aggregates.planned import PlannedComponent
from windloom.kernels.families.algebra import ADD_FLOAT, LOWEST, AddFloat, AddInt, Columns, MaxInt
from windloom.kernels.folds.carried import fill_neutral
from windloom.kernels.folds.products import normalised
from windloom.kernels.folds.wide import Wide, from_halves, from_limbs, narrowed
from windloom.model.aggregate import COUNT_STAR
from windloom.rounds.joins.rows import ListedRows
from windloom.rounds.joins.terms import Extreme, Factors, Known, Term, Terms, Value

Flags = NDArray[np.bool_]

#: Whole numbers in 64 or 128 bits, or floats as pairs.
Number = AddInt | Wide | AddFloat


@dataclass(frozen=True, slots=True)
class HeldValue:
    """Values of a family."""

    columns: Columns
    dictionary: pa.Array | None


@dataclass(frozen=True, slots=True)
class HeldExtreme:
    """Keys of extrema, as MIN and MAX have them; whether there is an extreme, and whether it does not fit its type."""

    keys: MaxInt
    dictionary: pa.Array | None
    known: Flags | None
    refused: Flags | None


#: Flags are None if all are true; so is `known` of a `HeldExtreme`, but its `refused` is None if nothing is refused.
Held = Number | HeldValue | HeldExtreme | ListedRows | Flags | None


def held_by_side(
    term: Term, combined: tuple[Combined | ListedRows, ...], planned: tuple[PlannedComponent, ...]
) -> Held:
    """Return a term over one side alone, from what the side answers."""
    match term:
        case Factors(of=((_, component),)) | Known(of=((_, component),)) | Value(operand=(_, component), weights=()):
            values, kind = combined[component], planned[component]
        case _:
            raise AssertionError(f"a side has no term {term}")
    if isinstance(values, ListedRows):
        return values
    if isinstance(term, Factors):
        return number_of(values, kind)
    if isinstance(term, Known):
        return known_of(values, kind)
    return HeldValue(type(values.limbs[0])(*map(_own, values.limbs[0])), values.dictionary)


def number_of(combined: Combined, planned: PlannedComponent) -> Number:
    """Return a sum or a count as numbers that can be multiplied."""
    if planned.family is ADD_FLOAT:
        return normalised(combined.limbs[0])
    pieces: list[NDArray[np.int64]] = [_own(limb.value) for limb in combined.limbs]
    if len(pieces) == 1:
        return AddInt(pieces[0])
    if len(pieces) == 2 and (whole := from_halves(*pieces)) is not None:
        return whole
    # Sums of 64-bit integers are kept in two halves, the higher first, those of decimals in limbs, the lowest first.
    return narrowed(from_limbs(pieces, [32, 0] if len(pieces) == 2 else [0, 32, 64, 96]))


def known_of(combined: Combined, planned: PlannedComponent) -> Flags | None:
    if planned.component == COUNT_STAR:
        return None
    if planned.component.kind in (COUNT_STAR.kind, "count"):
        return flags_or_none(combined.limbs[0].value > 0)
    return combined.valid


def flags_or_none(flags: Flags) -> Flags | None:
    return None if flags.all() else flags


def of_no_match(term: Term, like: Held, terms: Terms) -> Held:
    """Return one row of a term for a row without a match: NULL, which only COUNT(*) counts."""
    match term:
        case Factors(of=operands):
            count = int(all(terms.types.sides[side][component].component == COUNT_STAR for side, component in operands))
            if isinstance(like, AddFloat):
                return AddFloat(np.zeros(1), np.zeros(1))
            if isinstance(like, Wide):
                return Wide(np.zeros(1, np.int64), np.array([count], np.uint64))
            return AddInt(np.array([count], np.int64))
        case Known(of=operands):
            return np.array(
                [all(terms.types.sides[side][component].component == COUNT_STAR for side, component in operands)]
            )
        case Value():
            if isinstance(like, ListedRows):
                nowhere = np.zeros(1, np.int32)
                return ListedRows(like.listed, nowhere, nowhere)
            assert isinstance(like, HeldValue)
            nothing = type(like.columns)(*(np.empty(1, column.dtype) for column in like.columns))
            fill_neutral(nothing)
            return HeldValue(nothing, like.dictionary)
        case Extreme():
            assert isinstance(like, HeldExtreme)
            no = np.zeros(1, np.bool_)
            return HeldExtreme(MaxInt(np.full(1, LOWEST)), like.dictionary, no, no)


def appended(values: Held, row: Held, rows: int) -> Held:
    """Return what is held, with one more row; `rows` is the number of rows before."""
    match values, row:
        case HeldValue(), HeldValue():
            return HeldValue(_appended(values.columns, row.columns), values.dictionary)
        case ListedRows(), ListedRows():
            return ListedRows(values.listed, np.concatenate([values.lo, row.lo]), np.concatenate([values.hi, row.hi]))
        case HeldExtreme(), HeldExtreme():
            refused = np.zeros(rows + 1, np.bool_) if values.refused is None else np.append(values.refused, False)
            known = np.append(np.ones(rows, np.bool_) if values.known is None else values.known, False)
            return HeldExtreme(_appended(values.keys, row.keys), values.dictionary, known, refused)
        case ((AddInt() | Wide() | AddFloat()), (AddInt() | Wide() | AddFloat())):
            numbers: Number = _appended(values, row)
            return numbers
    assert isinstance(row, np.ndarray)
    assert values is None or isinstance(values, np.ndarray)
    if values is None:
        return None if row.all() else np.append(np.ones(rows, np.bool_), row)
    return np.append(values, row)


def _appended(columns: Columns, row: Columns) -> Columns:
    return type(columns)(*(np.concatenate(pair) for pair in zip(columns, row, strict=True)))


def _own(column: NDArray[Any]) -> NDArray[Any]:
    """Return the column in memory that kernels were compiled for: contiguous, and not read-only."""
    return np.require(column, requirements=["C", "W"])
