"""Sums of a matrix that are folded together: which terms they are, equal columns, and threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from windloom.aggregates.registry import PlannedComponent
from windloom.answers.joins import integer_terms
from windloom.answers.joins.integer_terms import WholeTerms
from windloom.answers.joins.joined_rows import JoinedRows
from windloom.answers.joins.terms import FactorTerms, FoldTypes, Held, PresenceTerm, Term, Terms
from windloom.kernels.families import AddFloat, AddInt
from windloom.kernels.folds.bands import Band
from windloom.kernels.folds.slice_matrix import CellSide
from windloom.model.aggregate import COUNT_STAR, Component
from windloom.model.expression import Expression
from windloom.model.types import DataType

CELLS = 50


def planned(kind: str, argument: str) -> PlannedComponent:
    return PlannedComponent(Component(kind, Expression.of_column("x")), DataType.parse(argument))


COMPONENTS = (
    PlannedComponent(COUNT_STAR, None),
    planned("count", "bigint"),
    planned("sum", "bigint"),
    planned("sum", "double"),
    planned("sum", "bigint"),
    planned("sum", "int"),
)
TERMS = Terms(FoldTypes((COMPONENTS, COMPONENTS), ()), frozenset((0, 1)))


def relation(side: int, columns: list[NDArray[np.int64]]) -> JoinedRows:
    """A group for every cell. The fourth component is of floats."""
    held: list[Held] = [AddInt(column) for column in columns]
    held[3] = AddFloat(np.ones(CELLS), np.zeros(CELLS))

    def of(term: Term) -> Held:
        assert isinstance(term, FactorTerms)
        ((_, component),) = term.of
        return held[component]

    return JoinedRows(frozenset([side]), {}, np.arange(CELLS + 1), np.zeros(CELLS, np.int32), of)


def factors(left: int, right: int) -> FactorTerms:
    return FactorTerms(((0, left), (1, right)))


def columns(seed: int) -> list[NDArray[np.int64]]:
    """A count, the same count again, small sums, nothing, sums that leave no room in 64 bits, and more small ones."""
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 4, CELLS)
    spare = rng.integers(-9, 9, CELLS)
    return [count, count.copy(), rng.integers(-1000, 1000, CELLS), count, np.full(CELLS, 2**40), spare]


def side(rng: np.random.Generator) -> CellSide:
    lo = np.arange(CELLS)
    return CellSide(lo, lo + 1, rng.integers(0, 4, CELLS).astype(np.int32), 0, 4, np.zeros(CELLS, np.int64))


def test_terms_of_integers_that_fit_are_folded_together_and_equal_ones_once() -> None:
    own = columns(1), columns(2)
    relations = relation(0, own[0]), relation(1, own[1])
    wanted = [factors(left, right) for left in (0, 1, 2, 5) for right in (0, 1, 2)]
    others = [factors(3, 0), factors(0, 3), factors(4, 4), PresenceTerm(((0, 0), (1, 0)))]
    for fixed in (0, 1):
        whole = WholeTerms([*wanted, *others], TERMS, relations, fixed, CELLS * CELLS)
        assert all(term in whole for term in wanted)
        assert not any(term in whole for term in others)
        rng = np.random.default_rng(3)
        sides = side(rng), side(rng)
        pairs = tuple(rng.integers(0, CELLS, 90).astype(np.int32) for _ in range(2))
        band, every = Band.of(np.zeros(4, np.int32), np.full(4, 4, np.int32)), (0, 4)
        arguments = (sides, band, np.zeros((1, 1), np.int32), 1)
        made = whole.folded([pairs, pairs], *arguments, None, 1)  # type: ignore[list-item]
        found = made.matrices(every, every)
        entry = sides[0].slices[pairs[0]] * 4 + sides[1].slices[pairs[1]]
        for term in wanted:
            ((_, left), (_, right)) = term.of
            values = own[0][left][pairs[fixed]] * own[1][right][pairs[1 - fixed]]
            assert (found[term].value == 2 * np.bincount(entry, values, 16)).all()
        assert found[factors(0, 2)].value is found[factors(1, 2)].value, "equal columns are multiplied once"
        with ThreadPoolExecutor(2) as pool, patch.object(integer_terms, "PAIRS_PER_THREAD", 10):
            again = whole.folded([pairs, pairs], *arguments, pool, 4)  # type: ignore[list-item]
        divided = again.matrices(every, every)
        assert all((divided[term].value == found[term].value).all() for term in wanted)


def test_what_might_exceed_64_bits_is_left_to_others() -> None:
    own = columns(1), columns(2)
    relations = relation(0, own[0]), relation(1, own[1])
    assert factors(4, 0) in WholeTerms([factors(4, 0)], TERMS, relations, 0, 2**19)
    assert factors(4, 0) not in WholeTerms([factors(4, 0)], TERMS, relations, 0, 2**21)
