"""Extrema of a sum, difference or product of two sides, where the two sides meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.columns import keys_of
from windloom.aggregates.registry import PlannedComponent
from windloom.answers.joins.joined_rows import Partner
from windloom.answers.joins.terms import (
    Extreme,
    Flags,
    Held,
    HeldExtreme,
    HeldValue,
    Operands,
    Terms,
    corner_terms,
    flags_or_none,
    restricted,
)
from windloom.kernels.families import LOWEST, AddInt, MaxInt
from windloom.kernels.folds.corners import PLUS, TIMES, exact_corners, float_corners, negate
from windloom.kernels.folds.int128 import Int128, scaled, widened, within, zero_wide
from windloom.kernels.folds.matching import Stretches
from windloom.kernels.hashing import float_keys, float_values
from windloom.model.types import DataType, TypeKind, as_array


def wide_of(dictionary: pa.Array, keys: NDArray[np.int64]) -> Int128:
    """Return the unscaled values of decimals by their ranks, as integers of 128 bits."""
    values = as_array(dictionary).cast(pa.decimal128(38, dictionary.type.scale))
    words = np.frombuffer(values.buffers()[1] or b"", "<u8")[2 * values.offset : 2 * (values.offset + len(values))]
    if not len(words):
        return Int128(np.zeros(len(keys), np.int64), np.zeros(len(keys), np.uint64))
    pairs = words.reshape(-1, 2)[keys]
    return Int128(pairs[:, 1].copy().view(np.int64), pairs[:, 0].copy())


def decimals_of(numbers: Int128, kind: DataType, wanted: NDArray[np.bool_]) -> pa.Array:
    """Return decimals from their unscaled values; 0 where no value is wanted."""
    words = np.stack([numbers.low, numbers.high.view(np.uint64)], axis=1)
    words[~wanted] = 0
    buffers = [None, pa.py_buffer(words.tobytes())]
    return pa.Array.from_buffers(pa.decimal128(kind.precision, kind.scale), len(words), buffers)


_ALL_KNOWN = np.zeros(0, np.bool_)
Keys = NDArray[np.int64]
#: A side of an extreme: the number of the side, its MIN and its MAX.
End = tuple[int, int, int]
#: Columns of numbers, as the kernels take them: the lowest, the highest, and for floats what is known of NaN.
Numbers = tuple[Any, ...]


class CornerFold:
    """An extreme whose left end is one partner's and whose right end is the other's."""

    def __init__(self, term: Extreme, terms: Terms, left: Partner, right: Partner, rows: int) -> None:
        self.term, self.left, self.right = term, left, right
        self.is_float = term.kind.kind is TypeKind.FLOAT
        make = _float_end if self.is_float else _exact_end
        ends = [make(term, terms, partner, end) for partner, end in ((left, term.left), (right, term.right))]
        self.numbers, self.known = [numbers for numbers, _ in ends], [known for _, known in ends]
        if term.operator == "-":
            # The extrema of -b, from those of b.
            low, high, *nan = self.numbers[1]
            self.numbers[1] = (negate(high), negate(low)) if isinstance(low, Int128) else (-high, -low, *nan)
        self.operator = TIMES if term.operator == "*" else PLUS
        self.found, self.unclear = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
        self.best = np.zeros(rows) if self.is_float else zero_wide(rows)

    def add(self, stretches: Stretches) -> None:
        rows = (self.left.rows(stretches), self.right.rows(stretches), stretches.out, stretches.length)
        ends = (
            *(*self.numbers[0], self.left.last, self.known[0]),
            *(*self.numbers[1], self.right.last, self.known[1]),
        )
        if self.is_float:
            float_corners(*rows, *ends, self.operator, self.term.lowest, self.found, self.unclear, self.best)
        else:
            exact_corners(*rows, *ends, self.operator, self.term.lowest, self.found, self.best)

    def done(self) -> Held:
        keys, dictionary, fits = self._keys()
        keys = np.where(self.found, ~keys if self.term.lowest else keys, LOWEST)
        if isinstance(self.best, np.ndarray) and not self.term.lowest:
            self.unclear &= ~np.isnan(self.best)  # nothing is above NaN, whatever else there is
        refused = self.found & (self.unclear | ~fits)
        known = flags_or_none(self.found)
        return HeldExtreme(MaxInt(keys), dictionary, known, refused if refused.any() else None)

    def _keys(self) -> tuple[Keys, pa.Array | None, Flags]:
        """Return keys as MIN and MAX keep them, and which values fit their type."""
        kind, best = self.term.kind, self.best
        if not isinstance(best, Int128):
            return float_keys(best), None, np.ones(len(best), np.bool_)
        if kind.kind is TypeKind.DECIMAL:
            fits = within(best, 10**kind.precision)
            keys, dictionary = keys_of(decimals_of(best, kind, fits & self.found))
            return keys, dictionary, fits
        limit = 1 << (kind.bits - 1)
        fits = within(best, limit) | ((best.high == -1) & (best.low == np.uint64(2**64 - limit)))
        return best.low.view(np.int64).copy(), None, fits


def _keys_at(
    terms: Terms, partner: Partner, end: End, weights: Operands
) -> tuple[list[HeldValue], list[PlannedComponent], Flags]:
    low, high, known = corner_terms(end, restricted(weights, partner.sides))
    values_at_ends = [partner.held(value) for value in (low, high)]
    assert all(isinstance(values, HeldValue) for values in values_at_ends)
    planned = [terms.types.sides[end[0]][component] for component in end[1:]]
    flags = partner.held(known)
    assert flags is None or isinstance(flags, np.ndarray)
    return values_at_ends, planned, (_ALL_KNOWN if flags is None else flags)  # type: ignore[return-value]


def _plain_keys(values: HeldValue, known: Flags, *, lowest: bool) -> Keys:
    """Return keys in the order of values, with 0 where there is none."""
    keys: Keys = ~values.columns.value if lowest else values.columns.value
    return np.where(known, keys, 0) if len(known) else keys


def _exact_end(term: Extreme, terms: Terms, partner: Partner, end: End) -> tuple[Numbers, Flags]:
    """Return the lowest and highest integers, at the scale of the result, and where there are any."""
    values, planned, known = _keys_at(terms, partner, end, term.weights)
    numbers_of_ends = []
    for held_value, component, lowest in zip(values, planned, (True, False), strict=True):
        assert component.argument_type is not None
        keys, scale = _plain_keys(held_value, known, lowest=lowest), component.argument_type.scale
        numbers = widened(AddInt(keys)) if held_value.dictionary is None else wide_of(held_value.dictionary, keys)
        numbers_of_ends.append(numbers if term.operator == "*" else scaled(numbers, term.kind.scale - scale))
    return tuple(numbers_of_ends), known


def _float_end(term: Extreme, terms: Terms, partner: Partner, end: End) -> tuple[Numbers, Flags]:
    """Return the lowest and highest doubles, whether some or all are NaN, and where there are any."""
    values, planned, known = _keys_at(terms, partner, end, term.weights)
    low, high = (
        _doubles(held_value, component, _plain_keys(held_value, known, lowest=lowest))
        for held_value, component, lowest in zip(values, planned, (True, False), strict=True)
    )
    return (low, high, np.isnan(high).astype(np.uint8) + np.isnan(low)), known


def _doubles(value: HeldValue, planned: PlannedComponent, keys: Keys) -> NDArray[np.float64]:
    kind = planned.argument_type
    if kind is not None and kind.kind is TypeKind.FLOAT:
        return float_values(keys)
    if value.dictionary is None:
        return keys.astype(np.float64)
    values = as_array(value.dictionary).cast(pa.float64()).to_numpy(zero_copy_only=False)
    doubles: NDArray[np.float64] = values[keys] if len(values) else np.zeros(len(keys))
    return doubles
