"""Measures the step around the techniques: partials into cells, cells into a tree's slices, answers into tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windloom.answers.answers import Answers
from windloom.kernels.techniques.registry import TECHNIQUES
from windloom.model import (
    Aggregate,
    DataType,
    Expression,
    ExpressionKey,
    Grouping,
    Output,
    Query,
    Stream,
    TimeWindow,
    WindowedStream,
)
from windloom.model.aggregate import Property
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost.seconds import answer_terms, columns_of
from windloom.optimizer.cost.work import Demand, Work, evenly_spaced
from windloom.optimizer.workloads import divisor_windows
from windloom.plan.plan import Plan
from windloom.plan.scans import NativeScan
from windloom.rounds.step import step
from windloom.state.cells import coarsen, read_partials
from windloom.state.frontiers import all_closed
from windloom.state.state import State
from windloom.statistics.estimates import Estimates, StreamEstimate
from windloom.statistics.set_statistics import Mean, SetEstimate, SetIdentity
from windloom.weave.round_input import RoundInput, ScanResult, take_partials
from windloom_tools.calibration.fit import Fit, fit
from windloom_tools.calibration.kernels import Tell, thread_seconds

_COLUMNS = {"ts": "bigint", "k": "string", "n": "int", "x": "double"}


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Partials of an invented stream: every group holds a tuple in a random share of the slices.

    Slices last a second. `aggregates` are functions and columns, as in `sum n`.
    """

    groups: int
    slices: int
    windows: tuple[tuple[int, int], ...]  # range and slide in seconds
    aggregates: tuple[str, ...]
    filled: float = 1.0

    @property
    def stream(self) -> Stream:
        columns = {name: DataType.parse(kind) for name, kind in _COLUMNS.items()}
        return Stream("s", columns, "ts", time_unit="us", events_per_second=self.tuples / self.slices)

    @property
    def tuples(self) -> float:
        # The rate at which this share of the slices would hold a tuple if tuples came at random.
        mean = 12.0 if self.filled == 1.0 else -float(np.log1p(-self.filled))
        return self.groups * self.slices * mean

    @property
    def estimates(self) -> Estimates:
        rate, groups = Mean(self.tuples / self.slices, 1), Mean(float(self.groups), 1)
        own = SetEstimate(Mean(1.0, 1), groups, Mean(self.filled * self.groups, 1))
        stream = StreamEstimate(rate, Mean(float(self.slices), 1))
        return Estimates({"s": stream}, {SetIdentity.of_query(self.queries()[0]): own})

    def queries(self) -> list[Query]:
        pairs = [aggregate.split() for aggregate in self.aggregates]
        made = tuple(Aggregate(name, Expression.of_column(column)) for name, column in pairs)
        outputs = tuple(Output(f"a{i}", i) for i in range(len(made)))
        grouping = (Grouping("k", Expression.of_column("k")),) if self.groups > 1 else ()
        return [
            Query(f"q{i}", WindowedStream("s", window), None, grouping, made, outputs, None, "")
            for i, window in enumerate(TimeWindow(r * TICKS_PER_SECOND, s * TICKS_PER_SECOND) for r, s in self.windows)
        ]

    @property
    def types(self) -> dict[ExpressionKey, DataType]:
        return {ExpressionKey("s", name): DataType.parse(kind) for name, kind in _COLUMNS.items()}

    def partials(self, plan: Plan) -> pa.Table:
        """A table as Spark delivers it: groups in any order, strings as keys."""
        rng = np.random.default_rng(17)
        there = rng.random(self.slices * self.groups) < self.filled
        places = np.flatnonzero(there)
        starts = plan.sets[0].edges.last_edge((places // self.groups) * TICKS_PER_SECOND)
        keys = pa.array([f"key {i:06d}" for i in range(self.groups)]).take(pa.array(places % self.groups))
        columns: dict[str, object] = {"slice": starts}
        if self.groups > 1:
            columns["g0"] = keys
        fields = [field for planned_component in plan.sets[0].components for field in planned_component.fields]
        for i, planned_component in enumerate(
            f for planned in plan.sets[0].components for f in [planned] * len(planned.fields)
        ):
            values = rng.integers(1, 1000, len(places))
            is_float = planned_component.argument_type is not None and planned_component.argument_type.name == "double"
            columns[f"c{i}"] = values / 8 if is_float and fields[i] != "count" else values
        return pa.table(columns)


def _taken(plan: Plan, table: pa.Table) -> ScanResult:
    return take_partials(plan, _scan(plan), table)


def _scan(plan: Plan) -> NativeScan:
    (scan,) = plan.scans
    assert isinstance(scan, NativeScan)
    return scan


def read_all(plan: Plan, table: pa.Table) -> int:
    """Runs the step and reads all its answers; returns the number of rows."""
    _, answers, _ = step(State(), RoundInput(_taken(plan, table), all_closed(plan.streams)), plan)
    return sum(block.table.num_rows for block in answers.blocks())


def _windows(queries: int, slide: int, length: int) -> tuple[tuple[int, int], ...]:
    return tuple((slide * (length + i), slide) for i in range(queries))


_ONE, _TWO, _FIVE = ("sum n",), ("sum x", "max n"), ("sum n", "sum x", "max n", "min x", "count n")

READING = (
    Synthetic(1, 50_000, _windows(1, 1, 1), _ONE),
    Synthetic(1, 50_000, _windows(1, 1, 1), _FIVE),
    Synthetic(100, 1_000, _windows(1, 1, 1), _ONE),
    Synthetic(100, 1_000, _windows(1, 1, 1), _FIVE),
    Synthetic(5_000, 60, _windows(1, 1, 1), _ONE, 0.5),
    Synthetic(5_000, 60, _windows(1, 1, 1), _FIVE, 0.5),
)
ANSWERING = (
    Synthetic(1, 60_000, _windows(1, 1, 60), _ONE),
    Synthetic(1, 60_000, _windows(30, 2, 60), _ONE),
    Synthetic(100, 1_500, _windows(10, 1, 30), _ONE),
    Synthetic(100, 1_500, _windows(20, 5, 10), _FIVE),
    Synthetic(1_000, 100, _windows(8, 2, 8), _TWO),
    Synthetic(1, 40_000, _windows(20, 1, 30), _FIVE),
    Synthetic(10, 200, _windows(1, 10, 3), _ONE),
    Synthetic(1, 300, _windows(100, 10, 3), _ONE),
    Synthetic(1, 2_000, _windows(200, 10, 3), _FIVE),
    Synthetic(1_000, 400, _windows(20, 2, 8), _ONE, 0.1),
    Synthetic(500, 800, _windows(10, 5, 6), _TWO, 0.3),
    Synthetic(20, 8_000, _windows(6, 1, 30), _ONE, 0.5),
    Synthetic(2_000, 60, _windows(10, 30, 2), _ONE),
    Synthetic(300, 1_000, _windows(10, 10, 5), _ONE, 0.5),
    Synthetic(1_500, 200, _windows(15, 1, 4), _ONE, 0.2),
    Synthetic(300, 1_000, (*_windows(9, 10, 5), (4, 1)), _ONE, 0.5),
    Synthetic(40, 6_000, (*_windows(5, 20, 5), *_windows(5, 5, 5), (8, 1)), _TWO, 0.3),
    Synthetic(60, 6_000, (*_windows(5, 7, 9), *_windows(5, 11, 6), *_windows(5, 4, 20)), _ONE),
    Synthetic(100, 2_000, tuple(divisor_windows(15, 60, 12, seed=21)), _ONE),
    Synthetic(1, 50_000, tuple(divisor_windows(40, 72, 30, seed=22)), _ONE),
    Synthetic(1_200, 200, tuple(divisor_windows(20, 60, 8, seed=23)), _ONE, 0.25),
    Synthetic(300, 1_000, tuple(divisor_windows(30, 90, 15, seed=24)), _TWO, 0.4),
)


def measure_reading(plan_of: Callable[[Synthetic], Plan], quick: bool, tell: Tell) -> dict[str, Fit]:
    """Measures `read` and `coarsen`: partials into cells, cells into slices of ten seconds."""
    cases = []
    for synthetic in READING:
        plan = plan_of(synthetic)
        cases.append((synthetic, plan, synthetic.partials(plan)))
    coarse = plan_of(Synthetic(1, 1, _windows(1, 10, 1), _ONE)).sets[0].edges
    terms: dict[str, list[dict[str, float]]] = {"read": [], "coarsen": []}
    for synthetic, plan, table in cases:
        columns = table.num_rows * columns_of(plan.sets[0].components)
        keyed = table.num_rows if synthetic.groups > 1 else 0
        terms["read"].append({"read": table.num_rows, "read_key": keyed, "read_column": columns})
        terms["coarsen"].append({"coarsen": table.num_rows, "coarsen_column": columns})
    least = {name: [np.inf] * len(cases) for name in terms}
    for number in range((3 if quick else 10) + 1):
        tell("partials into cells")
        for i, (_, plan, table) in enumerate(cases):
            cells = read_partials(_scan(plan), table)
            read = thread_seconds(partial(read_partials, _scan(plan), table))
            merged = thread_seconds(partial(coarsen, cells, coarse))
            if number:  # the first pass compiles
                least["read"][i] = min(least["read"][i], read)
                least["coarsen"][i] = min(least["coarsen"][i], merged)
    return {name: fit(terms[name], least[name]) for name in terms}


def measure_answering(plan_of: Callable[[Synthetic], Plan], quick: bool, tell: Tell) -> Fit:
    """Measures reading all answers if the techniques take no time: per row, tree and query."""
    with _idle_technique() as idle:
        cases = []
        for synthetic in ANSWERING:
            plan = _with_technique(plan_of(synthetic), idle)
            _, answers, _ = step(
                State(), RoundInput(_taken(plan, synthetic.partials(plan)), all_closed(plan.streams)), plan
            )
            _exhaust(answers)  # compiles
            cases.append((synthetic, answers))
        least = [np.inf] * len(cases)
        for _ in range(3 if quick else 10):
            tell("cells into answers")
            for i, (_, answers) in enumerate(cases):
                least[i] = min(least[i], thread_seconds(partial(_exhaust, answers)))
    return fit([_answer_terms(synthetic, answers.plan) for synthetic, answers in cases], least)


def _answer_terms(synthetic: Synthetic, plan: Plan) -> dict[str, float]:
    found = plan.sets[0]
    windows = [planned.query.window for planned in found.queries]
    edges = found.trees[0].edges
    work = Work.of(
        Demand.of([windows], found.statistics),
        np.array([edges.edges_per_second]),
        found.statistics,
        evenly_spaced([edges]),
    )
    terms = answer_terms(work, float(len(synthetic.aggregates)), found.statistics)
    return {name: float(amount[0]) * synthetic.slices for name, amount in terms.items()} | {"tree": 1.0}


class _Idle:
    """A technique that answers zero, so that a measurement includes everything except a technique."""

    name = "idle"
    needs = (Property.NONE,)

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any) -> None:
        for column in out:
            column[:] = 0


@contextmanager
def _idle_technique() -> Iterator[str]:
    TECHNIQUES[_Idle.name] = _Idle()
    try:
        yield _Idle.name
    finally:
        del TECHNIQUES[_Idle.name]


def _with_technique(plan: Plan, name: str) -> Plan:
    partial_set = plan.sets[0]
    trees = tuple(replace(tree, techniques=(name,) * len(tree.techniques)) for tree in partial_set.trees)
    return replace(plan, sets=(replace(partial_set, trees=trees),))


def _exhaust(answers: Answers) -> None:
    for _ in answers.blocks():
        pass
