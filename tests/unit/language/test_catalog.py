"""Catalog files: streams, queries, and where in the file something is wrong."""

from __future__ import annotations

from textwrap import dedent

import pytest

from windloom.errors import QueryError
from windloom.language.catalog import parse_catalog
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
