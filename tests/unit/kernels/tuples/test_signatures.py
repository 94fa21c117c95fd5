"""Signatures: distinct ones are numbered, however many words they have and however large the table grows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from support.weaving import tuples_of
from windloom.kernels.tuples import signatures
from windloom.kernels.tuples.signatures import SIGNATURE_BITS, CodedWord, number_signatures
from windloom.kernels.tuples.tuples import Tuples


def words_of(tuples: int, words: int, distinct: int, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    signatures = rng.integers(0, 2**SIGNATURE_BITS, (distinct, words))
    signatures[: distinct // 2, 1:] = signatures[0, 1:]  # many differ in one word only
    picked = signatures[rng.integers(0, distinct, tuples)]
    return [np.ascontiguousarray(picked[:, word]) for word in range(words)]


@pytest.mark.parametrize("words", [1, 2, 4])
@pytest.mark.parametrize("distinct", [1, 2, 700, 5_000])
def test_distinct_signatures_are_numbered(words: int, distinct: int) -> None:
    given = words_of(20_000, words, distinct)
    found = number_signatures(given, 20_000)
    assert found is not None
    expected, counts = np.unique(np.stack(given, axis=1), axis=0, return_counts=True)
    assert len(found) == len(expected)
    for number, word in enumerate(given):
        assert (found.words[number][found.codes] == word).all()
    order = np.lexsort(found.words[::-1])
    assert (expected == found.words[:, order].T).all()
    assert (found.counts[order] == counts).all()


def coded_word(word: np.ndarray, seed: int) -> CodedWord:
    """The word as numbers of values in any order, some of which no tuple has."""
    rng = np.random.default_rng(seed)
    values = rng.permutation(np.unique(np.concatenate([word, rng.integers(0, 2**SIGNATURE_BITS, 50)])))
    order = np.argsort(values)
    return CodedWord(order[np.searchsorted(values[order], word)].astype(np.int32), values)


@pytest.mark.parametrize("most_pairs", [0, 100_000, 1 << 18])
@pytest.mark.parametrize(("words", "coded"), [(1, (0,)), (2, (0, 1)), (3, (0, 2)), (3, (1,))])
@pytest.mark.parametrize("distinct", [1, 60, 700])
def test_words_that_come_with_numbers_are_numbered_like_others(
    words: int, coded: tuple[int, ...], distinct: int, most_pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signatures, "MOST_PAIRS", most_pairs)
    given = words_of(20_000, words, distinct)
    found = number_signatures(
        [coded_word(word, number) if number in coded else word for number, word in enumerate(given)], 20_000
    )
    assert found is not None
    rows = list(zip(*(word.tolist() for word in given), strict=True))
    numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}  # in order of appearance
    assert found.codes.tolist() == [numbers[row] for row in rows]
    assert list(zip(*found.words.tolist(), strict=True)) == list(numbers)
    assert found.counts.tolist() == np.bincount([numbers[row] for row in rows]).tolist()
    coded_words = [coded_word(word, 1) for word in given]
    assert number_signatures(coded_words, len(numbers) - 1) is None
    assert number_signatures(coded_words, len(numbers)) is not None


def test_tuples_number_signatures_that_come_with_numbers_as_others() -> None:
    word = [3, 1, 1, 7, 3]
    plain, coded = pa.array(word), pa.array(word).dictionary_encode()
    found = [tuples_of([0, 0, 1, 1, 5], own, words=1) for own in (plain, coded)]
    by_value, by_number = (tuples.signatures(5) for tuples in found)
    assert by_value is not None
    assert by_number is not None
    assert by_number.codes.tolist() == by_value.codes.tolist() == [0, 1, 1, 2, 0]
    assert by_number.words.tolist() == by_value.words.tolist() == [[3, 1, 7]]
    assert found[1].word(0).tolist() == word
    assert found[1].chosen((1,)).rows.tolist() == [0, 3, 4]


@pytest.mark.parametrize("words", [1, 3])
def test_no_more_signatures_than_asked_for_are_numbered(words: int) -> None:
    given = words_of(5_000, words, 40)
    count = len(np.unique(np.stack(given, axis=1), axis=0))
    assert number_signatures(given, count - 1) is None
    exact = number_signatures(given, count)
    assert exact is not None
    assert len(exact) == count


def test_signatures_tell_their_bits() -> None:
    given = words_of(3_000, 3, 90)
    found = number_signatures(given, 3_000)
    assert found is not None
    for bits in ((), (0,), (5, SIGNATURE_BITS - 1), (3, SIGNATURE_BITS, 2 * SIGNATURE_BITS + 7)):
        expected = np.ones(3_000, np.bool_)
        for bit in bits:
            expected &= (given[bit // SIGNATURE_BITS] >> (bit % SIGNATURE_BITS)) & 1 == 1
        assert (found.have(bits)[found.codes] == expected).all()
        assert found.count(bits) == expected.sum()


def signed_tuples() -> Tuples:
    return tuples_of([0, 0, 1, 1, 5], pa.array([1, 2, 1, 3, 1]), pa.array(["a", "b", "a", None, "a"]), words=1)


def test_a_grid_by_signature_has_no_more_cells_than_asked_for() -> None:
    edges = tuples_of([0])._edges  # a slice per tick
    grid = (tuples := signed_tuples()).signed_grid((), edges, 5)
    assert tuples.signatures(5) is None or grid is None  # one signature in 64 tuples is too many
    few = signed_tuples()
    assert len(few.signatures(5) or []) == 3
    found = few.signed_grid((0,), edges, 5)
    assert found is not None
    assert len(found) == 5
    assert few.signed_grid((), edges, 5) is not None
    fewer = signed_tuples()
    fewer.signatures(5)
    assert fewer.signed_grid((0,), edges, 4) is None


def test_a_coarser_grid_of_cells_is_that_of_tuples() -> None:
    tuples = signed_tuples()
    tuples.signatures(5)
    edges = tuples._edges
    fine = tuples.signed_grid((0,), edges, 5)
    assert fine is not None
    for groups in ((), (0,)):
        coarser = fine.coarser(tuples.slices, tuples.slices.slicing(edges), tuples.grouping(groups))
        expected = tuples.grid(groups, edges)
        assert (coarser.cells == expected.cells[fine.row_of]).all()
        assert (coarser.slice_of == expected.slice_of).all()
        assert coarser.keys(coarser.every) == expected.keys(expected.every)
        assert (coarser.starts_of(coarser.every) == expected.starts_of(expected.every)).all()
