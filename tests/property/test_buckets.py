"""The step of buckets over segments: rows by definition, the same in any number of buckets, with equal facts in all."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.buckets import facts_of, run_in_buckets
from support.drawing import examples
from support.round_streams import KINDS, check_rounds, drawn_rounds
from support.rounds import Round
from windloom.model.time import TICK_MAX
from windloom.operator import segments
from windloom.optimizer.stages import PlanOptions


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of a few ticks are divided into stretches too, and a few segments are compacted."""
    monkeypatch.setattr(segments, "TICKS_PER_SECOND", 2)
    monkeypatch.setattr(segments, "COMPACTED", 2)


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
