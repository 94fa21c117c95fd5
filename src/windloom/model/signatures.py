"""Counts possible signatures; the signature of a tuple is the set of predicates that it satisfies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, prod

from windloom.model.formula import All, Atom, Formula, atoms, given
from windloom.model.predicate import Predicate
from windloom.model.subject import Subject
from windloom.model.value_set import ValueSet, classes

#: The number of residual formulas examined before the rest is estimated.
_EFFORT = 60_000
#: Signatures kept one by one; beyond that they are only counted.
_MOST_KEPT = 4_096

#: Signatures as masks, or an upper bound on their number.
_Signatures = set[int] | float
#: The bit of a predicate, and the part of it that remains to be tested.
_Open = list[tuple[int, Formula]]


def most_signatures(predicates: Iterable[Predicate]) -> float:
    """An upper bound on the number of signatures that can occur, including the empty one.

    Exact for predicates on one column: every combination of values and NULL that they distinguish is examined.
    Predicates without a common column multiply.
    """
    formulas = dict.fromkeys(each.formula for each in predicates if not (each.is_always or each.is_never))
    search = _Search(_EFFORT)
    return prod(
        _size(search.component(component)) for component in _components([(1 << i, f) for i, f in enumerate(formulas)])
    )


@dataclass(slots=True)
class _Search:
    """Goes through the values of one subject after the other, within a budget."""

    effort: int

    def signatures(self, formulas: _Open) -> _Signatures:
        fixed = sum(bit for bit, formula in formulas if _is_constant(formula) and isinstance(formula, All))
        masks: _Signatures = {fixed}
        for component in _components([each for each in formulas if not _is_constant(each[1])]):
            more = self.component(component)
            if isinstance(masks, set) and isinstance(more, set) and len(masks) * len(more) <= _MOST_KEPT:
                masks = {left | right for left in masks for right in more}
            else:
                masks = _size(masks) * _size(more)
        return masks

    def component(self, formulas: _Open) -> _Signatures:
        if len(formulas) == 1:
            return {0, formulas[0][0]}
        sets: dict[Subject, dict[ValueSet, None]] = {}
        for part in (part for _, formula in formulas for part in atoms(formula)):
            sets.setdefault(part.subject, {})[part.values] = None
        subject = max(sets, key=lambda each: sum(each in formula.subjects for _, formula in formulas))
        indexes = {each: index for index, each in enumerate(sets[subject])}
        cells = classes(list(indexes))
        self.effort -= len(cells) * len(formulas)
        if self.effort < 0:
            return min(_power_of_two(len(formulas)), prod(float(len(classes(list(each)))) for each in sets.values()))
        masks: _Signatures = set()
        residuals = [_Residual(bit, formula, subject, indexes) for bit, formula in formulas]
        for mask, cell in cells.items():
            more = self.signatures([each.given(mask, cell) for each in residuals])
            masks = masks | more if isinstance(masks, set) and isinstance(more, set) else _size(masks) + _size(more)
        return masks if isinstance(masks, set) else min(masks, _power_of_two(len(formulas)))


class _Residual:
    """The remainder of a formula for given values of one subject; many values leave the same remainder."""

    def __init__(self, bit: int, formula: Formula, subject: Subject, indexes: dict[ValueSet, int]) -> None:
        self.bit, self.formula, self.subject = bit, formula, subject
        self.sets = 0
        for each in atoms(formula):
            if each.subject == subject:
                self.sets |= 1 << indexes[each.values]
        self.known: dict[int, tuple[int, Formula]] = {}

    def given(self, mask: int, cell: ValueSet) -> tuple[int, Formula]:
        """The bit and the remainder for a cell; `mask` shows which of the numbered sets hold the values of the cell."""
        relevant = mask & self.sets
        if relevant not in self.known:
            self.known[relevant] = self.bit, given(self.formula, {self.subject: cell})
        return self.known[relevant]


def _components(formulas: _Open) -> list[_Open]:
    """Groups of formulas that are connected by common subjects."""
    groups: list[tuple[set[Subject], _Open]] = []
    for each in formulas:
        subjects, members = set(each[1].subjects), [each]
        apart = []
        for group in groups:
            if group[0].isdisjoint(subjects):
                apart.append(group)
            else:
                subjects |= group[0]
                members = group[1] + members
        groups = [*apart, (subjects, members)]
    return [members for _, members in groups]


def _is_constant(formula: Formula) -> bool:
    return not isinstance(formula, Atom) and not formula.operands


def _power_of_two(exponent: int) -> float:
    return 2.0**exponent if exponent < 1_000 else inf


def _size(masks: _Signatures) -> float:
    return float(len(masks)) if isinstance(masks, set) else masks
