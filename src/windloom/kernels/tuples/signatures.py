"""The signatures of a block: a number for every distinct one, and the bits that each of them has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windloom.kernels.compiling import compiled
from windloom.model.arrays import Codes, Ints, Mask

#: The signature bits that a tuple must have, in ascending order.
Bits = tuple[int, ...]

#: The number of predicates in one word of a signature: the bits of a bigint without its sign.
SIGNATURE_BITS = 63

#: More signatures than this are not distinguished, nor more than one per this many tuples.
MOST_SIGNATURES = 1 << 15
TUPLES_PER_SIGNATURE = 64

#: If at most this many pairs of a signature and its next word are possible, a table of all pairs numbers them.
MOST_PAIRS = 1 << 18

_FIRST_TABLE = 1 << 10


@dataclass(frozen=True, slots=True)
class Signatures:
    """The distinct signatures of the tuples of a block.

    `codes` is the number of every tuple's signature, `words` has the distinct ones, `counts` their tuples.
    """

    codes: Codes
    words: Ints  # one row per word
    counts: Ints

    def __len__(self) -> int:
        return len(self.counts)

    def have(self, bits: Bits) -> Mask:
        """Return a mask of the distinct signatures that have all these bits."""
        mask = np.ones(len(self), np.bool_)
        for bit in bits:
            mask &= (self.words[bit // SIGNATURE_BITS] >> np.int64(bit % SIGNATURE_BITS)) & 1 == 1
        return mask

    def count(self, bits: Bits) -> int:
        """Return the number of tuples that have all these bits."""
        return int(self.counts[self.have(bits)].sum())


@dataclass(frozen=True, slots=True)
class CodedWord:
    """A word of every tuple as a number, and the words by number."""

    codes: Codes
    words: Ints


def number_signatures(words: Sequence[Ints | CodedWord], most: int) -> Signatures | None:
    """Number the distinct signatures in order of appearance; None if there are more than `most`."""
    codes, words_of, counts = np.empty(0, np.int32), np.empty((0, most), np.int64), np.empty(0, np.int64)
    for word in words:
        # The signatures so far, each together with the next word.
        word_codes = word.codes if isinstance(word, CodedWord) else word
        next_codes = np.empty(len(word_codes), np.int32)
        before, next_words = np.zeros(most, np.int32), np.empty(most, np.int64)
        pairs = max(1, len(counts)) * len(word.words) if isinstance(word, CodedWord) else 0
        counts = np.zeros(most, np.int64)
        if isinstance(word, CodedWord) and pairs <= MOST_PAIRS:
            numbers = np.full(pairs, -1, np.int32)
            count = _number_coded(codes, word_codes, word.words, numbers, next_codes, before, next_words, counts)
        else:
            plain = word.words[word.codes] if isinstance(word, CodedWord) else word
            count = _number(codes, plain, next_codes, before, next_words, counts)
        if count < 0:
            return None
        words_of = np.concatenate([words_of[:, before[:count]], next_words[None, :count]])
        codes, counts = next_codes, counts[:count]
    return Signatures(codes, words_of, counts)


@compiled
def _number_coded(codes, word_codes, words, numbers, next_codes, before, own, counts):  # type: ignore[no-untyped-def]
    """Number the pairs of a code and a coded word, like `_number`; `numbers` has an entry of -1 per pair."""
    count = 0
    for i in range(len(word_codes)):
        code = codes[i] if len(codes) else np.int32(0)
        pair = np.uint32(code) * np.uint32(len(words)) + np.uint32(word_codes[i])
        number = numbers[pair]
        if number < 0:
            if count == len(own):
                return -1
            number = np.int32(count)
            own[count] = words[word_codes[i]]
            before[count] = code
            count += 1
            numbers[pair] = number
        next_codes[i] = number
        counts[number] += 1
    return count


@compiled
def _number(codes, word, next_codes, before, own, counts):  # type: ignore[no-untyped-def]
    """Number the pairs of a code and a word (`codes` is empty for the first word); -1 if there is no room for all.

    It uses a hash table of numbers that is at most half full.
    """
    shift = np.uint64(54)
    table = np.full(_FIRST_TABLE, -1, np.int32)
    count = 0
    for i in range(len(word)):
        value = word[i]
        code = codes[i] if len(codes) else np.int32(0)
        mixed = np.uint64(value) ^ np.uint64(code) * np.uint64(0xC2B2AE3D27D4EB4F)
        place = mixed * np.uint64(0x9E3779B97F4A7C15) >> shift
        number = table[place]
        while number >= 0 and (own[number] != value or before[number] != code):
            place = (place + np.uint64(1)) & np.uint64(len(table) - 1)
            number = table[place]
        if number < 0:
            if count == len(own):
                return -1
            number = np.int32(count)
            own[count] = value
            before[count] = code
            count += 1
            table[place] = number
            if 2 * count > len(table):
                shift -= np.uint64(1)
                table = np.full(2 * len(table), -1, np.int32)
                for old in range(count):
                    mixed = np.uint64(own[old]) ^ np.uint64(before[old]) * np.uint64(0xC2B2AE3D27D4EB4F)
                    place = mixed * np.uint64(0x9E3779B97F4A7C15) >> shift
                    while table[place] >= 0:
                        place = (place + np.uint64(1)) & np.uint64(len(table) - 1)
                    table[place] = old
        next_codes[i] = number
        counts[number] += 1
    return count
