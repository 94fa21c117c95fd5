"""Folds the terms of a parent and a child into terms of their join, stretch by stretch."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windloom.answers.joins.corners import CornerFold
from windloom.answers.joins.joined_rows import Partner
from windloom.answers.joins.terms import (
    Extreme,
    FactorTerms,
    Flags,
    Held,
    HeldExtreme,
    HeldValue,
    ListedRows,
    Number,
    Operands,
    PresenceTerm,
    Term,
    Terms,
    ValueTerm,
    flags_or_none,
    restricted,
)
from windloom.errors import WindloomError
from windloom.kernels.families import LOWEST, AddFloat, AddInt, Family, MaxInt, Moments, empty_like
from windloom.kernels.folds.int128 import Int128, add_signed, as_floats, narrowed, widened, zero_wide
from windloom.kernels.folds.lists import add_lists, match_rows
from windloom.kernels.folds.matching import Stretches
from windloom.kernels.folds.products import (
    add_float_products,
    add_products,
    add_small_products,
    as_doubles,
    combine_weighed,
    fill_neutral,
    find_known,
)
from windloom.kernels.lists.lists import Lists, reduce_lists
from windloom.model.aggregate import Property

#: Matches that are collected before they are added up.
PENDING_MATCHES = 1 << 20

Matches = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]


class ListFold:
    """The lists of one side, each counted as often as the weights say for the row of the other side that it meets.

    Holistic aggregates of a join are answered from these lists, added up over all matches.
    """

    def __init__(self, term: ValueTerm, family: Family, parent: Partner, child: Partner, rows: int) -> None:
        self._owner, self._other = (parent, child) if term.operand[0] in parent.sides else (child, parent)
        lists = self._owner.held(ValueTerm(term.operand, restricted(term.weights, self._owner.sides)))
        assert isinstance(lists, ListedRows)
        self._held, self._times = lists, _times(term, family, self._other).astype(np.int64, copy=False)
        self._made = Lists(np.zeros(rows + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
        self._pending: list[Matches] = []

    def add(self, stretches: Stretches) -> None:
        rows = (self._owner.rows(stretches), self._other.rows(stretches), stretches.out, stretches.length)
        self._pending.append(match_rows(*rows, self._owner.last, self._times, self._other.last))
        if sum(len(outs) for outs, _, _ in self._pending) >= PENDING_MATCHES:
            self._add_up()

    def done(self) -> ListedRows:
        self._add_up()
        listed = self._held.listed
        cells = self._made if listed.rule.most is None else reduce_lists(self._made, listed.rule.most)
        reduced = replace(listed, cells=cells)
        lo = np.arange(len(reduced), dtype=np.int32)
        return ListedRows(reduced, lo, lo + np.int32(1))

    def _add_up(self) -> None:
        if not self._pending:
            return
        outs, rows, times = (np.concatenate(columns) for columns in zip(*self._pending, strict=True))
        self._pending = []
        listed = self._held.listed
        runs = (self._held.lo, self._held.hi)
        matched = (outs, rows, times)
        added = add_lists(self._made, listed.cells, len(listed.dictionary), matched, runs, largest=listed.rule.largest)
        if added is None:
            raise WindloomError(
                "a join has too many matches",
                "a value of a list would count 2^63 times or more",
                "join on more columns, or use a shorter window",
            )
        self._made = added


_ALL_KNOWN = np.zeros(0, np.bool_)


class TermFold(Protocol):
    """One term of the result while it is computed."""

    def add(self, stretches: Stretches) -> None: ...

    def done(self) -> Held: ...


def fold_of(term: Term, terms: Terms, parent: Partner, child: Partner, rows: int) -> TermFold:
    """Return the fold of a term over `rows` rows of the result, each of which has a match."""
    match term:
        case FactorTerms(of=operands):
            return (_FloatProducts if terms.is_float(operands) else _WholeProducts)(operands, parent, child, rows)
        case PresenceTerm(of=operands):
            return _AnyKnown(operands, parent, child, rows)
        case ValueTerm(operand=(side, component)):
            family = terms.types.sides[side][component].family
            return (ListFold if family.is_list else _Combined)(term, family, parent, child, rows)
        case Extreme(left=left, right=right):
            if left[0] in parent.sides and right[0] in parent.sides:
                return _CarriedExtreme(term, parent, child, rows)
            if left[0] in child.sides and right[0] in child.sides:
                return _CarriedExtreme(term, child, parent, rows)
            ends = (parent, child) if left[0] in parent.sides else (child, parent)
            return CornerFold(term, terms, *ends, rows)


def is_settled(fold: TermFold) -> bool:
    """Return whether the result is known already, whatever matches there are."""
    return isinstance(fold, _AnyKnown) and fold.out is None


class _WholeProducts:
    """Products of integers, added up in 128 bits; in 64 as long as these certainly suffice."""

    def __init__(self, operands: Operands, parent: Partner, child: Partner, rows: int) -> None:
        self.parent, self.child, self.rows = parent, child, rows
        left, right = numbers_of(operands, parent), numbers_of(operands, child)
        assert not isinstance(left, AddFloat)
        assert not isinstance(right, AddFloat)
        self.safe = 0  # this many matches cannot exceed 64 bits
        if isinstance(left, AddInt) and isinstance(right, AddInt):
            sizes = [
                partner.once(("size", operands), partial(_size, add_int))
                for partner, add_int in ((parent, left), (child, right))
            ]
            self.safe = (1 << 62) // max(1, sizes[0] * sizes[1])
        else:
            left, right = widened(left), widened(right)
        self.left, self.right = left, right
        self.small: NDArray[np.int64] | None = None
        self.matches = 0  # added to `small` so far
        self.wide: Int128 | None = None

    def add(self, stretches: Stretches) -> None:
        rows = (self.parent.rows(stretches), self.child.rows(stretches), stretches.out, stretches.length)
        matches = int(stretches.length.sum(dtype=np.int64))
        if matches > self.safe:
            if self.wide is None:
                self.wide = zero_wide(self.rows)
            add_products(*rows, self.left, self.parent.last, self.right, self.child.last, self.wide)
            return
        if self.matches + matches > self.safe:
            self._widen()
        if self.small is None:
            self.small = np.zeros(self.rows, np.int64)
        self.matches += matches
        last = self.parent.last, self.child.last
        assert isinstance(self.left, AddInt)
        assert isinstance(self.right, AddInt)
        add_small_products(*rows, self.left.value, last[0], self.right.value, last[1], self.small)

    def _widen(self) -> None:
        if self.small is not None:
            self.wide = zero_wide(self.rows) if self.wide is None else self.wide
            add_signed(self.wide, AddInt(self.small), 1)
        self.small, self.matches = None, 0

    def done(self) -> Number:
        if self.wide is None:
            return AddInt(np.zeros(self.rows, np.int64) if self.small is None else self.small)
        self._widen()
        return narrowed(self.wide)


def _size(numbers: AddInt) -> int:
    """Return the largest magnitude."""
    return max(-int(numbers.value.min()), int(numbers.value.max())) if len(numbers.value) else 0


class _FloatProducts:
    """Products of floats, or of floats and integers, added up as pairs."""

    def __init__(self, operands: Operands, parent: Partner, child: Partner, rows: int) -> None:
        left, right = numbers_of(operands, parent), numbers_of(operands, child)
        if not isinstance(left, AddFloat):
            parent, child, left, right = child, parent, right, left
        assert isinstance(left, AddFloat)
        self.first, self.second, self.left = parent, child, left
        self.right: object = right
        if not isinstance(right, AddFloat):
            # As doubles if that is exact, otherwise as pairs of doubles.
            doubles = (
                child.once(("doubles", operands), partial(as_doubles, right)) if isinstance(right, AddInt) else None
            )
            self.right = child.once(("floats", operands), partial(as_floats, right)) if doubles is None else doubles
        self.known = known_of(operands, parent), known_of(operands, child)
        self.out = AddFloat(np.zeros(rows), np.zeros(rows))

    def add(self, stretches: Stretches) -> None:
        rows = (self.first.rows(stretches), self.second.rows(stretches), stretches.out, stretches.length)
        left = (self.left, self.first.last, self.known[0])
        right = (self.right, self.second.last, self.known[1])
        add_float_products(*rows, *left, *right, self.out)

    def done(self) -> Number:
        return self.out


class _AnyKnown:
    """Flags: is there a match in which both are known? If everything is known, nothing is computed."""

    def __init__(self, operands: Operands, parent: Partner, child: Partner, rows: int) -> None:
        self.parent, self.child = parent, child
        self.left, self.right = known_of(operands, parent), known_of(operands, child)
        self.out = np.zeros(rows, np.bool_) if len(self.left) or len(self.right) else None

    def add(self, stretches: Stretches) -> None:
        if self.out is not None:
            rows = (self.parent.rows(stretches), self.child.rows(stretches), stretches.out, stretches.length)
            find_known(*rows, self.left, self.parent.last, self.right, self.child.last, self.out)

    def done(self) -> Flags | None:
        return None if self.out is None else flags_or_none(self.out)


class _Combined:
    """Values of one side, combined as often as the other side counts."""

    def __init__(self, term: ValueTerm, family: Family, parent: Partner, child: Partner, rows: int) -> None:
        is_parents = term.operand[0] in parent.sides
        self.owner, self.other = (parent, child) if is_parents else (child, parent)
        values = self.owner.held(ValueTerm(term.operand, restricted(term.weights, self.owner.sides)))
        assert isinstance(values, HeldValue)
        self.held, self.times = values, _times(term, family, self.other)
        self.out = empty_like(values.columns, rows)
        fill_neutral(self.out)

    def add(self, stretches: Stretches) -> None:
        rows = (self.owner.rows(stretches), self.other.rows(stretches), stretches.out, stretches.length)
        combine_weighed(*rows, self.held.columns, self.owner.last, self.times, self.other.last, self.out)

    def done(self) -> Held:
        return HeldValue(self.out, self.held.dictionary)


class _CarriedExtreme:
    """Extrema that one side has already, wherever the other side counts at all."""

    def __init__(self, term: Extreme, owner: Partner, other: Partner, rows: int) -> None:
        self.owner, self.other = owner, other
        weights = restricted(term.weights, owner.sides)
        extrema = owner.held(Extreme(term.operator, term.left, term.right, weights, term.lowest, term.kind))
        assert isinstance(extrema, HeldExtreme)
        self.held, self.known = extrema, known_of(term.weights, other)
        numbers = numbers_of(term.weights, other)
        assert isinstance(numbers, AddInt)
        self.times = numbers.value
        self.keys = MaxInt(np.full(rows, LOWEST))
        self.found, self.refused = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)

    def add(self, stretches: Stretches) -> None:
        rows = (self.owner.rows(stretches), self.other.rows(stretches), stretches.out, stretches.length)
        combine_weighed(*rows, self.held.keys, self.owner.last, self.times, self.other.last, self.keys)
        known = _ALL_KNOWN if self.held.known is None else self.held.known
        find_known(*rows, known, self.owner.last, self.known, self.other.last, self.found)
        if self.held.refused is not None:
            find_known(*rows, self.held.refused, self.owner.last, self.known, self.other.last, self.refused)

    def done(self) -> Held:
        refused = self.refused if self.refused.any() else None
        return HeldExtreme(self.keys, self.held.dictionary, flags_or_none(self.found), refused)


def numbers_of(operands: Operands, partner: Partner) -> Number:
    """Return the product of those operands that a partner has."""
    product = partner.held(FactorTerms(restricted(operands, partner.sides)))
    assert isinstance(product, AddInt | Int128 | AddFloat)
    return product


def known_of(operands: Operands, partner: Partner) -> Flags:
    """Return whether these operands have values; empty if all do."""
    flags = partner.held(PresenceTerm(restricted(operands, partner.sides)))
    assert flags is None or isinstance(flags, np.ndarray)
    return _ALL_KNOWN if flags is None else flags


def _times(term: ValueTerm, family: Family, other: Partner) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return how often the values of a term count, by row of the side that is not theirs."""
    what = ("times", family.name, restricted(term.weights, other.sides))
    return other.once(what, lambda: times_of(numbers_of(term.weights, other), family))


def times_of(numbers: Number, family: Family) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return how often values of a family count: integers, or doubles for moments."""
    assert not isinstance(numbers, AddFloat)
    times: NDArray[np.int64] | NDArray[np.float64]
    if family.columns is Moments:
        times = as_floats(numbers).high
    elif isinstance(numbers, AddInt):
        times = numbers.value
    elif Property.SELECTIVE in family.has:
        times = (numbers.high >= 0).astype(np.int64) * (numbers.low != 0)
    else:
        raise WindloomError(
            "a join has too many matches",
            f"a value of {family.name} would count 2^63 times or more",
            "join on more columns, or use a shorter window",
        )
    return times
