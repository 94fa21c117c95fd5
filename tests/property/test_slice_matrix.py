"""Joins that share a slice matrix: any windows and aggregates, in portions of any size, answer what the oracle does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from support.compare_joins import assert_equal_join
from support.drawing import examples
from support.join_catalogs import Drawing, rows
from support.join_looms import answered, planned, registered, with_folds
from support.join_texts import Asked, Hung
from windloom.answers.joins import matrix_joins
from windloom.model import JoinKind

Row = dict[str, Any]


@st.composite
def sharing_joins(draw: st.DrawFn) -> list[Asked]:
    """Joins of two streams on the same keys with the same groups; ranges, slides and aggregates differ."""

    def choose(options: Sequence[Any]) -> Any:
        return draw(st.sampled_from(options))

    drawing = Drawing(choose, landmarks=False)
    first = replace(drawing.asked(2), having=None)
    hung = replace(first.hung[0], kind=JoinKind.INNER)
    found = []
    for _ in range(choose([1, 2, 3])):
        slide = choose([1, 2, 3, 4, 8])
        lengths = [choose([1, slide, 2 * slide, slide + 1, 12, 20]) for _ in range(2)]
        child = Hung(
            hung.kind, hung.parent, replace(hung.child, length=lengths[1]), hung.keys, hung.residual, hung.condition
        )
        groups = tuple(group for group in first.groups if group[0] in ("a", "b"))
        found.append(
            replace(
                first,
                first=replace(first.first, length=lengths[0]),
                slide=slide,
                offset=choose([0, 0, 1, -3]),
                hung=(child,),
                groups=groups,
                aggregates=tuple(_aggregates(drawing)),
            )
        )
    return found


def _aggregates(drawing: Drawing) -> list[Any]:
    """No lists, and no extrema of values that both sides make."""
    found = [aggregate for _ in range(2) for aggregate in drawing._aggregates(["a", "b"])]
    kept = [aggregate for aggregate in found if aggregate.function not in ("count_distinct", "quantile", "top")]
    kept = [
        aggregate
        for aggregate in kept
        if not (aggregate.function in ("min", "max") and "a." in str(aggregate) and "b." in str(aggregate))
    ]
    return list(dict.fromkeys(kept)) or [drawing._count(["a", "b"])]


@settings(max_examples=examples(150), deadline=None)
@given(
    asked=sharing_joins(),
    rows=rows(),
    entries=st.sampled_from([1, 40, 1 << 18]),
    banded=st.sampled_from([1, 60, 1 << 20]),
    held=st.sampled_from([1, 50, 1 << 22]),
)
def test_joins_of_any_windows_and_aggregates_share_a_matrix(
    asked: list[Asked], rows: dict[str, list[Row]], entries: int, banded: int, held: int
) -> None:
    registry = registered({f"j{i}": join.cql() for i, join in enumerate(asked)})
    plan = with_folds(planned(registry), "slice_matrix", 0)
    assert [join.fold for join in plan.joins] == ["slice_matrix"] * len(asked)
    limits = {"MATRIX_ENTRIES": entries, "BAND_ENTRIES": banded, "HELD_VALUES": held}
    with patch.multiple(matrix_joins, **limits):
        found = answered(plan, rows, registry.queries)
    for name, query in registry.queries.items():
        assert_equal_join(query, rows, found[name])


@settings(max_examples=examples(30), deadline=None)
@given(asked=sharing_joins(), rows=rows(), limit=st.sampled_from([("MOST_ENTRIES", 3), ("SPARSE_ENTRIES", 0)]))
def test_a_result_of_too_many_groups_is_folded_window_by_window(
    asked: list[Asked], rows: dict[str, list[Row]], limit: tuple[str, int]
) -> None:
    registry = registered({f"j{i}": join.cql() for i, join in enumerate(asked)})
    plan = with_folds(planned(registry), "slice_matrix", 0)
    with patch.object(matrix_joins, *limit):
        found = answered(plan, rows, registry.queries)
    for name, query in registry.queries.items():
        assert_equal_join(query, rows, found[name])
