"""Weaving: the cells of all sets from one pass over tuples answer what the definition and native partials answer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.approximate import check_promise
from support.catalogs import ROWS, STREAM, STREAMS, TYPES, WINDOWS, aggregates, make_query
from support.compare import assert_equal_answers, rows_of
from support.drawing import examples
from support.functions import FUNCTIONS, asked_of
from support.micro_batches import CrashError, MicroBatches, answers_in, crash_after
from support.native import taken_of_plan, tuples_table
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.state_codec import encode
from windloom.kernels.tuples.signatures import SIGNATURE_BITS
from windloom.model import Aggregate, Expression, Query, RowsWindow
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.plan.scans import NativeScan, WovenScan
from windloom.rounds.lateness import Lateness, before_round
from windloom.rounds.step import step
from windloom.state.state import State
from windloom.weave import weave as weaving
from windloom.weave.round_input import RoundInput, ScanResult, take_together, take_tuples
from windloom.weave.weave import read_tuples, weave
from windloom_tools.oracle.answers import windows_of

Row = dict[str, Any]
GROUPINGS = st.lists(st.sampled_from(["k", "f", "i", "b", "d", "x"]), max_size=3, unique=True).map(tuple)


#: Tuples from which on they are sorted before cells are made of them.
MANY = st.sampled_from([0, weaving.MANY_TUPLES])


@contextmanager
def sorting(many: int) -> Iterator[None]:
    with patch.multiple(weaving, MANY_TUPLES=many, MANY_GROUPS=0):
        yield


def plan_of(queries: list[Query], intake: str = "woven") -> Plan:
    return make_plan({"s": STREAM}, queries, TYPES, PlanOptions("shared", intake=intake), PlanningFacts())


def answered(plan: Plan, taken: ScanResult) -> list[Any]:
    return list(step(State(), RoundInput(taken, {"s": TICK_MAX}), plan)[1].blocks())


def passing(query: Query, rows: list[Row]) -> list[Row]:
    return rows if query.where is None else [row for row in rows if row[str(query.where.column)] is True]


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data(), rows=ROWS, many=MANY)
def test_every_function_that_an_aggregator_declares_is_woven(
    name: str, data: st.DataObject, rows: list[Row], many: int
) -> None:
    """Rows come in any order of time, so that slices are met again and again."""
    chosen = data.draw(st.lists(st.sampled_from(asked_of(FUNCTIONS[name])), min_size=1, max_size=3, unique=True))
    filters = st.sampled_from([None, Expression.of_column("b")])
    if not FUNCTIONS[name].is_approximate:
        chosen = [replace(asked, where=data.draw(filters)) for asked in chosen]
    wheres = st.sampled_from([None, "b"])
    queries = [
        make_query(f"q{i}", data.draw(WINDOWS), chosen, data.draw(GROUPINGS), data.draw(wheres)) for i in range(2)
    ]
    plan = plan_of(queries)
    with sorting(many):
        blocks = answered(plan, taken_of_plan(plan, rows))
    for query in queries:
        if not FUNCTIONS[name].is_approximate:
            assert_equal_answers(query, passing(query, rows), rows_of(blocks, query))
            continue
        for row in rows_of(blocks, query):
            held = [
                member
                for member in passing(query, rows)
                if row["window_start"] in windows_of(query.window, member["tick"])
            ]
            group = [str(row[grouping.name]) for grouping in query.group_by]
            held = [member for member in held if [str(plain(member[each.name])) for each in query.group_by] == group]
            for i, aggregate in enumerate(query.aggregates):
                check_promise(aggregate, query.window, held, row["window_start"], row[f"o{i}"])


@pytest.mark.parametrize("cells_per_pair", [0, 1_000])
@pytest.mark.parametrize("name", ["min_by", "max_by", "first", "last"])
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data(), rows=ROWS, is_ordered=st.booleans())
def test_picks_are_the_same_whether_pairs_are_ranked_or_sorted(
    name: str, cells_per_pair: int, data: st.DataObject, rows: list[Row], is_ordered: bool
) -> None:
    if is_ordered:  # and no tick twice, so that ticks alone decide
        rows = sorted({row["tick"]: row for row in rows}.values(), key=lambda row: int(row["tick"]))
    chosen = data.draw(st.lists(st.sampled_from(asked_of(FUNCTIONS[name])), min_size=1, max_size=3, unique=True))
    query = make_query("q", data.draw(WINDOWS), chosen, data.draw(GROUPINGS), data.draw(st.sampled_from([None, "b"])))
    with patch("windloom.kernels.tuples.tuples.CELLS_PER_PAIR", cells_per_pair):
        plan = plan_of([query])
        blocks = answered(plan, taken_of_plan(plan, rows))
    assert_equal_answers(query, passing(query, rows), rows_of(blocks, query))


def plain(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


@dataclass(frozen=True)
class Signed:
    """Queries with so many predicates and FILTERs between them, and tuples that satisfy some of them, or NULL."""

    bits: int
    queries: list[Query]
    rows: list[Row]


@st.composite
def signed_cases(draw: st.DrawFn) -> Signed:
    bits = draw(st.sampled_from([0, 1, 2, 5, SIGNATURE_BITS - 1, SIGNATURE_BITS, SIGNATURE_BITS + 1, 100, 127, 150]))
    conditions = st.sampled_from([None, "b", *(f"p{i}" for i in (0, bits // 2, bits - 1) if 0 <= i < bits)])
    queries = []
    for number in range(draw(st.integers(1, 4))):
        chosen = draw(st.lists(aggregates(), min_size=1, max_size=2))
        filters = [draw(conditions) for _ in chosen]
        chosen = [
            replace(aggregate, where=None if where is None else Expression.of_column(where))
            for aggregate, where in zip(chosen, filters, strict=True)
        ]
        queries.append(make_query(f"q{number}", draw(WINDOWS), chosen, draw(GROUPINGS), draw(conditions)))
    if bits:
        crowd = [Aggregate("count", where=Expression.of_column(f"p{i}")) for i in range(bits)]
        queries.append(make_query("crowd", draw(WINDOWS), crowd, draw(GROUPINGS), draw(conditions)))
    rows = []
    for row in draw(ROWS):
        seed = draw(st.integers(0, 2**16))
        rows.append(row | {f"p{i}": (True, False, None)[(seed * (2 * i + 3) >> 4) % 3] for i in range(bits)})
    return Signed(bits, queries, rows)


@settings(max_examples=examples(60), deadline=None)
@given(case=signed_cases(), many=MANY)
def test_woven_and_native_cells_answer_what_the_oracle_answers(case: Signed, many: int) -> None:
    for intake, kind in (("woven", WovenScan), ("native", NativeScan)):
        plan = plan_of(case.queries, intake)
        assert [type(scan) for scan in plan.scans] == [kind]
        with sorting(many):
            blocks = answered(plan, taken_of_plan(plan, case.rows))
        for query in case.queries:
            assert_equal_answers(query, passing(query, case.rows), rows_of(blocks, query))
    assert len(plan_of(case.queries).scans[0].signature.predicates) >= case.bits


EXACT_LISTS = ("count_distinct", "top", "quantile")
SKETCHES = ("approx_top", "approx_quantile", "approx_count_distinct", "frequent")


@st.composite
def mixed_queries(draw: st.DrawFn, lists: tuple[str, ...] = EXACT_LISTS + SKETCHES) -> list[Query]:
    """Values beside lists."""
    listed = st.sampled_from([aggregate for name in lists for aggregate in asked_of(FUNCTIONS[name])])
    queries = []
    for number in range(draw(st.integers(1, 3))):
        chosen = draw(st.lists(st.one_of(aggregates(), listed), min_size=1, max_size=3, unique=True))
        where = draw(st.sampled_from([None, "b"]))
        queries.append(make_query(f"q{number}", draw(WINDOWS), chosen, draw(GROUPINGS), where))
    return queries


@settings(max_examples=examples(60), deadline=None)
@given(
    queries=mixed_queries(EXACT_LISTS),
    rows=st.one_of(ROWS, ROWS.map(lambda rows: sorted(rows, key=lambda row: row["tick"]))),
    cuts=st.lists(st.integers(0, 25), max_size=4),
    closed=st.integers(-40, 80),
)
def test_portions_of_tuples_are_together_what_the_whole_is(
    queries: list[Query], rows: list[Row], cuts: list[int], closed: int
) -> None:
    plan = plan_of(queries)
    (scan,) = plan.scans
    assert isinstance(scan, WovenScan)
    state = State(frontiers={"s": closed})
    before = before_round(plan, state)["s"]
    table = tuples_table(plan, scan, rows)
    bounds = [0, *(min(cut, table.num_rows) for cut in sorted(cuts)), table.num_rows]
    portions = [table.slice(first, last - first) for first, last in pairwise(bounds)]
    parts = take_together([take_tuples(plan, scan, portion, before) for portion in portions])
    whole = take_tuples(plan, scan, table, before)
    late: list[Lateness] = []
    for taken in (parts, whole):
        _, _, counts = step(state, RoundInput(taken, {"s": closed}), plan)
        late.append(counts.late)
        blocks = answered(plan, taken)
        for query in queries:
            assert_equal_answers(query, passing(query, rows), rows_of(blocks, query))
    assert late[0] == late[1]
    assert {number: len(cells) for number, cells in parts.cells.items()} == {
        number: len(cells) for number, cells in whole.cells.items()
    }


@settings(max_examples=examples(25), deadline=None)
@given(queries=mixed_queries(), rows=ROWS)
def test_threads_make_the_same_cells(queries: list[Query], rows: list[Row]) -> None:
    plan = plan_of(queries)
    (scan,) = plan.scans
    assert isinstance(scan, WovenScan)
    table = tuples_table(plan, scan, rows)
    made = [encode(State(weave(plan, scan, read_tuples(plan, scan, table), threads=count))) for count in (1, 2, 5)]
    assert made[0] == made[1] == made[2]


def _tuples_only(log: RoundLog, plan: Plan) -> RoundLog:
    woven = {fed.number for number in log.tuples for fed in plan.scans[number].feeds}
    cells = {number: set_cells for number, set_cells in log.input.taken.cells.items() if number not in woven}
    return replace(log, input=log.input.taking(replace(log.input.taken, cells=cells)))


def _cells_only(log: RoundLog, plan: Plan) -> RoundLog:
    return replace(log, tuples={})


@contextmanager
def logged_as(form: Callable[[RoundLog, Plan], RoundLog]) -> Iterator[None]:
    with patch.object(RoundLog, "smaller", form):
        yield


@settings(max_examples=examples(25), deadline=None)
@given(
    queries=mixed_queries(),
    rounds=st.lists(ROWS, min_size=2, max_size=5),
    crashes=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    with_rows=st.booleans(),
)
def test_a_log_of_tuples_and_one_of_cells_are_recovered_to_the_same_rows(
    queries: list[Query], rounds: list[list[Row]], crashes: list[int], with_rows: bool
) -> None:
    if with_rows:
        queries = [*queries, make_query("rows", RowsWindow(3, 2), [Aggregate("count")], ("k",), "b")]
    found = []
    for form, ends in ((_tuples_only, crashes), (_cells_only, crashes), (RoundLog.smaller, [])):
        with tempfile.TemporaryDirectory() as name, logged_as(form):
            for end in ends:
                try:
                    with crash_after(end):
                        live(Path(name), queries, rounds)
                except CrashError:
                    pass
            state = live(Path(name), queries, rounds)
            answers = {
                number: {query: sorted(map(repr, rows)) for query, rows in sorted(reported.items())}
                for number, reported in answers_in(Path(name)).items()
            }
            found.append((answers, encode(state)))
    assert found[0] == found[1] == found[2]


def live(folder: Path, queries: list[Query], rounds: list[list[Row]]) -> State:
    streams = {"s": replace(STREAMS["s"], delay_ticks=20)}
    with MicroBatches(folder, streams, intake="woven", snapshot_rounds=2) as life:
        life.change({query.name: query for query in queries})
        for rows in rounds[life.loop.next_round :]:
            life.round({"s": rows})
        return life.state
