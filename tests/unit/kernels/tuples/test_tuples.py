"""Tuples of a block: which are chosen by signatures of any length, and what is made only once."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from support.weaving import TICKS, cut_of, tuples_of
from windloom.kernels.tuples.set_tuples import ComponentInput
from windloom.kernels.tuples.signatures import SIGNATURE_BITS
from windloom.kernels.tuples.tuples import TICK, Tuples
from windloom.slicing.edges import EdgeClass, EdgeSet

PREDICATES = 150


def signed(satisfied: list[set[int]]) -> list[pa.Array]:
    """The words of signatures."""
    words = -(-PREDICATES // SIGNATURE_BITS)
    return [
        pa.array(
            [sum(1 << bit % SIGNATURE_BITS for bit in bits if bit // SIGNATURE_BITS == word) for bits in satisfied],
            pa.int64(),
        )
        for word in range(words)
    ]


def test_tuples_are_chosen_by_any_bits_of_several_words() -> None:
    rng = random.Random(6)
    satisfied = [{bit for bit in range(PREDICATES) if rng.random() < 0.4} for _ in range(80)]
    words = signed(satisfied)
    assert len(words) == 3
    tuples = tuples_of(range(80), *words, words=3)
    for bits in [(), (0,), (62,), (63,), (125,), (126,), (149,), (5, 63), (62, 63, 149), (1, 2, 3)]:
        chosen = tuples.chosen(bits)
        expected = [i for i, held in enumerate(satisfied) if set(bits) <= held]
        assert chosen.every == (not bits)
        assert chosen.count(80) == len(expected)
        if bits:
            assert chosen.rows.tolist() == expected


def test_a_tuple_counts_where_it_has_a_value_and_satisfies_predicate_and_filter() -> None:
    signature, values = [3, 1, 2, 3, 3], [1, 2, 3, None, 5]
    tuples = tuples_of([0, 0, 0, 0, 1], pa.array(signature), pa.array(values), words=1)
    cut = cut_of(tuples, own=(0,))
    assert cut.where(ComponentInput(0), None)[1].tolist() == [0, 1, 3, 4]
    assert cut.where(ComponentInput(0), 0)[1].tolist() == [0, 1, 4]
    assert cut.where(ComponentInput(0, filter=1), 0)[1].tolist() == [0, 4]
    assert cut.taken(cut.counts(ComponentInput(0, filter=1), 0)).tolist() == [1, 1]
    assert cut.taken(cut.counts(ComponentInput(), None)).tolist() == [3, 1]


def test_tuples_in_order_of_a_column_are_the_same_tuples() -> None:
    """Of a value, they come in order of slice, and of a slice as they came."""
    rng = random.Random(3)
    ticks = [rng.randrange(40) for _ in range(60)]
    keys, numbers = [rng.choice("abc") for _ in ticks], list(range(60))
    tuples = tuples_of(ticks, pa.array(keys), pa.array(numbers))
    ordered = tuples.by(0)
    assert tuples.by(0) is ordered
    coded = tuples.column(0).coded
    rows = sorted(numbers, key=lambda row: (coded.codes[row], tuples.slices.of_tuple[row], row))
    assert ordered.column(1).integers.tolist() == rows
    assert ordered.column(1).column.to_pylist() == rows
    assert [keys[row] for row in rows] == ordered.column(0).column.to_pylist()
    assert ordered.tick.integers.tolist() == [ticks[row] for row in rows]
    assert ordered.slices.of_tuple.tolist() == [tuples.slices.of_tuple[row] for row in rows]
    assert (len(ordered.slices.rows), len(ordered)) == (0, 60)


def test_the_event_time_is_a_column_too_and_slices_may_be_of_positions() -> None:
    table = pa.table({"tick": [70, 50], "position": [3, 14], "x0": ["a", "b"]})
    tuples = Tuples.of(table, 0, EdgeSet.of([EdgeClass(10, 0)]), has_positions=True)
    assert tuples.column(TICK).integers.tolist() == [70, 50]
    assert tuples.column(0).column.to_pylist() == ["a", "b"]
    assert tuples.slices.starts.tolist() == [0, 10]


def test_what_several_ask_for_at_once_is_made_once() -> None:
    rng = np.random.default_rng(7)
    tuples = tuples_of(
        range(50_000), pa.array(rng.integers(0, 4, 50_000)), pa.array(rng.integers(0, 99, 50_000)), words=1
    )
    with ThreadPoolExecutor(8) as pool:
        grids = list(pool.map(lambda _: tuples.grid((0,), TICKS), range(16)))
        chosen = list(pool.map(lambda _: tuples.chosen((0, 1)), range(16)))
    assert len({id(grid) for grid in grids}) == len({id(chosen_grid) for chosen_grid in chosen}) == 1
