"""Spark's `xxhash64()` of integers: XXH64 with seed 42, of 8 bytes for a bigint and of 4 for shorter integers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling.compiled import compiled

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_SEED = np.uint64(42)


def hash_integers(values: NDArray[np.int64], *, is_long: bool) -> NDArray[np.int64]:
    """The hash of every value; `is_long` is true for bigints."""
    hashes = np.empty(len(values), np.int64)
    _hash(values, is_long, hashes)
    return hashes


def pack_ranks(hashes: NDArray[np.int64], register_bits: int, rank_bits: int) -> NDArray[np.int64]:
    """Register and rank of every hash in one number: the lowest bits, and above `rank_bits` bits of rank.

    The rank is one more than the number of trailing zeros of the other bits.
    """
    packed = np.empty(len(hashes), np.int64)
    _pack(hashes, register_bits, rank_bits, packed)
    return packed


@compiled
def _pack(hashes, register_bits, rank_bits, packed):  # type: ignore[no-untyped-def]
    low = (np.int64(1) << register_bits) - 1
    for i in range(len(hashes)):
        rest = (np.uint64(hashes[i]) >> np.uint64(register_bits)) | (np.uint64(1) << np.uint64(64 - register_bits))
        rank = np.int64(1)
        while rest & np.uint64(1) == np.uint64(0):
            rest >>= np.uint64(1)
            rank += 1
        packed[i] = ((hashes[i] & low) << rank_bits) | rank


@compiled
def _hash(values, is_long, hashes):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        word = np.uint64(values[i])
        if is_long:
            mixed = _SEED + _P5 + np.uint64(8)
            word = word * _P2
            mixed ^= ((word << np.uint64(31)) | (word >> np.uint64(33))) * _P1
            mixed = ((mixed << np.uint64(27)) | (mixed >> np.uint64(37))) * _P1 + _P4
        else:
            mixed = _SEED + _P5 + np.uint64(4)
            mixed ^= (word & np.uint64(0xFFFFFFFF)) * _P1
            mixed = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) * _P2 + _P3
        mixed ^= mixed >> np.uint64(33)
        mixed *= _P2
        mixed ^= mixed >> np.uint64(29)
        mixed *= _P3
        mixed ^= mixed >> np.uint64(32)
        hashes[i] = np.int64(mixed)
