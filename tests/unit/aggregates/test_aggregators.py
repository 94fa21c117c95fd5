"""Every aggregator of the registry: one tuple through it, nothing added by nothing, and any order of merging."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from support.catalogs import COLUMNS, STREAM, TYPES, make_query
from support.native import taken_of_plan
from windloom.aggregates.aggregator import ListAggregator, ValueAggregator
from windloom.aggregates.columns import AnyLifted, ComponentColumns, ListColumns, WindowValues, concat, keep, merge
from windloom.aggregates.registry import AGGREGATORS, FUNCTIONS, PlannedComponent, aggregator_for, lower, neutral
from windloom.errors import WindloomError
from windloom.model import Aggregate, Expression, Function, TimeWindow
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom_tools.oracle.aggregates import evaluate

ROWS: list[dict[str, Any]] = [
    {"tick": 1, "k": "b", "f": 2.0, "x": 0.5, "n": 2**40, "i": 3, "d": Decimal("1.25"), "b": True},
    {"tick": 2, "k": None, "f": None, "x": None, "n": None, "i": None, "d": None, "b": None},
    {"tick": 3, "k": "a", "f": 1.0, "x": -7.25, "n": -(2**33) - 5, "i": -2, "d": Decimal("-3.50"), "b": False},
    {"tick": 4, "k": "c", "f": 2.0, "x": 3.0, "n": 77, "i": 3, "d": Decimal("0.01"), "b": True},
]


def asked(function: Function, column: str) -> Aggregate | None:
    """The function of a column; None if it cannot be taken of it."""
    by = Expression.of_column("f") if function.arguments == 2 else None
    parameters = () if function.constant is None else ((2,) if function.constant.letter == "k" else (0.5,))
    aggregate = Aggregate(function.name, Expression.of_column(column), by, parameters=parameters)
    try:
        aggregate.result_type(COLUMNS[column])
    except WindloomError:
        return None
    return aggregate


AGGREGATES = [
    (function.name, column, aggregate)
    for aggregator in AGGREGATORS
    for function in aggregator.functions
    for column in ("x", "n", "i", "d", "b", "k")
    if (aggregate := asked(function, column)) is not None
]
EVERY = pytest.mark.parametrize(("function", "column", "aggregate"), AGGREGATES, ids=lambda value: str(value)[:20])


def cells(aggregate: Aggregate, rows: Sequence[dict[str, Any]], intake: str = "auto") -> list[AnyLifted]:
    """The aggregate's components over the one slice that holds these tuples."""
    query = make_query("q", TimeWindow(100, 100), [aggregate])
    plan = make_plan({"s": STREAM}, [query], TYPES, PlanOptions(intake=intake), PlanningFacts())
    (partial_set,) = plan.sets
    held = taken_of_plan(plan, rows).cells[partial_set.number].lifted
    found = {planned.component: part for planned, part in zip(partial_set.components, held, strict=True)}
    return [found[component] for component in aggregate.components]


def together(parts: Sequence[AnyLifted], order: Sequence[int] | None = None) -> AnyLifted:
    """All cells of all parts as one, merged in the order of the parts that is asked for."""
    chosen = [parts[i] for i in (order or range(len(parts)))]
    whole = chosen[0]
    for part in chosen[1:]:
        whole = concat(whole, part)
    count = len(whole) if isinstance(whole, ListColumns) else len(whole.limbs[0][0])
    return merge(whole, np.arange(count), np.array([0, count]))


def read(aggregate: Aggregate, found: Sequence[AnyLifted]) -> Any:
    """What one merged cell answers; of lists, what they hold."""
    if isinstance(found[0], ListColumns):
        bounds, codes, counts = found[0].cells
        values = [str(value) for value in found[0].dictionary.to_pylist()]
        held = [(values[code], int(count)) for code, count in zip(codes, counts, strict=True)]
        return [held[first:last] for first, last in pairwise(bounds)]
    combined = []
    for lifted in found:
        assert isinstance(lifted, ComponentColumns)
        combined.append(
            WindowValues(lifted.limbs, None if lifted.valid is None else lifted.valid.value > 0, lifted.dictionary)
        )
    assert aggregate.argument is not None
    argument = COLUMNS[str(aggregate.argument.column)]

    def refuse(row: int, value: str) -> None:
        raise AssertionError(value)

    return lower(aggregate, argument, combined, refuse)[0].as_py()


def test_every_function_is_declared_by_one_aggregator() -> None:
    names = [function.name for aggregator in AGGREGATORS for function in aggregator.functions]
    assert len(names) == len(set(names))
    assert set(FUNCTIONS.values()) == set(names) - {"count_distinct"}
    kinds = {kind for aggregator in AGGREGATORS for function in aggregator.functions for kind in function.kinds}
    assert kinds <= {kind for aggregator in AGGREGATORS for kind in aggregator.kinds}


@EVERY
def test_one_tuple_is_answered_by_the_definition(function: str, column: str, aggregate: Aggregate) -> None:
    aggregator = aggregator_for(aggregate, COLUMNS[column])
    if not isinstance(aggregator, ValueAggregator):
        pytest.skip("lists are asked by kernels: see tests/property/test_holistic.py")
    for intake in ("woven", "native") if aggregator.is_native else ("woven",):
        for row in ROWS:
            found, expected = read(aggregate, cells(aggregate, [row], intake)), evaluate(aggregate, [row])
            same = isinstance(found, float) and math.isclose(found, float(expected or 0), rel_tol=1e-12, abs_tol=1e-12)
            assert found == expected or same, (intake, row, found, expected)


@EVERY
def test_neutral_cells_change_nothing(function: str, column: str, aggregate: Aggregate) -> None:
    held = cells(aggregate, ROWS)
    planned = [PlannedComponent(component, COLUMNS[column]) for component in aggregate.components]
    pairs = list(zip(planned, held, strict=True))
    plain = read(aggregate, [together([part]) for _, part in pairs])
    assert read(aggregate, [together([part, neutral(component, 2)]) for component, part in pairs]) == plain
    assert read(aggregate, [together([neutral(component, 2), part]) for component, part in pairs]) == plain


@EVERY
def test_cells_are_merged_in_any_order(function: str, column: str, aggregate: Aggregate) -> None:
    parts = [cells(aggregate, [row]) for row in ROWS]
    by_component = list(zip(*parts, strict=True))
    plain = read(aggregate, [together(pieces) for pieces in by_component])
    for order in ((3, 2, 1, 0), (1, 3, 0, 2)):
        found = read(aggregate, [together(pieces, order) for pieces in by_component])
        near = isinstance(found, float) and isinstance(plain, float) and math.isclose(found, plain, rel_tol=1e-12)
        assert found == plain or near


@EVERY
def test_cells_that_are_kept_stay_what_they_are(function: str, column: str, aggregate: Aggregate) -> None:
    for row in ROWS:
        held = cells(aggregate, [row])
        nothing = [neutral(PlannedComponent(component, COLUMNS[column]), 1) for component in aggregate.components]
        kept = []
        for part, none in zip(held, nothing, strict=True):
            both = concat(part, none)
            count = len(both) if isinstance(both, ListColumns) else len(both.limbs[0][0])
            kept.append(keep(both, np.arange(count) < count - 1))
        assert read(aggregate, kept) == read(aggregate, held)


def test_a_list_aggregator_says_how_its_lists_are_merged() -> None:
    lists = [aggregator for aggregator in AGGREGATORS if isinstance(aggregator, ListAggregator)]
    assert {aggregator.rule.kind for aggregator in lists} == {kind for aggregator in lists for kind in aggregator.kinds}
