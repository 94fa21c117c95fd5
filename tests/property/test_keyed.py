"""Joins that are folded straight from tuples, against the oracle: in any portions, and with cells made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest import mock

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from support.compare import assert_equal_answers, rows_of
from support.compare_joins import assert_equal_join
from support.drawing import examples
from support.join_catalogs import COLUMNS, STREAMS, qualified, rows
from support.join_looms import registered
from support.join_texts import Asked, Hung, Read
from support.native import tuples_table
from windloom.answers.joins import joins as join_answers
from windloom.answers.joins.matrix import TooManyGroupsError
from windloom.answers.joins.tuple_matrix import TupleMatrix
from windloom.engine.registry import Registry
from windloom.kernels.tuples import sorted_tuples as weave_keyed
from windloom.model import Aggregate, JoinKind
from windloom.model.time import TICK_MAX
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan
from windloom.rounds.step import StepCounts, step
from windloom.slicing.slicings import SLICINGS
from windloom.state.state import State
from windloom.weave import sorted_tuples as keyed_tuples
from windloom.weave.round_input import RoundInput, ScanResult, take_together, take_tuples, with_keyed_merged
from windloom.weave.sorted_tuples import KeyedChoice, NotKeyedError

Row = dict[str, Any]
Rows = dict[str, list[Row]]

_SUMS = [
    Aggregate("count"),
    *(
        Aggregate(function, qualified(text))
        for function in ("sum", "avg", "count")
        for text in ("a.i", "b.i", "a.n", "a.i * b.i", "2 * a.i - b.i")
    ),
]
_PLAIN = "SELECT {key}, sum(i) AS s, max(x) AS m, count(*) AS n FROM {stream} {window} GROUP BY {key}"


@st.composite
def summed_joins(draw: st.DrawFn) -> list[Asked]:
    """Joins of two streams on one key that add up integers: of one pairing, with their own windows and aggregates."""
    key, slide = draw(st.sampled_from(["k", "i", "f"])), draw(st.integers(1, 5))
    streams = [draw(st.sampled_from(list(STREAMS))) for _ in range(2)]
    side = draw(st.sampled_from("ab"))
    columns = draw(st.lists(st.sampled_from(["k", "b", "i", "f"]), max_size=2, unique=True))
    safe, condition = draw(st.booleans()), draw(st.sampled_from([None, None, "{c}.b", "{c}.x IS NOT NULL"]))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        lengths = [draw(st.sampled_from([slide, 2 * slide, 3 * slide, slide + 1, 11])) for _ in range(2)]
        aggregates = draw(st.lists(st.sampled_from(_SUMS), min_size=1, max_size=3, unique=True))
        first, second = (Read(stream, alias, own) for stream, alias, own in zip(streams, "ab", lengths, strict=True))
        hung = Hung(JoinKind.INNER, "a", second, ((key, key, safe),), None, condition)
        groups = tuple((side, column) for column in columns)
        found.append(Asked(first, slide, draw(st.sampled_from([0, 1, -3])), (hung,), (), groups, tuple(aggregates)))
    return found


@st.composite
def complete_rows(draw: st.DrawFn) -> Rows:
    """Mostly without NULLs in what is added up, and in 32 bits."""
    found: Rows = draw(rows(14))
    if draw(st.integers(0, 5)):
        for row in (row for own in found.values() for row in own):
            row["i"] = 3 if row["i"] is None else row["i"]
            row["n"] = -7 if row["n"] is None or abs(row["n"]) > 2**31 else row["n"]
    return found


def planned(registry: Registry, options: PlanOptions) -> Plan:
    """As if the driver could read files of all streams itself."""
    known = PlanningFacts(files=dict.fromkeys(STREAMS, frozenset(COLUMNS)))
    return make_plan(registry.sources, registry.queries.values(), registry.types(), options, known)


def taken_keyed(plan: Plan, rows: Mapping[str, list[Row]], portions: int) -> ScanResult:
    """As a batch run takes in files: in portions, whose tuples are put in order if those of all can be."""
    parts: list[ScanResult] = []
    for scan in plan.scans:
        assert isinstance(scan, WovenScan)
        own = rows[scan.stream]
        cuts = [len(own) * part // portions for part in range(portions + 1)]
        tables = [tuples_table(plan, scan, own[lo:hi]) for lo, hi in pairwise(cuts)]
        choice = KeyedChoice(scan)
        try:
            parts += with_keyed_merged([take_tuples(plan, scan, table, choice=choice) for table in tables])
        except NotKeyedError:
            parts += [take_tuples(plan, scan, table) for table in tables]
    return take_together(parts) if parts else ScanResult()


@contextmanager
def always_keyed() -> Iterator[None]:
    """However few cells would be made."""
    with mock.patch.object(keyed_tuples, "_STEPS_PER_CELL", 1e9):
        yield


@pytest.mark.parametrize("is_folded", [True, False])
@settings(max_examples=examples(200), deadline=None)
@given(
    asked=summed_joins(),
    rows=complete_rows(),
    portions=st.integers(1, 3),
    slicing=st.sampled_from(list(SLICINGS)),
    strategy=st.sampled_from(["no_share", "shared"]),
    has_plain=st.booleans(),
)
def test_what_is_folded_from_tuples_is_what_the_oracle_answers(
    is_folded: bool, asked: list[Asked], rows: Rows, portions: int, slicing: str, strategy: str, has_plain: bool
) -> None:
    """`is_folded`, or cells are made of the tuples after all."""
    texts = {f"j{number}": join.cql() for number, join in enumerate(asked)}
    key = asked[0].hung[0].keys[0][0]
    if has_plain:
        stream = asked[0].first.stream
        texts["plain"] = _PLAIN.format(key=key, stream=stream, window="[RANGE 7 microseconds SLIDE 3 microseconds]")
    registry = registered(texts)
    plan = planned(registry, PlanOptions(strategy, slicing, intake="woven", fold="slice_matrix"))
    with always_keyed():
        taken = taken_keyed(plan, rows, portions)
    event(f"tuples in order for {len(taken.keyed)} sides of {len(asked)} joins")
    ticks = {name: [row["tick"] for row in own] for name, own in rows.items() if own}
    brought = RoundInput(
        taken,
        dict.fromkeys(STREAMS, TICK_MAX),
        seen={name: max(own) for name, own in ticks.items()},
        first={name: min(own) for name, own in ticks.items()},
    )
    state, answers, counts = step(State(), brought, plan)
    assert not any(len(cells) for cells in state.cells.values())
    made = TupleMatrix.wanting if is_folded else mock.Mock(side_effect=TooManyGroupsError)
    with mock.patch.object(TupleMatrix, "wanting", made):
        blocks = list(answers.blocks(threads=2))
    for query in registry.queries.values():
        found = rows_of(blocks, query)
        if query.join is not None:
            assert_equal_join(query, rows, found)
        else:
            assert_equal_answers(query, rows[query.source.stream], found)
    _assert_same_counts(plan, rows, counts, portions)


def _assert_same_counts(plan: Plan, rows: Rows, counts: StepCounts, portions: int) -> None:
    """Sets have the statistics that they have if cells are made of all tuples."""
    scans = tuple(replace(scan, keyed=()) for scan in plan.scans if isinstance(scan, WovenScan))
    usual = replace(plan, scans=scans, joins=tuple(replace(join, tuples=()) for join in plan.joins))
    given_cells = RoundInput(taken_keyed(usual, rows, portions), dict.fromkeys(STREAMS, TICK_MAX))
    _, _, wanted = step(State(), given_cells, usual)
    assert dict(counts.tuples) == dict(wanted.tuples)
    assert {number: count for number, count in counts.groups.items() if count} == {
        number: count for number, count in wanted.groups.items() if count
    }
    assert counts.links == wanted.links
    for partial_set in plan.sets:
        if all(not tree.answered for tree in partial_set.trees):
            number = partial_set.number
            assert counts.partials.get(number, 0) == wanted.partials.get(number, 0)


@settings(max_examples=examples(40), deadline=None)
@given(asked=summed_joins(), rows=complete_rows(), portions=st.integers(1, 3), room=st.sampled_from([1, 2, 4]))
def test_records_without_room_are_made_of_cells_after_all(
    asked: list[Asked], rows: Rows, portions: int, room: int
) -> None:
    registry = registered({f"j{number}": join.cql() for number, join in enumerate(asked)})
    plan = planned(registry, PlanOptions("shared", intake="woven", fold="slice_matrix"))
    with (
        always_keyed(),
        mock.patch.object(weave_keyed, "MOST_OUTS", room),
        mock.patch.object(keyed_tuples, "MOST_OUTS", room),
        mock.patch.object(weave_keyed, "MOST_SIZE", 4),
    ):
        taken = taken_keyed(plan, rows, portions)
    _, answers, _ = step(State(), RoundInput(taken, dict.fromkeys(STREAMS, TICK_MAX)), plan)
    blocks = list(answers.blocks())
    for query in registry.queries.values():
        assert_equal_join(query, rows, rows_of(blocks, query))


def test_sums_that_may_exceed_their_bits_are_folded_from_cells() -> None:
    """2³¹ − 1 fits a record, but what three of them add up to does not fit a slice."""
    text = (
        "SELECT count(*) AS n, sum(b.n) AS s FROM s [RANGE 4 microseconds SLIDE 2 microseconds] a"
        " JOIN s [RANGE 2 microseconds] b ON a.k = b.k"
    )
    registry = registered({"q": text})
    row = {"tick": 0, "k": "a", "f": 1.0, "i": 1, "n": 2**31 - 1, "x": 0.0, "z": 0.0, "d": None, "b": True}
    rows: Rows = {"s": [dict(row, tick=tick) for tick in (0, 0, 0, 1, 3)], "t": [], "u": []}
    plan = planned(registry, PlanOptions(intake="woven", fold="slice_matrix"))
    assert plan.joins[0].tuples == ((0, 0), (0, 0))
    with always_keyed():
        taken = taken_keyed(plan, rows, 1)
    assert list(taken.keyed) == [(0, 0)]
    _, answers, _ = step(State(), RoundInput(taken, dict.fromkeys(STREAMS, TICK_MAX)), plan)
    with mock.patch.object(join_answers, "MatrixFamily", wraps=join_answers.MatrixFamily) as families:
        blocks = list(answers.blocks())
    assert [call.args[4:] != () for call in families.call_args_list] == [True, False]  # tuples, then cells
    assert_equal_join(registry.queries["q"], rows, rows_of(blocks, registry.queries["q"]))
