"""What a query reads."""

from __future__ import annotations

from dataclasses import replace

from support.catalogs import make_query
from windloom.model import Aggregate, Expression, ExpressionKey, TimeWindow, WindowedStream


def test_a_query_reads_the_streams_of_its_source_through_its_window() -> None:
    query = make_query("q", TimeWindow(10, 5), [Aggregate("count")], stream="s")
    assert (query.streams, query.window) == (("s",), TimeWindow(10, 5))
    assert query.source.windows_over("s") == (TimeWindow(10, 5),)
    assert query.source.windows_over("t") == ()


def test_an_alias_does_not_make_another_query() -> None:
    query = make_query("q", TimeWindow(10, 5), [Aggregate("count")])
    assert replace(query, source=replace(query.source, alias="a")) == query
    source = WindowedStream("s", TimeWindow(10_000_000, 5_000_000), "a")
    assert str(source) == "s [RANGE 10 seconds SLIDE 5 seconds] AS a"


def test_the_type_of_an_expression_is_known_by_relation_and_text() -> None:
    left, right = (make_query("q", TimeWindow(10, 5), [Aggregate("count")], stream=name) for name in "st")
    expression = Expression.of_column("x")
    assert left.key_of(expression) == ExpressionKey("s", "x") != right.key_of(expression)
