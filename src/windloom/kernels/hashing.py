"""Keys and hashes of values: doubles as 64-bit integers in the same order, and Spark's own hash functions."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled

#: The key of -0.0, which equals 0.0 in Spark's order; the key of 0.0 is the next one.
KEY_OF_MINUS_ZERO = -1


def float_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return doubles as integers in the same order.

    >>> float_keys(np.array([-1.5, -0.0, 0.0, 2.0, np.inf, np.nan])).argsort().tolist()
    [0, 1, 2, 3, 4, 5]
    """
    keys = np.empty(len(values), np.int64)
    _write_keys(np.ascontiguousarray(values).view(np.int64), keys)
    return keys


def float_values(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the inverse of `float_keys` (the mapping is its own inverse on bits)."""
    return (keys ^ ((keys >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)


@compiled
def _write_keys(bits, keys):  # type: ignore[no-untyped-def]
    for i in range(len(bits)):
        magnitude = bits[i] & np.int64(0x7FFFFFFFFFFFFFFF)
        own = bits[i] if magnitude <= np.int64(0x7FF0000000000000) else np.int64(0x7FF8000000000000)  # NaN
        keys[i] = own ^ ((own >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))


# Spark's `hash()` of group keys, so that driver, executors and Spark itself agree on the bucket of a group.
#
# MurmurHash3 of 32 bits with seed 42, column after column; NULL leaves the hash unchanged. Spark takes the bytes after
# the last whole word one by one, which the published algorithm does not.

_SEED = 42
#: Decimals of more digits are hashed as bytes, others as 64-bit integers.
_LONG_DIGITS = 18


def spark_hash(columns: Sequence[pa.Array], rows: int) -> NDArray[np.int64]:
    """Return the hash of every row, as Spark's 32-bit integer.

    >>> spark_hash([pa.array([1, None]), pa.array(["a", "b"])], 2).tolist()
    [573093329, 1905031361]
    """
    hashes = np.full(rows, _SEED, np.int64)
    for column in columns:
        if pa.types.is_null(column.type):
            continue
        valid = np.asarray(column.is_valid(), np.bool_)
        kind = column.type
        if bool(pa.types.is_string(kind) or pa.types.is_binary(kind)):
            offsets, data = _bytes_of(column)
            _hash_bytes(offsets, data, valid, hashes)
        elif pa.types.is_decimal(kind) and kind.precision > _LONG_DIGITS:
            offsets, data = _bytes_of(pa.array([_big_endian(number) for number in column.to_pylist()], pa.binary()))
            _hash_bytes(offsets, data, valid, hashes)
        else:
            words, is_long = _words_of(column)
            _hash_words(words, is_long, valid, hashes)
    return np.where(hashes >= 1 << 31, hashes - (1 << 32), hashes)


def _words_of(column: pa.Array) -> tuple[NDArray[np.int64], bool]:
    """Return values as integers, and whether they take 64 bits."""
    kind = column.type
    if pa.types.is_decimal(kind):
        scaled = [0 if number is None else int(number.scaleb(kind.scale)) for number in column.to_pylist()]
        return np.array(scaled, np.int64), True
    if pa.types.is_floating(kind):
        is_long = kind.bit_width == 64
        values = np.array(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.float64 if is_long else np.float32)
        values[values == 0] = 0  # turns -0.0 into 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.int64 if is_long else np.int32).astype(np.int64), is_long
    if pa.types.is_timestamp(kind):
        return _integers(column.cast(pa.int64())), True
    if pa.types.is_date32(kind):
        return _integers(column.cast(pa.int32())), False
    return _integers(column.cast(pa.int64())), pa.types.is_int64(kind)


def _integers(column: pa.Array) -> NDArray[np.int64]:
    return np.array(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.int64)


def _bytes_of(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    text = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return offsets.astype(np.int64), text.copy()


def _big_endian(value: Decimal | None) -> bytes | None:
    """Return the unscaled value in the fewest bytes of two's complement, as Java's BigInteger writes it."""
    if value is None:
        return None
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    number = -number if sign else number
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


@compiled
def _mixed(hash_, word):  # type: ignore[no-untyped-def]
    low = np.uint64(0xFFFFFFFF)
    k = (np.uint64(word) & low) * np.uint64(0xCC9E2D51) & low
    k = (k << np.uint64(15) | k >> np.uint64(17)) & low
    k = k * np.uint64(0x1B873593) & low
    h = np.uint64(hash_) ^ k
    h = (h << np.uint64(13) | h >> np.uint64(19)) & low
    return (h * np.uint64(5) + np.uint64(0xE6546B64)) & low


@compiled
def _finished(hash_, length):  # type: ignore[no-untyped-def]
    low = np.uint64(0xFFFFFFFF)
    h = np.uint64(hash_) ^ np.uint64(length)
    h ^= h >> np.uint64(16)
    h = h * np.uint64(0x85EBCA6B) & low
    h ^= h >> np.uint64(13)
    h = h * np.uint64(0xC2B2AE35) & low
    h ^= h >> np.uint64(16)
    return h


@compiled
def _hash_words(words, is_long, valid, hashes):  # type: ignore[no-untyped-def]
    for i in range(len(words)):
        if valid[i]:
            h = _mixed(np.uint64(hashes[i]), np.uint64(words[i]))
            if is_long:
                h = _mixed(h, np.uint64(words[i]) >> np.uint64(32))
            hashes[i] = np.int64(_finished(h, np.uint64(8 if is_long else 4)))


@compiled
def _hash_bytes(offsets, data, valid, hashes):  # type: ignore[no-untyped-def]
    for i in range(len(offsets) - 1):
        if not valid[i]:
            continue
        h = np.uint64(hashes[i])
        first, last = offsets[i], offsets[i + 1]
        whole = first + (last - first) // 4 * 4
        for place in range(first, whole, 4):
            word = np.uint64(data[place]) | np.uint64(data[place + 1]) << np.uint64(8)
            word |= np.uint64(data[place + 2]) << np.uint64(16) | np.uint64(data[place + 3]) << np.uint64(24)
            h = _mixed(h, word)
        for place in range(whole, last):
            h = _mixed(h, np.uint64(np.int64(np.int8(data[place]))))
        hashes[i] = np.int64(_finished(h, np.uint64(last - first)))


# Spark's `xxhash64()` of integers: XXH64 with seed 42, of 8 bytes for a bigint and of 4 for shorter integers.

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_XXHASH_SEED = np.uint64(42)


@compiled
def pack_ranks(hashes, register_bits, rank_bits):  # type: ignore[no-untyped-def]
    """Return register and rank of every hash in one number: the lowest bits, and above `rank_bits` bits of rank.

    The rank is one more than the number of trailing zeros of the other bits.
    """
    packed = np.empty(len(hashes), np.int64)
    low = (np.int64(1) << register_bits) - 1
    for i in range(len(hashes)):
        rest = (np.uint64(hashes[i]) >> np.uint64(register_bits)) | (np.uint64(1) << np.uint64(64 - register_bits))
        rank = np.int64(1)
        while rest & np.uint64(1) == np.uint64(0):
            rest >>= np.uint64(1)
            rank += 1
        packed[i] = ((hashes[i] & low) << rank_bits) | rank
    return packed


@compiled
def hash_integers(values, is_long):  # type: ignore[no-untyped-def]
    """Return the hash of every value; `is_long` is true for bigints."""
    hashes = np.empty(len(values), np.int64)
    for i in range(len(values)):
        word = np.uint64(values[i])
        if is_long:
            mixed = _XXHASH_SEED + _P5 + np.uint64(8)
            word = word * _P2
            mixed ^= ((word << np.uint64(31)) | (word >> np.uint64(33))) * _P1
            mixed = ((mixed << np.uint64(27)) | (mixed >> np.uint64(37))) * _P1 + _P4
        else:
            mixed = _XXHASH_SEED + _P5 + np.uint64(4)
            mixed ^= (word & np.uint64(0xFFFFFFFF)) * _P1
            mixed = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) * _P2 + _P3
        mixed ^= mixed >> np.uint64(33)
        mixed *= _P2
        mixed ^= mixed >> np.uint64(29)
        mixed *= _P3
        mixed ^= mixed >> np.uint64(32)
        hashes[i] = np.int64(mixed)
    return hashes
