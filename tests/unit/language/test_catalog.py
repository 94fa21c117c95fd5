"""Catalog files: streams, queries, and where in the file something is wrong."""

from __future__ import annotations

from textwrap import dedent

import pytest

from windloom.errors import QueryError
from windloom.language import parse_catalog
from windloom.model import DataType, Stream, parse_duration

TRADES = "CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE) TIME ts;"


def stream(statement: str) -> Stream:
    return parse_catalog(statement).streams[0].stream


def test_a_catalog_holds_streams_and_queries_in_their_order() -> None:
    catalog = parse_catalog(
        dedent(
            """\
            -- trades of one day; all of them
            CREATE STREAM trades (
                ts TIMESTAMP NOT NULL, symbol STRING COMMENT 'a; b', price DOUBLE, d DECIMAL(10, 2),
                meta STRUCT<a: INT, b: ARRAY<STRING>>, `My Col` INT
            ) TIME ts DELAY 10 seconds;
            /* two
               queries */
            CREATE QUERY avg_1h AS
              SELECT symbol, avg(price) AS p FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol;
            create query `all of it` as SELECT count(*) FROM trades [TUMBLE 1 day] WHERE symbol = ';'
            """
        )
    )
    (trades,) = catalog.streams
    assert trades.line == 2
    assert trades.stream == Stream(
        "trades",
        {
            "ts": DataType.parse("timestamp"),
            "symbol": DataType.parse("string"),
            "price": DataType.parse("double"),
            "d": DataType.parse("decimal(10,2)"),
            "meta": DataType.parse("struct<a:int,b:array<string>>"),
            "My Col": DataType.parse("int"),
        },
        time="ts",
        delay_ticks=parse_duration("10 seconds"),
    )
    assert [(query.name, query.line, query.column) for query in catalog.queries] == [
        ("avg_1h", 9, 3),
        ("all of it", 10, 29),
    ]
    assert catalog.queries[1].text == "SELECT count(*) FROM trades [TUMBLE 1 day] WHERE symbol = ';'"
    parsed = catalog.parse()
    assert [query.name for query in parsed] == ["avg_1h", "all of it"]
    assert parsed[1].text == catalog.queries[1].text


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("TIME ts", Stream("s", {}, time="ts")),
        ("DELAY 1 minute 30 seconds TIME ts", Stream("s", {}, time="ts", delay_ticks=90_000_000)),
        ("DELAY '10 s' RATE 1000 TIME TS", Stream("s", {}, time="ts", delay_ticks=10_000_000, events_per_second=1e3)),
        ("TIME n UNIT ms", Stream("s", {}, time="n", time_unit="ms")),
        ("TIME n UNIT seconds RATE 0.5", Stream("s", {}, time="n", time_unit="s", events_per_second=0.5)),
        ("UNIT us TIME `n`", Stream("s", {}, time="n", time_unit="us")),
        ("TIME time", Stream("s", {}, time="time")),
        ("TIME day", Stream("s", {}, time="day")),
        ("TIME text", Stream("s", {}, time="text")),
    ],
)
def test_the_options_of_a_stream_come_in_any_order(statement: str, expected: Stream) -> None:
    columns = "ts TIMESTAMP, n LONG, time TIMESTAMP_NTZ, day DATE, text STRING, price DOUBLE"
    found = stream(f"CREATE STREAM s ({columns}) {statement}")
    assert (found.time, found.delay_ticks, found.time_unit, found.events_per_second) == (
        expected.time,
        expected.delay_ticks,
        expected.time_unit,
        expected.events_per_second,
    )


def test_queries_may_read_streams_that_are_given_elsewhere() -> None:
    catalog = parse_catalog("CREATE QUERY q AS SELECT count(*) FROM ticks [TUMBLE 1 h];")
    assert catalog.streams == ()
    ticks = Stream("ticks", {"ts": DataType.parse("timestamp")}, time="ts")
    assert catalog.parse({"ticks": ticks})[0].streams == ("ticks",)
    with pytest.raises(QueryError, match="query 'q': unknown stream 'ticks'"):
        catalog.parse()


def test_a_byte_order_mark_and_windows_line_ends_are_no_trouble() -> None:
    lines = [
        "\ufeffCREATE STREAM s",
        "(ts TIMESTAMP)",
        "TIME ts;",
        "CREATE QUERY q AS",
        "SELECT count(*) AS x FROM s [TUMBLE 1 h]",
    ]
    catalog = parse_catalog("\r\n".join(lines))
    assert [query.line for query in catalog.queries] == [5]
    assert catalog.parse()[0].outputs[0].name == "x"


