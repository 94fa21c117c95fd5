"""Folds at the edges: numbers that do not fit, keys that are not equal to themselves, sides without rows."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from support.folds import BELOW, Asking, JoinCase
from windloom.answers.joins.fold import fold_sides
from windloom.answers.joins.terms import FoldedRows
from windloom.errors import WindloomError
from windloom.kernels.folds import matching, pairwise
from windloom.kernels.folds.registry import ROW_FOLDS, find_fold
from windloom.model import Component, DataType, Expression
from windloom.model.join import KeyPair, Link, Product, SideComponent, SumOfProducts
from windloom.model.stream import JoinKind

NOTHING = dict.fromkeys(("g", "h", "k", "r", "n", "i", "x", "y", "d", "w", "s", "b", "f"))


def tuples(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [NOTHING | {"k": 1, "tick": 0} | row for row in rows]


def case_of(
    left: list[dict[str, Any]],
    right: list[dict[str, Any]],
    groups: tuple[tuple[int, int], ...] = (),
    kind: JoinKind = JoinKind.INNER,
    key: int = 2,
    null_safe: bool = False,
) -> tuple[JoinCase, Asking]:
    link = Link(0, 1, kind, (KeyPair(key, key, null_safe),))
    case = JoinCase(2, (2, 2), (link,), groups, [left, right])
    return case, Asking(case, np.random.default_rng(0))


def folded(case: JoinCase, technique: str = "pairwise") -> FoldedRows:
    return fold_sides(case.join, case.types, case.sides, case.ends, range(len(case.links)), technique)


def counted(case: JoinCase, asking: Asking) -> dict[tuple[Any, ...], Any]:
    asking.add("count", [SumOfProducts((Product(1, asking.weights({})),))], 0, None)
    return {key: values[0] for key, values in case.lowered(folded(case)).items()}


def carried_sum(case: JoinCase, asking: Asking, column: str) -> Any:
    part = case.component(0, Component("sum", Expression.of_column(column)))
    asking.add("sum", [SideComponent(0, part, asking.weights({}))], 0, f"s0.{column}")
    (value,) = next(iter(case.lowered(folded(case)).values()))
    return value


def test_a_sum_beyond_64_bits_is_refused_by_its_aggregator_and_one_that_comes_back_is_not() -> None:
    case, asking = case_of(tuples({"n": 2**62}), tuples({}, {}))
    assert carried_sum(case, asking, "n") == "refused"
    case, asking = case_of(tuples({"n": 2**62}, {"n": -(2**62) + 5}, {"g": "a", "n": 2**62}), tuples({}))
    assert carried_sum(case, asking, "n") == 2**62 + 5


def test_a_decimal_beyond_38_digits_is_refused() -> None:
    wide = Decimal("9" * 26 + ".9999")
    case, asking = case_of(tuples({"w": wide}), tuples(*[{}] * 9))
    assert carried_sum(case, asking, "w") == Decimal("8" + "9" * 26 + ".9991")
    # As if the other side had 2^40 tuples.
    case, asking = case_of(tuples({"w": wide}), tuples({}))
    side = case.component(0, Component("sum", Expression.of_column("w")))
    asking.add("sum", [SideComponent(0, side, asking.weights({}))], 0, "s0.w")
    sides = case.sides
    sides[1].combined[0].limbs[0].value[:] = 2**40
    found = fold_sides(case.join, case.types, sides, case.ends, [0], "pairwise")
    assert [(refusal.component, refusal.row) for refusal in found.refused] == [(0, 0)]
    assert "38 digits" in found.refused[0].text


def test_a_count_beyond_64_bits_is_refused() -> None:
    case, asking = case_of(tuples({}), tuples({}))
    asking.add("count", [SumOfProducts((Product(1, asking.weights({})),))], 0, None)
    sides = case.sides
    for side in sides:
        side.combined[0].limbs[0].value[:] = 2**40
    (refused,) = fold_sides(case.join, case.types, sides, case.ends, [0], "pairwise").refused
    assert refused.text == str(2**80)


def test_the_highest_value_of_a_narrow_type_is_refused_if_it_does_not_fit() -> None:
    case, asking = case_of(tuples({"i": 2**31 - 1}), tuples({"i": 1}))
    asking.corner("i", "+", "i")
    case.asked[0] = type(case.asked[0])(
        case.asked[0].aggregate, case.asked[0].folded, DataType.parse("int"), case.asked[0].sides
    )
    assert {refusal.text for refusal in folded(case).refused} <= {
        "the highest value of a + b does not fit int",
        "the lowest value of a + b does not fit int",
    }
    assert folded(case).refused


def test_nothing_times_infinity_is_nothing() -> None:
    case, asking = case_of(tuples({"x": math.inf}), tuples({"x": None}, {"g": "a", "x": 2.0}))
    asking.pair = lambda: (0, 1)  # type: ignore[method-assign]
    asking.two_sided_sum("x", "*", "x")
    assert list(case.lowered(folded(case)).values()) == [[math.inf]] * 2


@pytest.mark.parametrize("technique", ROW_FOLDS)
def test_nan_equals_nan_and_minus_zero_equals_zero(technique: str) -> None:
    left = tuples({"r": math.nan}, {"r": -0.0}, {"r": None})
    case, asking = case_of(left, tuples({"r": math.nan}, {"r": 0.0}, {"r": None}), ((0, 3),), key=3)
    assert counted(case, asking) == {(end, key): 1 for end in range(2) for key in ("NaN", 0.0)}
    case, asking = case_of(left, tuples({"r": None}), ((0, 3),), key=3, null_safe=True)
    assert counted(case, asking) == {(end, None): 1 for end in range(2)}


def test_an_unmatched_row_is_in_one_group_with_matched_rows_whose_column_is_null() -> None:
    left, right = tuples({"k": 1}, {"k": 2}, {"k": None}), tuples({"k": 1, "g": None}, {"k": 1, "g": "a"})
    case, asking = case_of(left, right, ((1, 0),), JoinKind.LEFT)
    assert counted(case, asking) == {(0, None): 3, (1, None): 3, (0, "a"): 1, (1, "a"): 1}


@pytest.mark.parametrize("kind", JoinKind)
@pytest.mark.parametrize("technique", ROW_FOLDS)
def test_a_side_without_rows_is_folded(kind: JoinKind, technique: str) -> None:
    for left, right in ((tuples({"n": 5}), []), ([], tuples({"n": 5})), ([], [])):
        case, asking = case_of(left, right, ((0, 0),), kind)
        expected = {(end, None): 1 for end in range(2)} if left and kind in (JoinKind.LEFT, JoinKind.ANTI) else {}
        assert counted(case, asking) == expected


def test_blocks_may_end_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)

    def some() -> dict[str, Any]:
        return {"k": int(rng.integers(3)), "g": str(rng.integers(4)), "tick": int(rng.integers(2))}

    rows = [tuples(*(some() for _ in range(40))) for _ in range(2)]
    for groups in ((), ((0, 0),), ((1, 0),), ((0, 0), (1, 0))):
        for kind in JoinKind:
            own = tuple(place for place in groups if place[0] == 0 or kind in (JoinKind.INNER, JoinKind.LEFT))
            whole = counted(*case_of(*rows, own, kind))
            with monkeypatch.context() as patch:
                patch.setattr(matching, "BLOCK_PAIRS", 3)
                patch.setattr(pairwise, "BLOCK_STRETCHES", 2)
                assert counted(*case_of(*rows, own, kind)) == whole


def test_a_residual_condition_that_is_not_known_is_refused() -> None:
    case, asking = case_of(tuples({"h": 1}), tuples({"h": 2}))
    unknown = Expression("soundex(__p1) < __c1", ("__c1", "__p1"))
    for residual, is_refused in ((BELOW, False), (unknown, True)):
        case.links = (Link(0, 1, JoinKind.INNER, (KeyPair(2, 2),), residual),)
        if is_refused:
            with pytest.raises(WindloomError, match="soundex"):
                folded(case)
        else:
            assert counted(case, asking) == {(0,): 1, (1,): 1}


def test_an_unknown_fold_is_refused_with_near_names() -> None:
    with pytest.raises(WindloomError, match="did you mean 'pairwise'"):
        find_fold("pairwis")
