"""The step of buckets over segments: rows by definition, the same in any number of buckets, with equal facts in all."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.buckets import MemoryStore, facts_of, operator_plan, run_in_buckets, step_buckets
from support.catalogs import ROWS, catalogs, growing_catalogs, make_query
from support.compare import assert_equal_rows
from support.drawing import examples
from support.round_streams import KINDS, check_rounds, drawn_rounds
from support.rounds import Round, run_rounds
from windloom.checkpoint.state_codec import decode
from windloom.errors import WindloomError
from windloom.model import Aggregate, Expression, Query, SessionWindow, TimeWindow
from windloom.model.time import TICK_MAX
from windloom.operator import segments as bucket_segments
from windloom.operator.buckets import OperatorPlan
from windloom.optimizer.stages import PlanOptions
from windloom.state import segments
from windloom.state.cells import Cells


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of a few ticks are divided into stretches too; two segments are compacted, or have a summary."""
    monkeypatch.setattr(segments, "SLICES", 1)
    monkeypatch.setattr(segments, "COMPACTED", 2)
    monkeypatch.setattr(segments, "FAN_OUT", 2)
    monkeypatch.setattr(segments, "READ_AGAIN", 1)


@KINDS
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), buckets=st.integers(1, 4), history_ticks=st.sampled_from([0, 10]))
def test_buckets_report_by_definition_what_rounds_with_changing_queries_must_report(
    kinds: str, data: st.DataObject, buckets: int, history_ticks: int
) -> None:
    rounds = data.draw(drawn_rounds(kinds, changes=True))
    assume(all(each.queries for each in rounds))  # an operator without a query is not started
    run, stores = run_in_buckets(rounds, PlanOptions(intake="woven"), buckets, history_ticks)
    check_rounds(rounds, run)
    # Facts follow from what all tasks tell, and not from the cells that a bucket holds.
    assert len({repr(facts_of(store)) for store in stores}) == 1


@settings(max_examples=examples(30), deadline=None)
@given(data=st.data(), buckets=st.integers(1, 3))
def test_nothing_is_left_when_every_window_is_closed(data: st.DataObject, buckets: int) -> None:
    rounds = data.draw(drawn_rounds("cumulating", changes=False))
    last = Round([{"tick": 10**6, "k": "a", "i": 0, "b": True}], TICK_MAX, rounds[-1].queries)
    _, stores = run_in_buckets([*rounds, last], PlanOptions(intake="woven"), buckets)
    assert all(set(store.blobs) == {"head", "plan"} for store in stores)


@settings(max_examples=examples(60), deadline=None)
@given(
    catalog=st.one_of(catalogs(3), growing_catalogs()),
    rows=ROWS,
    cuts=st.lists(st.integers(0, 25), max_size=12),
    behind=st.integers(0, 12),
    buckets=st.integers(1, 3),
)
def test_every_aggregate_is_answered_from_segments_and_summaries_as_from_cells(
    catalog: list[Query], rows: list[dict[str, Any]], cuts: list[int], behind: int, buckets: int
) -> None:
    assume(not any(isinstance(query.window, SessionWindow) for query in catalog))
    queries, rounds, largest = {query.name: query for query in catalog}, list[Round](), 0
    for first, last in pairwise([0, *sorted(cuts), len(rows)]):
        largest = max([largest, *(row["tick"] for row in rows[first:last])])
        rounds.append(Round(rows[first:last], largest - behind, queries))
    rounds.append(Round([], TICK_MAX, queries))
    options = PlanOptions(intake="woven")
    in_buckets, plain = run_in_buckets(rounds, options, buckets)[0], run_rounds(rounds, options)
    for ours, theirs in zip(in_buckets.lives, plain.lives, strict=True):
        for number in range(len(rounds)):
            assert_equal_rows(ours.query, rows, theirs.reported[number], ours.reported[number])
    assert in_buckets.late == plain.late


