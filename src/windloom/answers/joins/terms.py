"""The input of a fold, which is the rows of each side; its result; and the terms that it computes on the way.

A term is something that a fold computes for each row of a relation, named by its operands. A relation covers some sides
of a join. A term over it says which component of each of these sides takes part, so that equal terms of several
aggregates are computed once, and the terms that a fold needs of its parent and its child follow from those that are
wanted of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.columns import ListColumns, WindowValues
from windloom.aggregates.registry import PlannedComponent
from windloom.kernels.families import ADD_FLOAT, ADD_INT, LOWEST, AddFloat, AddInt, Columns, MaxInt
from windloom.kernels.folds.int128 import Int128, from_halves, from_limbs, narrowed
from windloom.kernels.folds.products import fill_neutral, normalised
from windloom.model.aggregate import COUNT_STAR
from windloom.model.join import Corner, Folded, Link, SideComponent, SumOfProducts
from windloom.model.types import DataType

#: Returns for which pairs of rows a residual condition holds. It is given the grouping columns `__p{i}` of the parent
#: and `__c{i}` of the child that the condition reads, by name.
Residual = Callable[[Link, dict[str, pa.Array]], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class ListedRows:
    """A list component over rows: the list of row i consists of the lists of cells `lo[i] : hi[i]`."""

    listed: ListColumns
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
    combined: tuple[WindowValues | ListedRows, ...]  # one for each component of the side, over rows


@dataclass(frozen=True, slots=True)
class FoldTypes:
    """The components of every side and those of the join, each with the type of its argument."""

    sides: tuple[tuple[PlannedComponent, ...], ...]
    folded: tuple[PlannedComponent, ...]
    groups: tuple[tuple[DataType, ...], ...] = ()  # of the grouping columns of every side, for residual conditions


@dataclass(frozen=True, slots=True)
class RefusedValue:
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
    combined: tuple[WindowValues | ListColumns, ...]  # one for each component of the join; a list per row
    refused: tuple[RefusedValue, ...] = ()


#: Components of sides, as (side, component), at most one per side, in order of side.
Operands = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FactorTerms:
    """The sum over all matches of the product of these components, which are counts and sums."""

    of: Operands


@dataclass(frozen=True, slots=True)
class PresenceTerm:
    """Whether a match exists in which each of these components has a value; a count has one if it is above 0."""

    of: Operands


@dataclass(frozen=True, slots=True)
class ValueTerm:
    """The values of one component, combined over all matches, each as often as the weights of the other sides say."""

    operand: tuple[int, int]
    weights: Operands


@dataclass(frozen=True, slots=True)
class Extreme:
    """The lowest or highest value of `left operator right` over all matches in which all weights are above 0."""

    operator: str
    left: tuple[int, int, int]  # side, MIN, MAX
    right: tuple[int, int, int]
    weights: Operands
    lowest: bool
    kind: DataType


Term = FactorTerms | PresenceTerm | ValueTerm | Extreme


def restricted(operands: Operands, sides: frozenset[int]) -> Operands:
    return tuple(operand for operand in operands if operand[0] in sides)


def corner_terms(end: tuple[int, int, int], weights: Operands) -> tuple[ValueTerm, ValueTerm, PresenceTerm]:
    """Return the lowest and highest value at one end of an extreme, and whether there is one."""
    side, low, high = end
    every = tuple(sorted(((side, low), *weights)))
    return ValueTerm((side, low), weights), ValueTerm((side, high), weights), PresenceTerm(every)


class Terms:
    """The terms of a join: those over all sides of the result that its components are made from, and what they need."""

    def __init__(self, types: FoldTypes, sides: frozenset[int]) -> None:
        self.types, self.sides = types, sides

    def all_of(self, folded: Iterable[Folded]) -> tuple[Term, ...]:
        terms = (term for number, component in enumerate(folded) for term in self.of(number, component))
        return tuple(dict.fromkeys(terms))

    def of(self, number: int, folded: Folded) -> tuple[Term, ...]:
        """Return the terms that component `number` of the join needs."""
        match folded:
            case SideComponent():
                return self.carried(folded)
            case SumOfProducts():
                products = tuple(FactorTerms(self._operands(product.factors)) for product in folded.products)
                counted = folded.counted
                return products if counted is None else (*products, PresenceTerm(self._operands(counted.factors)))
            case Corner():
                return (self.extreme(number, folded),)

    def carried(self, folded: SideComponent) -> tuple[Term, ...]:
        """Return its values, and whether there is one; lists need only the values, because an empty list shows it."""
        operand, weights = (folded.side, folded.component), self._operands(folded.weights, folded.side)
        planned = self.types.sides[folded.side][folded.component]
        every = tuple(sorted((operand, *weights)))
        if planned.family.is_list:
            return (ValueTerm(operand, weights),)
        # A product can hold sums and counts.
        is_number = planned.family in (ADD_INT, ADD_FLOAT)
        carried = FactorTerms(every) if is_number else ValueTerm(operand, weights)
        return carried, PresenceTerm(every)

    def extreme(self, number: int, folded: Corner) -> Extreme:
        planned = self.types.folded[number]
        assert planned.argument_type is not None
        weights = self._operands(folded.weights, folded.left[0], folded.right[0])
        lowest = planned.component.kind == "min"
        return Extreme(folded.operator, folded.left, folded.right, weights, lowest, planned.argument_type)

    def _operands(self, components: tuple[int, ...], *without: int) -> Operands:
        sides = self.sides.difference(without)
        return tuple((side, component) for side, component in enumerate(components) if side in sides)

    def is_float(self, operands: Operands) -> bool:
        """Return whether one of the operands is a sum of floats, so that their product is a float."""
        return any(self.types.sides[side][component].family is ADD_FLOAT for side, component in operands)

    def needed_of(self, term: Term, sides: frozenset[int]) -> tuple[Term, ...]:
        """Return the terms over a relation of some sides that a fold needs to compute a term over more sides."""
        match term:
            case FactorTerms(of=operands):
                factors = FactorTerms(restricted(operands, sides))
                # Zero times infinity is NaN, but no value times infinity is no value.
                return (factors, PresenceTerm(factors.of)) if self.is_float(operands) else (factors,)
            case PresenceTerm(of=operands):
                return (PresenceTerm(restricted(operands, sides)),)
            case ValueTerm(operand=operand, weights=weights):
                weights = restricted(weights, sides)
                return (ValueTerm(operand, weights) if operand[0] in sides else FactorTerms(weights),)
            case Extreme():
                weights = restricted(term.weights, sides)
                ends = [end for end in (term.left, term.right) if end[0] in sides]
                if len(ends) == 2:
                    return (Extreme(term.operator, term.left, term.right, weights, term.lowest, term.kind),)
                if not ends:
                    return (FactorTerms(weights), PresenceTerm(weights))
                return corner_terms(ends[0], weights)


Flags = NDArray[np.bool_]

#: Whole numbers in 64 or 128 bits, or floats as pairs.
Number = AddInt | Int128 | AddFloat


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
    term: Term, combined: tuple[WindowValues | ListedRows, ...], planned: tuple[PlannedComponent, ...]
) -> Held:
    """Return a term over one side alone, from what the side answers."""
    match term:
        case (
            FactorTerms(of=((_, component),))
            | PresenceTerm(of=((_, component),))
            | ValueTerm(operand=(_, component), weights=())
        ):
            values, kind = combined[component], planned[component]
        case _:
            raise AssertionError(f"a side has no term {term}")
    if isinstance(values, ListedRows):
        return values
    if isinstance(term, FactorTerms):
        return number_of(values, kind)
    if isinstance(term, PresenceTerm):
        return known_of(values, kind)
    return HeldValue(type(values.limbs[0])(*map(_own, values.limbs[0])), values.dictionary)


def number_of(combined: WindowValues, planned: PlannedComponent) -> Number:
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


def known_of(combined: WindowValues, planned: PlannedComponent) -> Flags | None:
    if planned.component == COUNT_STAR:
        return None
    if planned.component.kind in (COUNT_STAR.kind, "count"):
        return flags_or_none(combined.limbs[0].value > 0)
    return combined.valid


def flags_or_none(flags: Flags) -> Flags | None:
    return None if flags.all() else flags


def of_no_match(term: Term, like: Held, terms: Terms) -> Held:
    """Return one row of a term for a row without a match: NULL, which only COUNT(*) counts."""
    sides = terms.types.sides
    match term:
        case FactorTerms(of=operands):
            count = int(all(sides[side][component].component == COUNT_STAR for side, component in operands))
            if isinstance(like, AddFloat):
                return AddFloat(np.zeros(1), np.zeros(1))
            if isinstance(like, Int128):
                return Int128(np.zeros(1, np.int64), np.array([count], np.uint64))
            return AddInt(np.array([count], np.int64))
        case PresenceTerm(of=operands):
            return np.array([all(sides[side][component].component == COUNT_STAR for side, component in operands)])
        case ValueTerm():
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
        case ((AddInt() | Int128() | AddFloat()), (AddInt() | Int128() | AddFloat())):
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
