"""Extrema of a sum, difference or product of two sides, where the two sides meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.columns import keys_of
from windloom.answers.joins.joined_rows import Partner
from windloom.answers.joins.terms import (
    Extreme,
    Flags,
    Held,
    HeldExtreme,
    HeldValue,
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
        ends = [_end(term, terms, partner, end) for partner, end in ((left, term.left), (right, term.right))]
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
        kind, best, dictionary = self.term.kind, self.best, None
        fits = np.ones(len(self.found), np.bool_)
        if not isinstance(best, Int128):
            keys = float_keys(best)
            if not self.term.lowest:
                self.unclear &= ~np.isnan(best)  # nothing is above NaN, whatever else there is
        elif kind.kind is TypeKind.DECIMAL:
            fits = within(best, 10**kind.precision)
            words = np.stack([best.low, best.high.view(np.uint64)], axis=1)
            words[~(fits & self.found)] = 0
            buffers = [None, pa.py_buffer(words.tobytes())]
            decimals = pa.Array.from_buffers(pa.decimal128(kind.precision, kind.scale), len(words), buffers)
            keys, dictionary = keys_of(decimals)
        else:
            limit = 1 << (kind.bits - 1)
            fits = within(best, limit) | ((best.high == -1) & (best.low == np.uint64(2**64 - limit)))
            keys = best.low.view(np.int64).copy()
        keys = np.where(self.found, ~keys if self.term.lowest else keys, LOWEST)
        refused = self.found & (self.unclear | ~fits)
        known = flags_or_none(self.found)
        return HeldExtreme(MaxInt(keys), dictionary, known, refused if refused.any() else None)


def _end(term: Extreme, terms: Terms, partner: Partner, end: End) -> tuple[Numbers, Flags]:
    """Return the lowest and highest numbers of a side, and where there are any.

    Integers are at the scale of the result. With doubles, a third column says whether some or all are NaN.
    """
    *values, is_known = corner_terms(end, restricted(term.weights, partner.sides))
    flags = partner.held(is_known)
    assert flags is None or isinstance(flags, np.ndarray)
    known, is_float = _ALL_KNOWN if flags is None else flags, term.kind.kind is TypeKind.FLOAT
    numbers: list[Any] = []
    for value, component, lowest in zip(values, end[1:], (True, False), strict=True):
        held, kind = partner.held(value), terms.types.sides[end[0]][component].argument_type
        assert isinstance(held, HeldValue)
        # In the order of values, with 0 where there is none.
        keys: Keys = ~held.columns.value if lowest else held.columns.value
        keys = np.where(known, keys, 0) if len(known) else keys
        if is_float:
            numbers.append(_doubles(held, kind, keys))
            continue
        assert kind is not None
        exact = widened(AddInt(keys)) if held.dictionary is None else _wide(held.dictionary, keys)
        numbers.append(exact if term.operator == "*" else scaled(exact, term.kind.scale - kind.scale))
    if is_float:
        numbers.append(np.isnan(numbers[1]).astype(np.uint8) + np.isnan(numbers[0]))
    return tuple(numbers), known


def _doubles(value: HeldValue, kind: DataType | None, keys: Keys) -> NDArray[np.float64]:
    if kind is not None and kind.kind is TypeKind.FLOAT:
        return float_values(keys)
    if value.dictionary is None:
        return keys.astype(np.float64)
    values = as_array(value.dictionary).cast(pa.float64()).to_numpy(zero_copy_only=False)
    doubles: NDArray[np.float64] = values[keys] if len(values) else np.zeros(len(keys))
    return doubles


def _wide(dictionary: pa.Array, keys: Keys) -> Int128:
    """Return the unscaled values of decimals by their ranks, as integers of 128 bits."""
    values = as_array(dictionary).cast(pa.decimal128(38, dictionary.type.scale))
    words = np.frombuffer(values.buffers()[1] or b"", "<u8")[2 * values.offset : 2 * (values.offset + len(values))]
    if not len(words):
        return Int128(np.zeros(len(keys), np.int64), np.zeros(len(keys), np.uint64))
    pairs = words.reshape(-1, 2)[keys]
    return Int128(pairs[:, 1].copy().view(np.int64), pairs[:, 0].copy())
