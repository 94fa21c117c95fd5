"""The signature of a scan: which conditions become bits, and which condition is pushed down to the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, prod

import numpy as np

from windloom.aggregates.registry import PlannedComponent
from windloom.model.expression import Expression
from windloom.model.predicate import All, Atom, Formula, Predicate, atoms, common, given, implies
from windloom.model.value_sets import Subject, ValueSet, classes
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.cost.seconds import columns_of
from windloom.plan.plan import PartialSet
from windloom.plan.scans import FEW_CELLS, FEWEST_SIGNED, SIGNED_SHARE, RolledUp, Scan, WovenScan
from windloom.slicing.edges import EdgeSet


@dataclass(frozen=True, slots=True)
class SignatureBits:
    """The predicates of sets as bits. `pushed` is what all of them imply; a predicate equal to it needs no bit."""

    pushed: Expression | None
    bits: dict[str, int]  # by SQL of the predicate
    predicates: tuple[Expression, ...]
    only_signed: bool

    def bit(self, predicate: Predicate | None) -> int | None:
        """Return the bit of a predicate; None if it has none, because the pushed condition implies it."""
        return None if predicate is None else self.bits.get(predicate.sql)


def is_fed(partial_set: PartialSet) -> bool:
    """Return whether any tuple can be part of the set."""
    return partial_set.predicate is None or not partial_set.predicate.is_never


def sign(sets: Sequence[PartialSet], also: Sequence[Predicate | None] = (), *, pushes: bool = True) -> SignatureBits:
    """Return the signature of a scan for sets and further predicates; without `pushes`, no tuple is left out."""
    wheres: list[Predicate | None] = list(dict.fromkeys([*(partial_set.predicate for partial_set in sets), *also]))
    conditions = [where for where in wheres if where is not None]
    pushed = None
    if pushes and conditions and None not in wheres:
        pushed = conditions[0] if len(conditions) == 1 else common(conditions)
    signed = sorted(
        (predicate for predicate in conditions if pushed is None or not implies(pushed, predicate)),
        key=lambda predicate: predicate.sql,
    )
    return SignatureBits(
        None if pushed is None else pushed.expression,
        {predicate.sql: bit for bit, predicate in enumerate(signed)},
        tuple(Expression(predicate.guarded_sql, predicate.expression.columns) for predicate in signed),
        pushes and None not in wheres and len(signed) == len(conditions) > 0,
    )


# Counts possible signatures; the signature of a tuple is the set of predicates that it satisfies.

#: The number of residual formulas examined before the rest is estimated.
_EFFORT = 60_000
#: Signatures kept one by one; beyond that they are only counted.
_MOST_KEPT = 4_096

#: Signatures as masks, or an upper bound on their number.
_Signatures = set[int] | float
#: The bit of a predicate, and the part of it that remains to be tested.
_Open = list[tuple[int, Formula]]


def most_signatures(predicates: Iterable[Predicate]) -> float:
    """Return an upper bound on the number of signatures that can occur, including the empty one.

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
        varying, fixed = list[tuple[int, Formula]](), 0
        for bit, formula in formulas:
            if isinstance(formula, Atom) or formula.operands:
                varying.append((bit, formula))
            elif isinstance(formula, All):  # constant, and true
                fixed |= bit
        masks: _Signatures = {fixed}
        for component in _components(varying):
            more = self.component(component)
            if isinstance(masks, set) and isinstance(more, set) and len(masks) * len(more) <= _MOST_KEPT:
                masks = {left | right for left in masks for right in more}
            else:
                masks = _size(masks) * _size(more)
        return masks

    def component(self, formulas: _Open) -> _Signatures:
        if len(formulas) == 1:
            return {0, formulas[0][0]}
        most = 2.0 ** len(formulas) if len(formulas) < 1_000 else inf
        sets: dict[Subject, dict[ValueSet, None]] = {}
        for part in (part for _, formula in formulas for part in atoms(formula)):
            sets.setdefault(part.subject, {})[part.values] = None
        subject = max(sets, key=lambda each: sum(each in formula.subjects for _, formula in formulas))
        indexes = {each: index for index, each in enumerate(sets[subject])}
        cells = classes(list(indexes))
        self.effort -= len(cells) * len(formulas)
        if self.effort < 0:
            return min(most, prod(float(len(classes(list(each)))) for each in sets.values()))
        masks: _Signatures = set()
        own = [{indexes[part.values] for part in atoms(formula) if part.subject == subject} for _, formula in formulas]
        tested = [sum(1 << index for index in numbers) for numbers in own]  # by each formula, as bits
        known: dict[tuple[int, int], Formula] = {}  # many values leave the same remainder of a formula
        for mask, cell in cells.items():  # `mask` has the numbered sets that hold the values of the cell
            left: _Open = []
            for (bit, formula), numbered in zip(formulas, tested, strict=True):
                key = bit, mask & numbered
                if key not in known:
                    known[key] = given(formula, {subject: cell})
                left.append((bit, known[key]))
            more = self.signatures(left)
            masks = masks | more if isinstance(masks, set) and isinstance(more, set) else _size(masks) + _size(more)
        return masks if isinstance(masks, set) else min(masks, most)