def test_an_error_in_a_query_tells_the_place_in_the_file() -> None:
    good = "CREATE QUERY a AS SELECT max(price) FROM trades [TUMBLE 1 h];"
    bad = "CREATE QUERY b AS SELECT\n  max(prise) FROM trades [TUMBLE 1 h];"
    text = f"{TRADES}\n\n{good}\n{bad}\n"
    catalog = parse_catalog(text, "demo.cql")
    with pytest.raises(QueryError) as caught:
        catalog.parse()
    assert str(caught.value) == dedent(
        """\
        query 'b': unknown column 'prise'
        line 5, column 7 of demo.cql
            max(prise) FROM trades [TUMBLE 1 h];
                ^^^^^
        hint: did you mean 'price'?"""
    )


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "no CREATE STREAM or CREATE QUERY statement found", "1:1"),
        ("-- nothing\n;", "no CREATE STREAM or CREATE QUERY statement found", "1:1"),
        (f"{TRADES}\nDROP STREAM trades;", "unknown statement 'DROP'", "2:1"),
        (f"{TRADES}\nCREATE TABLE t (a INT);", "unknown statement 'TABLE'", "2:8"),
        (f"{TRADES}\nSELECT 1;", "a query in a catalog needs a name", "2:1"),
        (f"{TRADES}\n{TRADES}", "stream 'trades' is created twice", "2:15"),
        (
            f"{TRADES}\nCREATE QUERY q AS SELECT 1;\n  CREATE QUERY q AS SELECT 2;",
            "query 'q' is created twice",
            "3:16",
        ),
        (
            f"{TRADES[:-1]}\nCREATE QUERY q AS SELECT 1;",
            "a ';' is missing before this statement",
            "2:1",
        ),
        (
            f"CREATE QUERY q AS SELECT count(*) FROM trades [TUMBLE 1 h];\n{TRADES}",
            "query 'q': stream 'trades' is created only later, at line 2",
            "1:40",
        ),
        ("CREATE QUERY", "a name is missing after CREATE QUERY", "1:13"),
        ("CREATE QUERY q SELECT 1", "query 'q': AS is missing after the name", "1:16"),
        ("CREATE QUERY q AS;", "query 'q': the query is missing after AS", "1:18"),
        ("CREATE STREAM s;", "stream 's': the columns are missing after the name", "1:16"),
        ("CREATE STREAM s () TIME ts;", "stream 's': a stream needs columns", "1:17"),
        ("CREATE STREAM s (ts) TIME ts;", "stream 's': the type of column 'ts' is missing", "1:18"),
        ("CREATE STREAM s (ts TIMESTMAP) TIME ts;", "stream 's': unknown type 'TIMESTMAP'", "1:21"),
        (
            "CREATE STREAM s (ts DATE price INT) TIME ts;",
            "stream 's': cannot read 'price' after the type",
            "1:26",
        ),
        (
            "CREATE STREAM s (ts DATE, TS INT) TIME ts;",
            "stream 's': column 'TS' is declared twice",
            "1:27",
        ),
        ("CREATE STREAM s (ts DATE,, a INT) TIME ts;", "stream 's': a column name is expected, not ','", "1:26"),
        ("CREATE STREAM s (ts DATE);", "stream 's': the TIME column is missing", "1:26"),
        ("CREATE STREAM s (ts DATE) TIME tz;", "stream 's': unknown column 'tz'", "1:32"),
        ("CREATE STREAM s (ts DATE) TIME ts TIME ts;", "stream 's': TIME is given twice", "1:35"),
        ("CREATE STREAM s (ts DATE) TIME;", "stream 's': a value is missing after TIME", "1:31"),
        ("CREATE STREAM s (ts DATE) TIME ts LATE 5 s;", "stream 's': cannot read 'LATE' after TIME ts", "1:35"),
        ("CREATE STREAM s (ts DATE) LATE 5 s TIME ts;", "stream 's': cannot read 'LATE' here", "1:27"),
        (
            "CREATE STREAM s (x DOUBLE) TIME x;",
            "stream 's': column 'x' of type double cannot be the event time",
            "1:33",
        ),
        (
            "CREATE STREAM s (n INT) TIME n;",
            "stream 's': the UNIT of the integer column 'n' is missing",
            "1:30",
        ),
        ("CREATE STREAM s (n INT) TIME n UNIT hours;", "stream 's': unknown unit 'hours'", "1:37"),
        (
            "CREATE STREAM s (ts DATE) TIME ts UNIT ms;",
            "stream 's': UNIT is for integer time columns",
            "1:40",
        ),
        (
            "CREATE STREAM s (ts DATE) TIME ts DELAY 1 month;",
            "stream 's': 'month' is not a duration",
            "1:41",
        ),
        ("CREATE STREAM s (ts DATE) TIME ts DELAY -1 s;", "stream 's': the DELAY is negative", "1:41"),
        (
            "CREATE STREAM s (ts DATE) TIME ts RATE 0;",
            "stream 's': the RATE must be a positive number",
            "1:40",
        ),
        ("CREATE STREAM s (ts DATE TIME ts;", "'(' is never closed", "1:17"),
        (f"{TRADES} /* CREATE QUERY q AS", "the comment is never closed", "1:75"),
    ],
)
def test_a_mistake_in_a_catalog_is_shown_where_it_is(text: str, message: str, place: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_catalog(text)
    line, column = place.split(":")
    assert caught.value.message.removeprefix("catalog 'catalog': ").startswith(message)
    assert caught.value.detail.splitlines()[0] == f"line {line}, column {column}"
    assert caught.value.hint
