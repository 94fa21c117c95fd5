"""Terms: everything that a fold computes for each row of a relation, named by its operands.

A relation covers some sides of a join. A term over it says which component of each of these sides takes part, so that
equal terms of several aggregates are computed once, and the terms that a fold needs of its parent and its child follow
from those that are wanted of its result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windloom.aggregates.planned import PlannedComponent
from windloom.kernels.families.algebra import ADD_FLOAT, ADD_INT
from windloom.model.aggregate import COUNT_STAR
from windloom.model.join import Carried, Corner, Folded, Summed
from windloom.model.types import DataType
from windloom.rounds.joins.rows import FoldTypes

#: Components of sides, as (side, component), at most one per side, in order of side.
Operands = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Factors:
    """The sum over all matches of the product of these components, which are counts and sums."""

    of: Operands


@dataclass(frozen=True, slots=True)
class Known:
    """Whether a match exists in which each of these components has a value; a count has one if it is above 0."""

    of: Operands


@dataclass(frozen=True, slots=True)
class Value:
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


Term = Factors | Known | Value | Extreme


def restricted(operands: Operands, sides: frozenset[int]) -> Operands:
    return tuple(operand for operand in operands if operand[0] in sides)


def joined(*operands: tuple[int, int]) -> Operands:
    return tuple(sorted(operands))


def sides_of(term: Term) -> frozenset[int]:
    """Return the sides that a term is about."""
    match term:
        case Factors(of=operands) | Known(of=operands):
            sides = {side for side, _ in operands}
        case Value():
            sides = {term.operand[0], *(side for side, _ in term.weights)}
        case Extreme():
            sides = {term.left[0], term.right[0], *(side for side, _ in term.weights)}
    return frozenset(sides)


def corner_terms(end: tuple[int, int, int], weights: Operands) -> tuple[Value, Value, Known]:
    """Return the lowest and highest value at one end of an extreme, and whether there is one."""
    side, low, high = end
    return Value((side, low), weights), Value((side, high), weights), Known(joined((side, low), *weights))


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
            case Carried():
                return self.carried(folded)
            case Summed():
                products = tuple(Factors(self._operands(product.factors)) for product in folded.products)
                return (
                    products if folded.counted is None else (*products, Known(self._operands(folded.counted.factors)))
                )
            case Corner():
                return (self.extreme(number, folded),)

    def carried(self, folded: Carried) -> tuple[Term, ...]:
        """Return its values, and whether there is one; lists need only the values, because an empty list shows it."""
        operand, weights = (folded.side, folded.component), self._weights(folded.weights, folded.side)
        planned = self.types.sides[folded.side][folded.component]
        every = joined(operand, *weights)
        if planned.family.is_list:
            return (Value(operand, weights),)
        return Factors(every) if is_number(planned) else Value(operand, weights), Known(every)

    def extreme(self, number: int, folded: Corner) -> Extreme:
        planned = self.types.folded[number]
        assert planned.argument_type is not None
        weights = self._weights(folded.weights, folded.left[0], folded.right[0])
        lowest = planned.component.kind == "min"
        return Extreme(folded.operator, folded.left, folded.right, weights, lowest, planned.argument_type)

    def _operands(self, components: tuple[int, ...]) -> Operands:
        return tuple((side, component) for side, component in enumerate(components) if side in self.sides)

    def _weights(self, components: tuple[int, ...], *without: int) -> Operands:
        return tuple(operand for operand in self._operands(components) if operand[0] not in without)

    def is_float(self, operands: Operands) -> bool:
        """Return whether one of the operands is a sum of floats, so that their product is a float."""
        return any(self.types.sides[side][component].family is ADD_FLOAT for side, component in operands)

    def needed_of(self, term: Term, sides: frozenset[int]) -> tuple[Term, ...]:
        """Return the terms over a relation of some sides that a fold needs to compute a term over more sides."""
        match term:
            case Factors(of=operands):
                restricted_operands = restricted(operands, sides)
                # Zero times infinity is NaN, but no value times infinity is no value.
                return (
                    (Factors(restricted_operands), Known(restricted_operands))
                    if self.is_float(operands)
                    else (Factors(restricted_operands),)
                )
            case Known(of=operands):
                return (Known(restricted(operands, sides)),)
            case Value(operand=operand, weights=weights):
                restricted_operands = restricted(weights, sides)
                return (
                    (Value(operand, restricted_operands),) if operand[0] in sides else (Factors(restricted_operands),)
                )
            case Extreme():
                weights = restricted(term.weights, sides)
                ends = [end for end in (term.left, term.right) if end[0] in sides]
                if len(ends) == 2:
                    return (Extreme(term.operator, term.left, term.right, weights, term.lowest, term.kind),)
                if not ends:
                    return (Factors(weights), Known(weights))
                return corner_terms(ends[0], weights)


def is_number(planned: PlannedComponent) -> bool:
    """Return whether the component is a sum or a count, which a product can hold."""
    return planned.family in (ADD_INT, ADD_FLOAT)


def counts_all(planned: PlannedComponent) -> bool:
    """Return whether it counts every tuple: it is then above 0 in every row, and counts the row of NULLs of a LEFT
    join.
    """
    return planned.component == COUNT_STAR
