"""Terms: everything that a fold computes for each row of a relation, named by what it is made of.

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
Parts = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Factors:
    """The sum over all matches of the product of these components, which are counts and sums."""

    of: Parts


@dataclass(frozen=True, slots=True)
class Known:
    """Whether a match exists in which each of these components has a value; a count has one if it is above 0."""

    of: Parts


@dataclass(frozen=True, slots=True)
class Value:
    """The values of one component, combined over all matches, each as often as the weights of the other sides say."""

    part: tuple[int, int]
    weights: Parts


@dataclass(frozen=True, slots=True)
class Extreme:
    """The lowest or highest value of `left operator right` over all matches in which all weights are above 0."""

    operator: str
    left: tuple[int, int, int]  # side, MIN, MAX
    right: tuple[int, int, int]
    weights: Parts
    lowest: bool
    kind: DataType


Term = Factors | Known | Value | Extreme


def restricted(parts: Parts, sides: frozenset[int]) -> Parts:
    return tuple(part for part in parts if part[0] in sides)


def joined(*parts: tuple[int, int]) -> Parts:
    return tuple(sorted(parts))


def sides_of(term: Term) -> frozenset[int]:
    """The sides that a term is about."""
    match term:
        case Factors(of=parts) | Known(of=parts):
            found = {side for side, _ in parts}
        case Value():
            found = {term.part[0], *(side for side, _ in term.weights)}
        case Extreme():
            found = {term.left[0], term.right[0], *(side for side, _ in term.weights)}
    return frozenset(found)


def corner_terms(end: tuple[int, int, int], weights: Parts) -> tuple[Value, Value, Known]:
    """The lowest and highest value at one end of an extreme, and whether there is one."""
    side, low, high = end
    return Value((side, low), weights), Value((side, high), weights), Known(joined((side, low), *weights))


class Terms:
    """The terms of a join: those over all sides of the result that its components are made from, and what they need."""

    def __init__(self, types: FoldTypes, sides: frozenset[int]) -> None:
        self.types, self.sides = types, sides

    def all_of(self, folded: Iterable[Folded]) -> tuple[Term, ...]:
        found = (term for number, component in enumerate(folded) for term in self.of(number, component))
        return tuple(dict.fromkeys(found))

    def of(self, number: int, folded: Folded) -> tuple[Term, ...]:
        """The terms that component `number` of the join needs."""
        match folded:
            case Carried():
                return self.carried(folded)
            case Summed():
                products = tuple(Factors(self._parts(product.factors)) for product in folded.products)
                return products if folded.counted is None else (*products, Known(self._parts(folded.counted.factors)))
            case Corner():
                return (self.extreme(number, folded),)

    def carried(self, folded: Carried) -> tuple[Term, ...]:
        """Its values, and whether there is one; lists need only the values, because an empty list shows it."""
        part, weights = (folded.side, folded.component), self._weights(folded.weights, folded.side)
        planned = self.types.sides[folded.side][folded.component]
        every = joined(part, *weights)
        if planned.family.is_list:
            return (Value(part, weights),)
        return Factors(every) if is_number(planned) else Value(part, weights), Known(every)

    def extreme(self, number: int, folded: Corner) -> Extreme:
        planned = self.types.folded[number]
        assert planned.argument_type is not None
        weights = self._weights(folded.weights, folded.left[0], folded.right[0])
        lowest = planned.component.kind == "min"
        return Extreme(folded.operator, folded.left, folded.right, weights, lowest, planned.argument_type)

    def _parts(self, components: tuple[int, ...]) -> Parts:
        return tuple((side, component) for side, component in enumerate(components) if side in self.sides)

    def _weights(self, components: tuple[int, ...], *without: int) -> Parts:
        return tuple(part for part in self._parts(components) if part[0] not in without)

    def is_float(self, parts: Parts) -> bool:
        """Whether one of the parts is a sum of floats, so that their product is a float."""
        return any(self.types.sides[side][component].family is ADD_FLOAT for side, component in parts)

    def needed_of(self, term: Term, sides: frozenset[int]) -> tuple[Term, ...]:
        """The terms over a relation of some sides that a fold needs to compute a term over more sides."""
        match term:
            case Factors(of=parts):
                own = restricted(parts, sides)
                # Zero times infinity is NaN, but no value times infinity is no value.
                return (Factors(own), Known(own)) if self.is_float(parts) else (Factors(own),)
            case Known(of=parts):
                return (Known(restricted(parts, sides)),)
            case Value(part=part, weights=weights):
                own = restricted(weights, sides)
                return (Value(part, own),) if part[0] in sides else (Factors(own),)
            case Extreme():
                return _needed_of_extreme(term, sides)


def _needed_of_extreme(term: Extreme, sides: frozenset[int]) -> tuple[Term, ...]:
    own = restricted(term.weights, sides)
    ends = [end for end in (term.left, term.right) if end[0] in sides]
    if len(ends) == 2:
        return (Extreme(term.operator, term.left, term.right, own, term.lowest, term.kind),)
    if not ends:
        return (Factors(own), Known(own))
    return corner_terms(ends[0], own)


def is_number(planned: PlannedComponent) -> bool:
    """Whether the component is a sum or a count, which a product can hold."""
    return planned.family in (ADD_INT, ADD_FLOAT)


def counts_all(planned: PlannedComponent) -> bool:
    """Whether it counts every tuple: it is then above 0 in every row, and counts the row of NULLs of a LEFT join."""
    return planned.component == COUNT_STAR
