"""State to bytes and back, between any two rounds."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import ROWS, STREAM, TYPES, catalogs, make_query
from support.compare import rows_of
from support.native import partials_of_plan
from windloom.errors import WindloomError
from windloom.model import Aggregate, Query, Window
from windloom.model.time import TICK_MAX
from windloom.optimizer import PlanOptions, make_plan
from windloom.rounds import State, step
from windloom.rounds.encoding import READABLE, VERSION, decode, encode

Row = dict[str, Any]


@settings(max_examples=40, deadline=None)
@given(queries=catalogs(3), early=ROWS, late=ROWS, watermark=st.integers(-30, 60))
def test_a_decoded_state_answers_what_the_state_answers(
    queries: list[Query], early: list[Row], late: list[Row], watermark: int
) -> None:
    plan = make_plan({"s": STREAM}, queries, TYPES, PlanOptions())
    state, _, _ = step(State(), partials_of_plan(plan, early), watermark, plan)
    again = decode(encode(state))
    assert again.closed == state.closed
    assert encode(again) == encode(state)
    partials = partials_of_plan(plan, late)
    expected = list(step(state, partials, TICK_MAX, plan)[1].blocks())
    found = list(step(again, partials, TICK_MAX, plan)[1].blocks())
    for query in queries:
        assert list(map(repr, rows_of(found, query))) == list(map(repr, rows_of(expected, query)))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_refused_with_what_would_work(data: st.DataObject) -> None:
    whole = encode(State({}, 7))
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        damaged = whole[:place]
    else:
        damaged = whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    with pytest.raises(WindloomError) as error:
        decode(damaged)
    assert error.value.hint


def test_bytes_of_a_newer_version_name_the_versions_that_can_be_read() -> None:
    whole = encode(State({}, 7))
    newer = whole[:8] + (VERSION + 1).to_bytes(4, "little") + whole[12:]
    with pytest.raises(WindloomError, match=f"version {VERSION + 1}") as error:
        decode(newer)
    assert f"reads versions: {', '.join(map(str, READABLE))}" in error.value.detail


def test_a_state_of_version_1_is_still_read() -> None:
    """Version 1 had no word of the past: plans never changed, and cells went when no window could cover them."""
    query = make_query("q", Window(20, 10), [Aggregate("count")])
    plan = make_plan({"s": STREAM}, [query], TYPES, PlanOptions())
    rows = [{"tick": tick} for tick in range(60)]
    state, _, _ = step(State(), partials_of_plan(plan, rows), 45, plan, seen={"s": 59})
    batch = pa.ipc.open_stream(encode(state)[16:]).read_next_batch()
    about = json.loads(batch.schema.metadata[b"windloom"])
    older = json.dumps({"closed": about["closed"], "sets": about["sets"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema.with_metadata({"windloom": older})) as writer:
        writer.write_batch(batch.replace_schema_metadata({"windloom": older}))
    body = sink.getvalue().to_pybytes()
    found = decode(b"WINDLOOM" + struct.pack("<II", 1, zlib.crc32(body)) + body)
    assert found.closed == 45
    assert found.history[0].kept_from == 45
    for before in (state, found):
        blocks = list(step(before, {}, 60, plan)[1].blocks())
        assert [row["window_start"] for row in rows_of(blocks, query)] == [30, 40]
