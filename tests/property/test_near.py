"""Interval joins that are made without Spark equal the definition, for every span, cut and key."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.join_looms import planned, registered
from support.row_answers import rows_in_span
from support.row_rounds import STREAMS, TEXTS
from windloom.answers.rows import interval_joins
from windloom.answers.rows.interval_joins import fits, near_blocks, near_tuples
from windloom.checkpoint.tuple_files import ROUND, TICK
from windloom.plan.rows import NearJoin, near_join
from windloom.state.tuple_store import NO_ROUND, ReportedWindows, RowSpan

JOINED = {
    "near": TEXTS["near"],
    "two_keys": "SELECT t.i AS b, s.k FROM s JOIN t WITHIN 5 us ON s.k = t.k AND t.i = s.i",
    "itself": "SELECT a.i AS i, b.i AS j, b.k FROM s a JOIN s b WITHIN 4 us ON a.k = b.k",
    "one_tick": "SELECT s.i, t.k FROM s JOIN t WITHIN 1 us ON s.i = t.i",
}
#: Spark makes the pairs of these: other conditions, other columns, more streams.
ELSEWHERE = {
    "with_itself": TEXTS["with_itself"],
    "near_all": TEXTS["near_all"],
    "computed": "SELECT s.i + 1 AS a FROM s JOIN t WITHIN 5 us ON s.k = t.k",
    "filtered": "SELECT s.i FROM s JOIN t WITHIN 5 us ON s.k = t.k WHERE t.i > 2",
    "null_safe": "SELECT s.i FROM s JOIN t WITHIN 5 us ON s.k <=> t.k",
    "keyless": "SELECT s.i FROM s JOIN t WITHIN 5 us ON s.i < t.i",
    "windows": TEXTS["pairs"],
}
PLAN = planned(registered({**JOINED, **ELSEWHERE}, STREAMS))
ROWS = {row_query.name: row_query for row_query in PLAN.rows}

tuples = st.lists(
    st.fixed_dictionaries(
        {
            "tick": st.integers(-20, 40),
            "round": st.integers(0, 3),
            "k": st.sampled_from(["a", "b", None]),
            "i": st.one_of(st.none(), st.integers(0, 2)),
        }
    ),
    max_size=14,
)
spans = st.builds(
    RowSpan,
    st.one_of(st.none(), st.integers(-10, 20)),
    st.one_of(st.none(), st.integers(0, 45)),
    st.sampled_from([NO_ROUND, 0, 1, 2]),
)


def side(rows: list[dict[str, Any]]) -> interval_joins.NearTuples:
    kinds = {"tick": pa.int64(), "round": pa.int64(), "k": pa.string(), "i": pa.int32()}
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})
    return near_tuples(table, {"k": "k", "i": "i"}, "tick", "round")


def ticked(table: pa.Table) -> pa.Table:
    for place, edge in enumerate(("window_start", "window_end")):
        table = table.set_column(place, edge, table[edge].cast(pa.int64()))
    return table


@settings(max_examples=examples(150), deadline=None)
@given(name=st.sampled_from(list(JOINED)), s=tuples, t=tuples, span=spans, pairs=st.sampled_from([1, 3, 1000]))
def test_pairs_are_those_of_the_definition(name: str, s: list[Any], t: list[Any], span: RowSpan, pairs: int) -> None:
    row_query = ROWS[name]
    join = near_join(row_query, STREAMS)
    assert join is not None
    held = {"s": s, "t": t}
    sides = [side(held[strand.stream]) for strand in row_query.rows.strands]
    assert fits(sides, join)
    with patch.object(interval_joins, "BLOCK_PAIRS", pairs):
        blocks = list(near_blocks(PLAN, ReportedWindows(row_query, span), join, sides))
    found = Counter(repr(row) for block in blocks for row in ticked(block.table).to_pylist())
    streams = {stream: [{**row, TICK: row["tick"], ROUND: row["round"]} for row in own] for stream, own in held.items()}
    assert found == Counter(map(repr, rows_in_span(row_query.rows, streams, span)))


def test_what_is_no_such_join_is_left_to_spark() -> None:
    assert [name for name in ELSEWHERE if near_join(ROWS[name], STREAMS) is not None] == []


def test_keys_and_times_that_do_not_fit_are_left_to_spark() -> None:
    join = near_join(ROWS["near"], STREAMS)
    assert join is not None
    far = side([{"tick": tick, "round": 0, "k": "a", "i": 1} for tick in (0, 2**61)])
    assert fits([far, far], join)  # what is far apart need not be told how far
    wide = NearJoin(2**60, join.keys, join.columns)
    assert not fits([far, far], wide)
