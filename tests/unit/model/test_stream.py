from __future__ import annotations

import pytest

from windloom.model import DataType, Expression, Stream

COLUMNS = {"ts": DataType.parse("timestamp"), "Price": DataType.parse("double"), "PRICE": DataType.parse("int")}


def test_columns_are_found_as_written_first_then_without_case() -> None:
    stream = Stream("s", COLUMNS, "ts")
    assert stream.find_column("PRICE") == "PRICE"
    assert stream.find_column("Price") == "Price"
    assert stream.find_column("price") == "Price"
    assert stream.find_column("TS") == "ts"
    assert stream.find_column("t s") is None


@pytest.mark.parametrize(
    ("time", "window"), [("timestamp", "timestamp"), ("timestamp_ntz", "timestamp_ntz"), ("bigint", "timestamp")]
)
def test_windows_are_instants_of_the_kind_of_the_time_column(time: str, window: str) -> None:
    assert Stream("s", {"at": DataType.parse(time)}, "at").window_type.name == window


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        ("price", "price"),
        ("_1", "_1"),
        ("my col", "`my col`"),
        ("a.b", "`a.b`"),
        ("back`tick", "`back``tick`"),
        ("größe", "`größe`"),
        ("1st", "`1st`"),
        ("TRUE", "`TRUE`"),
        ("null", "`null`"),
    ],
)
def test_names_are_quoted_where_spark_would_read_something_else(name: str, sql: str) -> None:
    assert Expression.of_column(name).sql == sql
    assert Expression.of_column(name).column == name