def _components(formulas: _Open) -> list[_Open]:
    """Return groups of formulas that are connected by common subjects."""
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


def _size(masks: _Signatures) -> float:
    return float(len(masks)) if isinstance(masks, set) else masks


# How many signatures tuples have, and which sets of a woven scan are predicted to be rolled up from them.

_most = lru_cache(maxsize=64)(most_signatures)
#: To number the signature and the cell of a tuple takes about as long as to fold it into this many columns.
_NUMBERED_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Updates:
    """Seconds per second of event time to make the values of sets, and which sets are rolled up."""

    seconds: float
    rolled_up: RolledUp | None


def signatures_of(scan: Scan, sets: Sequence[PartialSet]) -> float:
    """Return the number of different signatures of tuples: as observed, or else as many as their predicates allow."""
    signature = scan.signature
    if not signature.predicates:
        return 1.0
    filters = len(signature.predicates) - signature.wanting
    most = _most(tuple(partial_set.predicate for partial_set in sets if partial_set.predicate)) * 2.0**filters
    return min(most, max(partial_set.statistics.signatures for partial_set in sets))


def update_cost(constants: Constants, scan: WovenScan, sets: Sequence[PartialSet], kept: float) -> Updates:
    """Return the cost of folding tuples, of which `kept` per second are read, into the values of all sets."""
    update = constants.seconds("woven_update")
    by_groups: dict[tuple[Expression, ...], list[PartialSet]] = {}
    seconds, rolled, signatures = 0.0, 0, 1.0
    from_tuples_of = {
        each.number: update * each.statistics.events_per_second * columns_of(_plain(each)) for each in sets
    }
    for partial_set in sets:
        if scan.signature.predicates and partial_set.window.is_sliced and partial_set.window.rolls_up:
            by_groups.setdefault(partial_set.group_by, []).append(partial_set)
        else:
            seconds += from_tuples_of[partial_set.number]
    for alike in by_groups.values():
        from_tuples = sum(from_tuples_of[partial_set.number] for partial_set in alike)
        from_cells = float("inf")
        if len({partial_set.predicate for partial_set in alike}) >= FEWEST_SIGNED:
            signatures = signatures_of(scan, sets)
            from_cells = update * _from_cells(alike, signatures, kept)
        is_rolled_up = from_cells < SIGNED_SHARE * from_tuples
        rolled += len(alike) if is_rolled_up else 0
        seconds += from_cells if is_rolled_up else from_tuples
    return Updates(seconds, RolledUp(rolled, signatures) if rolled else None)


def _plain(partial_set: PartialSet) -> tuple[PlannedComponent, ...]:
    return tuple(planned for planned in partial_set.components if not planned.family.is_list)


@lru_cache(maxsize=256)
def _edge_rate(edges: frozenset[EdgeSet]) -> float:
    """Return the edges per second of several slicings together, cached because charts ask repeatedly."""
    return EdgeSet.of({each for edge_set in edges for each in edge_set.classes}).edges_per_second


def _from_cells(alike: Sequence[PartialSet], signatures: float, kept: float) -> float:
    """Folds into columns: of tuples into cells by signature, once, and of these cells into the cells of each set."""
    finest = max((partial_set.statistics for partial_set in alike), key=lambda statistics: statistics.groups)
    divided = replace(finest, events_per_second=kept, groups=finest.groups * signatures, regularity=0.0)
    cells = float(divided.taken_per_second(np.array([_edge_rate(frozenset(own.edges for own in alike))]))[0])
    if FEW_CELLS * cells > kept:
        return float("inf")
    parts = {replace(each, component=replace(each.component, where=None)) for own in alike for each in _plain(own)}
    once = kept * (_NUMBERED_COLUMNS + columns_of(tuple(parts)))
    shares = (own.statistics.selectivity * columns_of(_plain(own)) for own in alike)
    return once + cells * (len(alike) + sum(shares))
