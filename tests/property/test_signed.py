"""Sets that are rolled up from signatures have the cells that they have if they are made from tuples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import ROWS, STREAM, TYPES, WINDOWS, aggregates, make_query
from support.compare import assert_equal_answers, rows_of
from support.drawing import examples
from support.functions import FUNCTIONS, asked_of
from support.native import tuples_table
from windloom.aggregates.columns import ComponentColumns
from windloom.checkpoint.state_codec import encode
from windloom.kernels.families import AddFloat, Moments
from windloom.model import Aggregate, Expression, Query, TimeWindow
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import WovenFeed, WovenScan
from windloom.rounds.step import step
from windloom.state.cells import Cells
from windloom.state.state import State
from windloom.weave.roll_up import SignedCells
from windloom.weave.round_input import RoundInput, ScanResult, take_tuples
from windloom.weave.weave import read_tuples, weave

Row = dict[str, Any]
GROUPINGS = st.lists(st.sampled_from(["k", "f", "i", "b", "d"]), max_size=2, unique=True).map(tuple)
LISTS = ("count_distinct", "top", "quantile", "approx_count_distinct")


@dataclass(frozen=True)
class Case:
    queries: list[Query]
    rows: list[Row]
    crowd: int


def plan_of(queries: list[Query]) -> Plan:
    return make_plan({"s": STREAM}, queries, TYPES, PlanOptions("shared", intake="woven"), PlanningFacts())


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """From 1 to 200 predicates, each of a set of its own; and queries with FILTERs, lists and several groupings."""
    bits = draw(st.sampled_from([1, 2, 5, 30, 62, 63, 64, 130, 200]))
    conditions = st.sampled_from([None, "b", *(f"p{i}" for i in {0, bits // 2, bits - 1})])
    listed = st.sampled_from([aggregate for name in LISTS for aggregate in asked_of(FUNCTIONS[name])])
    queries = []
    for number in range(draw(st.integers(1, 5))):
        chosen = draw(st.lists(st.one_of(aggregates(), aggregates(), listed), min_size=1, max_size=3))
        filters = [draw(conditions) if FUNCTIONS[each.function].is_approximate is False else None for each in chosen]
        chosen = [
            replace(aggregate, where=None if where is None else Expression.of_column(where))
            for aggregate, where in zip(chosen, filters, strict=True)
        ]
        queries.append(make_query(f"q{number}", draw(WINDOWS), chosen, draw(GROUPINGS), draw(conditions)))
    groups, asked = draw(GROUPINGS), draw(st.lists(aggregates(), min_size=1, max_size=2))
    queries += [make_query(f"crowd{i}", draw(WINDOWS), asked, groups, f"p{i}") for i in range(bits)]
    rows = []
    for row in draw(ROWS):
        seed = draw(st.integers(0, 2**16))
        rows.append(row | {f"p{i}": (True, False, None)[(seed * (2 * i + 3) >> 4) % 3] for i in range(bits)})
    return Case(queries, rows, bits)


@settings(max_examples=examples(60), deadline=None)
@given(case=cases())
def test_signatures_and_tuples_give_the_same_cells(case: Case) -> None:
    plan = plan_of(case.queries)
    (scan,) = plan.scans
    assert isinstance(scan, WovenScan)
    table = tuples_table(plan, scan, case.rows)
    by_signature, by_bits = (
        weave(plan, scan, read_tuples(plan, scan, table), by_signature=forced) for forced in (True, False)
    )
    assert by_signature.keys() == by_bits.keys()
    for number, cells in by_signature.items():
        assert_same(cells, by_bits[number])
    blocks = list(step(State(), RoundInput(ScanResult(by_signature), {"s": TICK_MAX}), plan)[1].blocks())
    for query in case.queries[: -case.crowd] + case.queries[-2:]:
        if not any(FUNCTIONS[aggregate.function].is_approximate for aggregate in query.aggregates):
            held = [row for row in case.rows if query.where is None or row[str(query.where.column)] is True]
            assert_equal_answers(query, held, rows_of(blocks, query))


def assert_same(left: Cells, right: Cells) -> None:
    """Moments are compared in answers: those of infinity have no one form."""
    assert (left.starts == right.starts).all()
    assert (left.group_bounds == right.group_bounds).all()
    assert [repr(key.to_pylist()) for key in left.keys] == [repr(key.to_pylist()) for key in right.keys]
    for ours, theirs in zip(left.lifted, right.lifted, strict=True):
        if not isinstance(ours, ComponentColumns):
            assert encode(State({0: replace(left, lifted=(left.lifted[0], ours))})) == encode(
                State({0: replace(right, lifted=(right.lifted[0], theirs))})
            )
            continue
        assert isinstance(theirs, ComponentColumns)
        valid = np.ones(len(left), np.bool_) if theirs.valid is None else theirs.valid.value > 0
        assert (valid == (np.ones(len(left), np.bool_) if ours.valid is None else ours.valid.value > 0)).all()
        for mine, other in zip(ours.limbs, theirs.limbs, strict=True):
            if isinstance(mine, AddFloat):
                assert np.allclose(mine.high + mine.low, other.high + other.low, 1e-12, 1e-9, equal_nan=True)
            elif isinstance(mine, Moments):
                assert (mine.count == other.count).all()
            elif ours.dictionary is None:
                assert (mine[0] == other[0])[valid].all()
            else:
                assert values_of(ours, valid) == values_of(theirs, valid)


def values_of(lifted: ComponentColumns, valid: np.ndarray) -> str:
    keys = lifted.limbs[0].value[valid]
    return repr([lifted.dictionary[int(~key if key < 0 else key)].as_py() for key in keys])


def alike(bits: int) -> tuple[Plan, WovenScan]:
    queries = [make_query(f"q{i}", TimeWindow(10, 10), [Aggregate("count")], (), f"p{i}") for i in range(bits)]
    plan = plan_of(queries)
    (scan,) = plan.scans
    assert isinstance(scan, WovenScan)
    return plan, scan


@pytest.mark.parametrize(("distinct", "expected"), [(3, True), (5_000, False)])
def test_few_signatures_are_rolled_up_and_many_are_not(
    distinct: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, scan = alike(20)
    rolled: list[int] = []
    cells = SignedCells.cells

    def noted(self: SignedCells, fed: WovenFeed, partial_set: PartialSet) -> Cells:
        rolled.append(fed.number)
        return cells(self, fed, partial_set)

    monkeypatch.setattr(SignedCells, "cells", noted)
    rng = np.random.default_rng(4)
    signatures = rng.integers(0, 2**20, distinct)
    table = tuples_table(plan, scan, [])
    columns = [rng.integers(0, 100, 20_000), signatures[rng.integers(0, distinct, 20_000)]]
    weave(plan, scan, read_tuples(plan, scan, type(table).from_arrays(columns, schema=table.schema)))
    assert bool(rolled) is expected


def test_a_scan_counts_conditions_alike_from_signatures_and_from_tuples() -> None:
    plan, scan = alike(70)
    rows = [
        {"tick": i % 50, **dict.fromkeys(STREAM.columns), **{f"p{bit}": i % (bit % 7 + 2) == 0 for bit in range(70)}}
        | {"tick": i % 50}
        for i in range(900)
    ]
    table = tuples_table(plan, scan, rows)
    scanned = take_tuples(plan, scan, table).scanned[scan.number]
    expected = {
        predicate.sql: sum(row[f"p{bit}"] for row in rows)
        for bit in range(70)
        for predicate in [scan.signature.predicates[bit]]
        if predicate.sql == f"p{bit}"
    }
    assert expected.items() <= dict(scanned.conditions).items()