@pytest.mark.parametrize("late", [0, 7])
def test_a_window_that_closes_reads_summaries_of_what_lies_wholly_in_it(
    late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # stretches as they are
    window, groups = TimeWindow(512, 1), "abcd"
    counted = [
        Aggregate("count"),
        Aggregate("sum", Expression.of_column("i")),
        Aggregate("max", Expression.of_column("i")),
    ]
    query = make_query("q", window, counted, ("k",))
    rounds = []
    for number in range(300):
        rows = [{"tick": 4 * number + i, "k": group, "i": number, "b": True} for i in range(4) for group in groups]
        if late and number > 200:
            rows += [{"tick": 4 * number - 40 * late, "k": "b", "i": 1, "b": True}]
        rounds.append(Round(rows, 4 * number + 4, {"q": query}))
    read: list[int] = []
    since = bucket_segments.BucketSegments.since

    def counting(*arguments: Any) -> Cells | None:
        cells = since(*arguments)
        read.append(0 if cells is None else len(cells))
        return cells

    monkeypatch.setattr(bucket_segments.BucketSegments, "since", counting)
    run, _ = run_in_buckets(rounds, PlanOptions(intake="woven"), 1)
    arrived = [row for round_ in rounds for row in round_.rows]
    wanted = []
    for end in range(rounds[-2].watermark + 1, rounds[-1].watermark + 1):
        for group in groups:
            held = [row["i"] for row in arrived if end - 512 <= row["tick"] < end and row["k"] == group]
            edges = {"window_start": end - 512, "window_end": end}
            wanted.append({**edges, "k": group, "o0": len(held), "o1": sum(held), "o2": max(held)})
    assert_equal_rows(query, arrived, wanted, run.lives[0].reported[len(rounds) - 1])
    # A window of 512 slices and four groups; the round closes four of them.
    assert read[-1] < 512 * len(groups) // 6


def test_a_process_reads_a_segment_once_and_remembers_no_more_than_its_limit() -> None:
    query = make_query("q", TimeWindow(8, 1), [Aggregate("count")], ("k",))
    planned = operator_plan((query,), PlanOptions(intake="woven"))
    store, asked = MemoryStore("a place of its own"), list[str]()
    get = store.get
    store.get = lambda name: asked.append(name) or get(name)  # type: ignore[func-returns-value, method-assign]
    for number in range(20):
        step_buckets(planned, [store], [{"tick": number, "k": "a", "i": 0, "b": True}], number + 1)
    assert {name for name in asked if name.startswith("s")} == set()
    remembered = bucket_segments.ReadSegments(1_000)
    for number in range(100):
        remembered.put("place", str(number), some_cells(store))
    assert remembered.get("place", "99") is not None
    assert remembered.get("place", "0") is None


def some_cells(store: MemoryStore) -> Cells:
    """Cells of one of its segments."""
    return next(iter(decode(next(blob for name, blob in store.blobs.items() if name.startswith("s"))).cells.values()))


def test_a_late_tuple_that_is_dropped_is_missing_for_a_query_that_comes_later() -> None:
    counted = [Aggregate("count")]
    first = {"a": make_query("a", TimeWindow(8, 4), counted)}
    later = {**first, "b": make_query("b", TimeWindow(12, 4), counted)}
    rows = [[], [{"tick": -1, "k": "c", "i": 4, "b": True}], [{"tick": -5, "k": "b", "i": 0, "b": True}], []]
    rounds = [Round(each, 0, first if number < 3 else later) for number, each in enumerate(rows)]
    run, _ = run_in_buckets(rounds, PlanOptions(intake="woven"), 1)
    check_rounds(rounds, run)


def counting(slide: int) -> OperatorPlan:
    query = make_query("q", TimeWindow(8, slide), [Aggregate("count")], ("k",))
    return operator_plan((query,), PlanOptions(intake="woven"))


ONE_ROW = [{"tick": 1, "k": "a", "i": 0, "b": True}]


def test_another_number_of_buckets_is_refused_before_a_group_is_looked_for_in_the_wrong_one() -> None:
    stores = [MemoryStore(), MemoryStore()]
    step_buckets(counting(1), stores, ONE_ROW, 0)
    with pytest.raises(WindloomError, match="into 2 buckets, and not into 1") as raised:
        step_buckets(counting(1), stores[:1], ONE_ROW, 0)
    assert "buckets=2" in raised.value.hint


def test_a_plan_that_cannot_be_read_is_an_error_that_says_what_to_do() -> None:
    store = MemoryStore()
    step_buckets(counting(1), [store], ONE_ROW, 0)
    store.blobs["plan"] = b"cwindloom.plan.gone\nPlan\n."
    with pytest.raises(WindloomError, match="another version of Windloom") as raised:
        step_buckets(counting(2), [store], ONE_ROW, 0)
    assert "new checkpoint" in raised.value.hint
