"""Where a query says its window, in brackets or with Spark's window(), and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.model import (
    Expression,
    LandmarkWindow,
    Query,
    RowsWindow,
    SessionWindow,
    TimeWindow,
    Window,
    WindowedStream,
    parse_duration,
)
from windloom.model.windows.cumulate import CumulateWindow

Read = Callable[[str], Query]


def window(length: str, slide: str | None = None, offset: str = "0 s") -> Window:
    return TimeWindow(parse_duration(length), parse_duration(slide or length), parse_duration(offset))


@pytest.mark.parametrize(
    ("bracket", "expected"),
    [
        ("[RANGE 1 hour SLIDE 1 minute]", window("1 hour", "1 minute")),
        ("[range 1 HOUR slide 1 Minute]", window("1 hour", "1 minute")),
        ("[WINDOW 24 hours SLIDE 1 hour]", window("1 day", "1 hour")),
        ("[RANGE 1 hour SLIDE 1 minute OFFSET 5 seconds]", window("1 hour", "1 minute", "5 s")),
        ("[RANGE 1 hour OFFSET -5 seconds SLIDE 1 minute]", window("1 hour", "1 minute", "55 s")),
        ("[RANGE 1 hour SLIDE 1 minute OFFSET - 5 s]", window("1 hour", "1 minute", "55 s")),
        ("[RANGE 1 hour 30 minutes SLIDE 90 seconds]", window("90 min", "90 s")),
        ("[RANGE 1.5 hours SLIDE 500 ms]", window("90 min", "500 ms")),
        ("[RANGE 10s SLIDE 1s]", window("10 s", "1 s")),
        ("[RANGE 1h SLIDE 5min]", window("1 h", "5 min")),
        ("[RANGE '10 minutes' SLIDE '30 seconds']", window("10 min", "30 s")),
        ("[RANGE INTERVAL 10 minutes SLIDE 30 seconds]", window("10 min", "30 s")),
        ("[RANGE 1 minute SLIDE 1 hour]", window("1 min", "1 h")),
        ("[TUMBLE 10 minutes]", window("10 min")),
        ("[ROWS 100 SLIDE 10]", RowsWindow(100, 10)),
        ("[rows 5 slide 20 OFFSET -3]", RowsWindow(5, 20, 17)),
        ("[LANDMARK SLIDE 1 hour]", LandmarkWindow(parse_duration("1 hour"))),
        ("[until now slide 1 h OFFSET -5 min]", LandmarkWindow(parse_duration("1 h"), parse_duration("55 min"))),
        ("[CUMULATE 1 day SLIDE 1 minute]", CumulateWindow(parse_duration("1 day"), parse_duration("1 min"))),
        (
            "[cumulate 24h offset -30 min slide '1 hour']",
            CumulateWindow(parse_duration("1 day"), parse_duration("1 h"), parse_duration("-30 min")),
        ),
        ("[TUMBLE 10 minutes OFFSET 1 minute]", window("10 min", offset="1 min")),
        ("[SESSION GAP 5 minutes]", SessionWindow(parse_duration("5 min"))),
        ("[session gap 90s]", SessionWindow(parse_duration("90 s"))),
        ("[SESSION GAP '1 hour 30 minutes']", SessionWindow(parse_duration("90 min"))),
        ("[RANGE 1 hour -- how far back\n SLIDE 1 minute /* how often */]", window("1 hour", "1 minute")),
    ],
)
def test_a_bracket_after_the_stream_is_the_window(read: Read, bracket: str, expected: Window) -> None:
    assert read(f"SELECT count(*) FROM trades {bracket} WHERE sizes[0] > 1").window == expected


def test_rows_of_a_partition_are_counted_for_every_group(read: Read) -> None:
    query = read("SELECT count(*) FROM trades [PARTITION BY VENUE, symbol ROWS 9 SLIDE 3] GROUP BY symbol, venue")
    assert query.window == RowsWindow(9, 3, 0, (Expression.of_column("symbol"), Expression.of_column("venue")))
    assert str(query.window) == "[PARTITION BY symbol, venue ROWS 9 SLIDE 3]"


@pytest.mark.parametrize("clause", ["trades [TUMBLE 1 h] AS t", "trades AS t [TUMBLE 1 h]", "trades t [TUMBLE 1 h]"])
def test_the_alias_may_stand_on_either_side_of_the_bracket(read: Read, clause: str) -> None:
    query = read(f"SELECT sum(t.price) FROM {clause} WHERE t.volume > 1 AND trades.volume > 2")
    assert query.source == WindowedStream("trades", window("1 hour"))
    assert str(query.source) == "trades [TUMBLE 1 hour] AS t"
    assert str(query.where) == "volume > 1 AND volume > 2"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("window(ts, '1 hour', '10 minutes')", window("1 hour", "10 minutes")),
        ("window(ts, '10 minutes')", window("10 minutes")),
        ("window(ts, '10 minutes', 60000000)", window("10 minutes", "1 minute")),
        ("window(ts, '1 hour', '10 minutes', '5 minutes')", window("1 hour", "10 minutes", "5 minutes")),
        ("window(ts, '1 hour', '10 minutes', '-5 minutes')", window("1 hour", "10 minutes", "5 minutes")),
        ("WINDOW(trades.TS, INTERVAL '1' HOUR, INTERVAL 10 MINUTES)", window("1 hour", "10 minutes")),
        ("session_window(ts, '5 minutes')", SessionWindow(parse_duration("5 min"))),
        ("SESSION_WINDOW(trades.ts, INTERVAL 90 SECONDS)", SessionWindow(parse_duration("90 s"))),
    ],
)
def test_sparks_own_window_call_pastes_in(read: Read, call: str, expected: Window) -> None:
    query = read(f"SELECT window.start, window.end, symbol, avg(price) FROM trades GROUP BY {call}, symbol")
    assert query.window == expected
    assert [grouping.name for grouping in query.group_by] == ["symbol"]
    assert [output.name for output in query.outputs] == ["avg(price)"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT window, count(*) FROM trades GROUP BY window(ts, '1 hour')",
        "SELECT window.start AS window_start, window.end AS window_end, count(1) FROM trades GROUP BY window(ts, '1h')",
        "SELECT window(ts, '1 hour'), count(*) FROM trades GROUP BY 1",
        "SELECT window(ts, '1 hour'), count(*) FROM trades GROUP BY window",
        "SELECT window(ts, '1 hour') AS window, count(*) FROM trades GROUP BY window(ts, '60 minutes')",
        "SELECT window_start, window_end, count(*) FROM trades [TUMBLE 1 hour]",
        "SELECT window.start, count(*) FROM trades [TUMBLE 1 hour]",
    ],
)
def test_items_that_ask_for_the_window_are_dropped(read: Read, text: str) -> None:
    query = read(text)
    assert query.window == window("1 hour")
    assert query.group_by == ()
    assert [output.name for output in query.outputs] == ["count(1)"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT session_window, count(*) FROM trades GROUP BY session_window(ts, '1 hour')",
        "SELECT session_window.start AS window_start, count(*) FROM trades GROUP BY session_window(ts, '1 hour')",
        "SELECT session_window(ts, '1 hour'), count(*) FROM trades GROUP BY 1",
        "SELECT session_window(ts, '1 hour') AS session_window, count(*) FROM trades GROUP BY session_window",
        "SELECT window_start, window_end, count(*) FROM trades [SESSION GAP 1 hour]",
    ],
)
def test_items_that_ask_for_the_session_are_dropped(read: Read, text: str) -> None:
    query = read(text)
    assert query.window == SessionWindow(parse_duration("1 hour"))
    assert (query.group_by, [output.name for output in query.outputs]) == ((), ["count(1)"])
