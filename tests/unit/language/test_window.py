"""Where a query says its window, in brackets or with Spark's window(), and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.errors import QueryError
from windloom.model import (
    CumulateWindow,
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

Read = Callable[[str], Query]
Refusal = Callable[[str], str]


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
    ("column", "message", "hint"),
    [
        ("x.price", "'x' is not the stream of this query", "write price or trades.price or t.price"),
        ("tradse.price", "'tradse' is not the stream of this query", "did you mean 'trades'?"),
        ("tradse.prise", "'tradse' is not the stream of this query", "did you mean 'trades'?"),
        ("T.prise", "unknown column 'prise'", "did you mean 'price'?"),
        ("x.y", "unknown column 'x'", "known names: "),
    ],
)
def test_a_qualifier_that_is_unknown_is_pointed_at(read: Read, column: str, message: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        read(f"SELECT sum({column}) FROM trades [TUMBLE 1 h] AS t")
    assert caught.value.message.endswith(message)
    assert caught.value.hint.startswith(hint)
    wrong = column.partition(".")[2] if "column 'prise'" in message else column.partition(".")[0]
    line, caret = caught.value.detail.splitlines()[-2:]
    assert caret.index("^") - line.index("SELECT") == f"SELECT sum({column})".index(wrong)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("window(ts, '1 hour', '10 minutes')", window("1 hour", "10 minutes")),
        ("window(ts, '10 minutes')", window("10 minutes")),
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


@pytest.mark.parametrize(
    ("bracket", "message"),
    [
        ("[RANGE 1 hour]", "the window has a RANGE but no SLIDE"),
        ("[SLIDE 1 hour]", "the window has no RANGE"),
        ("[]", "the window is empty"),
        ("[1 hour]", "a window cannot begin with '1'"),
        ("[RANGE SLIDE 1 minute]", "a duration is missing after RANGE"),
        ("[RANGE 1 hour SLIDE 1 minute SLIDE 2 minutes]", "SLIDE is given twice"),
        ("[RANGE 1 hour WINDOW 1 hour SLIDE 1 s]", "RANGE is given twice"),
        ("[TUMBLE 1 hour SLIDE 2 minutes]", "a tumbling window has no SLIDE"),
        ("[RANGE 0 seconds SLIDE 1 minute]", "the range of a window must be positive, not 0 seconds"),
        ("[RANGE 1 hour SLIDE -1 minute]", "the slide of a window must be positive, not -1 minute"),
        ("[RANGE 1 month SLIDE 1 day]", "'month' is not a duration of fixed length"),
        ("[TUMBLE 1 year]", "'year' is not a duration of fixed length"),
        ("[RANGE 60 SLIDE 10]", "cannot read the duration '60'"),
        ("[RANGE 1 fortnight SLIDE 1 day]", "unknown time unit 'fortnight'"),
        ("[TUMBLE 0.1 us]", "the duration '0.1 us' is finer than one microsecond"),
        ("[TUMBLE 999999999999 weeks]", "the range 999999999999 weeks is too long"),
        ("[ROWS 10]", "the window has ROWS but no SLIDE"),
        ("[ROWS 0 SLIDE 5]", "the number of rows of a window must be positive, not 0"),
        ("[ROWS -3 SLIDE 5]", "the number of rows of a window must be positive, not -3"),
        ("[ROWS 10 SLIDE 0]", "the slide of a window must be positive, not 0"),
        ("[ROWS 1.5 SLIDE 1]", "cannot read the number of rows '1.5'"),
        ("[ROWS 10 SLIDE 1 minute]", "cannot read the number of rows '1 minute'"),
        ("[ROWS 10 minutes SLIDE 1]", "cannot read the number of rows '10 minutes'"),
        ("[ROWS 999999999999999999 SLIDE 1]", "the number of rows 999999999999999999 is too long"),
        ("[ROWS SLIDE 5]", "a number is missing after ROWS"),
        ("[ROWS 10 SLIDE 5 ROWS 3]", "ROWS is given twice"),
        ("[RANGE 1 hour ROWS 10 SLIDE 5]", "cannot read the duration '1 hour ROWS 10'"),
        ("[PARTITION BY symbol]", "the window has no ROWS"),
        ("[PARTITION symbol ROWS 10 SLIDE 5]", "BY is missing after PARTITION"),
        ("[PARTITION BY ROWS 10 SLIDE 5]", "a column is missing in PARTITION BY"),
        ("[PARTITION BY symbol, ROWS 10 SLIDE 5]", "a column is missing in PARTITION BY"),
        ("[PARTITION BY upper(symbol) ROWS 10 SLIDE 5]", "cannot read '(' in PARTITION BY"),
        ("[PARTITION BY smybol ROWS 10 SLIDE 5]", "unknown column 'smybol'"),
        (
            "[PARTITION BY symbol ROWS 10 SLIDE 5] GROUP BY venue",
            "PARTITION BY 'symbol' counts tuples by a column that is not grouped by",
        ),
        ("[LANDMARK]", "the window has no SLIDE"),
        ("[UNTIL NOW OFFSET 5 s]", "the window has no SLIDE"),
        ("[UNTIL SLIDE 1 hour]", "NOW is missing after UNTIL"),
        ("[LANDMARK RANGE 1 hour SLIDE 1 minute]", "a landmark window has no RANGE"),
        ("[LANDMARK SLIDE 1 hour TUMBLE 1 hour]", "a landmark window has no TUMBLE"),
        ("[LANDMARK '2026-01-05' SLIDE 1 hour]", "a landmark window begins with the stream, not at ''2026-01-05''"),
        ("[LANDMARK SLIDE 0 s]", "the slide of a window must be positive, not 0 seconds"),
        ("[LANDMARK SLIDE -1 h]", "the slide of a window must be positive, not -1 hour"),
        ("[UNTIL NOW SLIDE 1 month]", "'month' is not a duration of fixed length"),
        ("[CUMULATE 1 day]", "the window has no SLIDE"),
        ("[CUMULATE SLIDE 1 hour]", "a duration is missing after CUMULATE"),
        ("[CUMULATE 1 day SLIDE 1 hour RANGE 1 hour]", "a cumulating window has no RANGE"),
        ("[CUMULATE 1 day TUMBLE 1 hour]", "a cumulating window has no TUMBLE"),
        ("[CUMULATE 0 s SLIDE 1 s]", "the length of a window must be positive, not 0 seconds"),
        ("[CUMULATE 1 day SLIDE 0 s]", "the slide of a window must be positive, not 0 seconds"),
        (
            "[CUMULATE 1 day SLIDE 7 minutes]",
            "the slide 7 minutes of a cumulating window does not divide its length, 1 day",
        ),
        ("[CUMULATE 1 month SLIDE 1 day]", "'month' is not a duration of fixed length"),
        ("[NOW]", "windows of one instant (NOW) are not supported yet"),
        ("[RANGE UNBOUNDED]", "unbounded windows are not supported yet"),
        ("[SESSION]", "the session window has no GAP"),
        ("[SESSION 5 minutes]", "the session window has no GAP"),
        ("[SESSION SLIDE 5 minutes]", "the session window has no GAP"),
        ("[SESSION of GAP 5 minutes]", "cannot read 'of' after SESSION"),
        ("[SESSION GAP]", "a duration is missing after GAP"),
        ("[SESSION GAP 5 minutes SLIDE 1 minute]", "a session window has no SLIDE"),
        ("[SESSION GAP 5 minutes OFFSET 1 minute]", "a session window has no OFFSET"),
        ("[SESSION RANGE 1 hour GAP 5 minutes]", "a session window has no RANGE"),
        ("[SESSION GAP 0 seconds]", "the gap of a window must be positive, not 0 seconds"),
        ("[SESSION GAP -5 minutes]", "the gap of a window must be positive, not -5 minutes"),
        ("[SESSION GAP 1 month]", "'month' is not a duration of fixed length"),
        ("[SESSION GAP 999999999999 weeks]", "the gap 999999999999 weeks is too long"),
        ("[GAP 5 minutes]", "a window cannot begin with 'GAP'"),
        ("[TUMBLE 1 hour", "'[' is never closed"),
        ("[TUMBLE 1 hour] [TUMBLE 2 hours]", "cannot read '[' here"),
    ],
)
def test_a_bracket_that_is_no_window_is_refused(refusal: Refusal, bracket: str, message: str) -> None:
    assert refusal(f"SELECT count(*) FROM trades {bracket}") == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT count(*) FROM trades", "the query has no window"),
        ("SELECT window(ts, '1 hour'), count(*) FROM trades", "the query has no window"),
        ("SELECT count(*) … GROUP BY window(ts, '1 hour')", "a query has one window only"),
        ("SELECT count(*) FROM trades GROUP BY window(ts, '1 h'), window(ts, '2 h')", "a query has one window only"),
        (
            "SELECT count(*) FROM trades GROUP BY window(price, '1 hour')",
            "window() must be over the time column of stream 'trades'",
        ),
        (
            "SELECT count(*) FROM trades GROUP BY window(ts)",
            "window() takes the time column and one to three durations",
        ),
        ("SELECT count(*) FROM trades GROUP BY window(ts, 3600)", "a duration is expected here"),
        ("SELECT count(*) FROM trades GROUP BY window(ts, '1 month')", "'month' is not a duration of fixed length"),
        (
            "SELECT count(*) FROM trades GROUP BY session_window(ts, CASE WHEN price > 1 THEN '5 s' ELSE '1 s' END)",
            "the gap of session_window() must be a duration, the same for all tuples",
        ),
        (
            "SELECT count(*) FROM trades GROUP BY session_window(ts, symbol)",
            "the gap of session_window() must be a duration, the same for all tuples",
        ),
        (
            "SELECT count(*) FROM trades GROUP BY session_window(ts)",
            "session_window() takes the time column and one duration",
        ),
        (
            "SELECT count(*) FROM trades GROUP BY session_window(ts, '5 min', '1 min')",
            "session_window() takes the time column and one duration",
        ),
        (
            "SELECT count(*) FROM trades GROUP BY session_window(ts, '0 s')",
            "the gap of a window must be positive, not 0 seconds",
        ),
        (
            "SELECT count(*) FROM trades GROUP BY session_window(ts, '1 year')",
            "'year' is not a duration of fixed length",
        ),
        (
            "SELECT count(*) FROM trades GROUP BY session_window(price, '5 min')",
            "session_window() must be over the time column of stream 'trades'",
        ),
        (
            "SELECT count(*) FROM trades GROUP BY session_window(ts, '5 min'), window(ts, '1 h')",
            "a query has one window only",
        ),
        (
            "SELECT frequent(2, volume) FROM trades [SESSION GAP 1 h]",
            "'frequent(2, volume)' cannot be taken over [SESSION GAP 1 hour]",
        ),
        ("SELECT max(session_window(ts, '1 hour').start) …", "session_window() can only stand in GROUP BY"),
        ("SELECT window.start AS s FROM trades GROUP BY window(ts, '1 h')", "the window cannot be called 's'"),
        ("SELECT window(ts, '2 h') FROM trades GROUP BY window(ts, '1 h')", "this is not the window of the query"),
        ("SELECT max(window(ts, '1 hour').start) …", "window() can only stand in GROUP BY"),
        ("SELECT window_start + INTERVAL 1 HOUR, count(*) …", "'window_start' cannot be used in an expression yet"),
        ("SELECT count(*) … GROUP BY window_start", "the window is not a grouping column"),
    ],
)
def test_a_window_in_the_wrong_place_is_refused(refusal: Refusal, text: str, message: str) -> None:
    assert refusal(text) == message
