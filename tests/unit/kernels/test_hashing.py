"""Hashes of integers against the published algorithm, in Python's whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from windloom.kernels.hashing import hash_integers, pack_ranks

_P1, _P2, _P3 = 11400714785074694791, 14029467366897019727, 1609587929392839161
_P4, _P5 = 9650029242287828579, 2870177450012600261
_WHOLE = 1 << 64


def rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) % _WHOLE


def xxh64(data: bytes, seed: int = 42) -> int:
    """XXH64 of 4 or 8 bytes."""
    found = (seed + _P5 + len(data)) % _WHOLE
    word = int.from_bytes(data, "little")
    if len(data) == 8:
        found ^= rotated(word * _P2 % _WHOLE, 31) * _P1 % _WHOLE
        found = (rotated(found, 27) * _P1 + _P4) % _WHOLE
    else:
        found ^= word * _P1 % _WHOLE
        found = (rotated(found, 23) * _P2 + _P3) % _WHOLE
    for shift, prime in ((33, _P2), (29, _P3), (32, 1)):
        found = (found ^ found >> shift) * prime % _WHOLE
    return found


@pytest.mark.parametrize("width", [4, 8])
def test_hashes(width: int) -> None:
    most = 2 ** (8 * width - 1)
    values = [0, 1, -1, 42, -5, most - 1, -most, *range(100, 5000, 97)]
    expected = [xxh64(value.to_bytes(width, "little", signed=True)) for value in values]
    found = hash_integers(np.array(values, np.int64), is_long=width == 8)
    assert [value % _WHOLE for value in found.tolist()] == expected


def test_a_rank_is_one_more_than_the_trailing_zeros_above_the_register() -> None:
    hashes = np.array([0, 5, 1 << 12, (1 << 15) | 7, -1, -(2**63)], np.int64)
    packed = pack_ranks(hashes, 12, 8)
    assert [(value >> 8, value & 255) for value in packed.tolist()] == [
        (0, 53),
        (5, 53),
        (0, 1),
        (7, 4),
        (4095, 1),
        (0, 52),
    ]
