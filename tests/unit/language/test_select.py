"""What becomes of the clauses of a SELECT: aggregates, groupings, outputs, their names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.model import Aggregate, Expression, Grouping, Output, Query

Read = Callable[[str], Query]

PRICE, VOLUME, SYMBOL = (Expression.of_column(name) for name in ("price", "volume", "symbol"))


def over(sql: str, *columns: str) -> Expression:
    return Expression(sql, columns)


def test_a_whole_query_becomes_its_model(read: Read) -> None:
    text = """SELECT symbol, avg(price) AS p, max(volume) AS v
        FROM trades [RANGE 24 hours SLIDE 1 hour]
        WHERE volume > 100 AND venue IN ('X','Y')
        GROUP BY symbol
        HAVING count(*) > 10"""
    query = read(text)
    assert query.name == "q"
    assert query.streams == ("trades",)
    assert query.text == text
    assert query.where == Expression("volume > 100 AND venue IN ('X', 'Y')", ("venue", "volume"))
    assert query.group_by == (Grouping("symbol", SYMBOL),)
    assert query.aggregates == (Aggregate("avg", PRICE), Aggregate("max", VOLUME), Aggregate("count"))
    assert query.outputs == (Output("p", aggregate=0), Output("v", aggregate=1))
    assert query.having == over("__a2 > 10", "__a2")


@pytest.mark.parametrize(
    ("call", "aggregate", "name"),
    [
        ("count(*)", Aggregate("count"), "count(1)"),
        ("COUNT(1)", Aggregate("count"), "count(1)"),
        ("count('x')", Aggregate("count"), "count(1)"),
        ("count(price)", Aggregate("count", PRICE), "count(price)"),
        ("count(NULL)", Aggregate("count", Expression("NULL")), "count(NULL)"),
        ("SUM(price)", Aggregate("sum", PRICE), "sum(price)"),
        ("avg(PRICE)", Aggregate("avg", PRICE), "avg(price)"),
        ("mean(price)", Aggregate("avg", PRICE), "mean(price)"),
        ("min(price)", Aggregate("min", PRICE), "min(price)"),
        ("max(price)", Aggregate("max", PRICE), "max(price)"),
        ("var_pop(price)", Aggregate("var_pop", PRICE), "var_pop(price)"),
        ("var_samp(price)", Aggregate("var_samp", PRICE), "var_samp(price)"),
        ("variance(price)", Aggregate("var_samp", PRICE), "variance(price)"),
        ("stddev_pop(price)", Aggregate("stddev_pop", PRICE), "stddev_pop(price)"),
        ("stddev_samp(price)", Aggregate("stddev_samp", PRICE), "stddev_samp(price)"),
        ("stddev(price)", Aggregate("stddev_samp", PRICE), "stddev(price)"),
        ("std(price)", Aggregate("stddev_samp", PRICE), "std(price)"),
        ("sum(price * volume)", Aggregate("sum", over("price * volume", "price", "volume")), "sum(price * volume)"),
        ("(max(price))", Aggregate("max", PRICE), "max(price)"),
    ],
)
def test_aggregates_are_known_by_every_name_spark_has_for_them(
    read: Read, call: str, aggregate: Aggregate, name: str
) -> None:
    query = read(f"SELECT {call} …")
    assert query.aggregates == (aggregate,)
    assert query.outputs == (Output(name, aggregate=0),)


def test_equal_aggregates_are_computed_once(read: Read) -> None:
    query = read(
        "SELECT sum(price) AS a, SUM( (Price) ) AS b, avg(price) AS c, mean(price) AS d … HAVING sum(price) > 0"
    )
    assert query.aggregates == (Aggregate("sum", PRICE), Aggregate("avg", PRICE))
    assert [output.aggregate for output in query.outputs] == [0, 0, 1, 1]


def test_expressions_over_aggregates_and_groupings_name_them_by_number(read: Read) -> None:
    query = read(
        "SELECT upper(symbol) || '!' AS s, sum(price) / sum(volume) + 1 AS r, 7 AS seven … GROUP BY upper(symbol)"
    )
    assert query.outputs == (
        Output("s", expression=over("__g0 || '!'", "__g0")),
        Output("r", expression=over("__a0 / __a1 + 1", "__a0", "__a1")),
        Output("seven", expression=over("7")),
    )


def test_the_largest_part_that_is_a_grouping_is_replaced(read: Read) -> None:
    query = read("SELECT (price + 1) * price AS x, abs(price + 1) AS y … GROUP BY price, price + 1")
    assert [str(output.expression) for output in query.outputs] == ["__g1 * __g0", "abs(__g1)"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT symbol, count(*) … GROUP BY symbol", ["symbol"]),
        ("SELECT symbol AS s, count(*) … GROUP BY symbol", ["s"]),
        ("SELECT symbol AS s, count(*) … GROUP BY s", ["s"]),
        ("SELECT symbol AS s, count(*) … GROUP BY 1", ["s"]),
        ("SELECT count(*) … GROUP BY SYMBOL, symbol", ["symbol"]),
        ("SELECT count(*) … GROUP BY venue, symbol", ["venue", "symbol"]),
        ("SELECT count(*) … GROUP BY UPPER( symbol )", ["upper(symbol)"]),
        ("SELECT count(*) … GROUP BY (price > 1)", ["price > 1"]),
        ("SELECT count(*) … GROUP BY meta.code", ["code"]),
        ("SELECT count(*) … GROUP BY cast(ts AS DATE)", ["ts"]),
        ("SELECT count(*) … GROUP BY `my col`", ["My Col"]),
    ],
)
def test_grouping_columns_are_named_by_alias_column_or_text(read: Read, text: str, names: list[str]) -> None:
    query = read(text)
    assert [grouping.name for grouping in query.group_by] == names
    assert [output.name for output in query.outputs] == ["count(1)"]


def test_a_column_of_the_stream_goes_before_an_alias_in_group_by(read: Read) -> None:
    query = read("SELECT upper(symbol) AS venue, count(*) AS n … GROUP BY symbol, upper(symbol)")
    assert [grouping.name for grouping in query.group_by] == ["symbol", "venue"]


def test_a_grouping_selected_twice_is_also_an_output(read: Read) -> None:
    query = read("SELECT symbol AS s, symbol … GROUP BY symbol")
    assert query.group_by == (Grouping("s", SYMBOL),)
    assert query.outputs == (Output("symbol", expression=over("__g0", "__g0")),)


def test_a_query_without_aggregates_reports_the_groups_of_each_window(read: Read) -> None:
    query = read("SELECT symbol … GROUP BY symbol")
    assert query.aggregates == ()
    assert query.outputs == ()


@pytest.mark.parametrize(
    ("text", "having"),
    [
        ("SELECT count(*) AS n … HAVING n > 10", "__a0 > 10"),
        ("SELECT count(*) … HAVING COUNT(*) > 10 AND max(price) < 5", "__a0 > 10 AND __a1 < 5"),
        ("SELECT sum(price) AS price … HAVING price > 1", "__a0 > 1"),
        ("SELECT upper(symbol) AS u … GROUP BY 1 HAVING u LIKE 'A%'", "__g0 LIKE 'A%'"),
        ("SELECT sum(price) / 2 AS h … HAVING h * 2 > 1", "__a0 / 2 * 2 > 1"),
        ("SELECT sum(price) - 2 AS h … HAVING h * 2 > 1", "(__a0 - 2) * 2 > 1"),
    ],
)
def test_having_sees_aggregates_groupings_and_aliases(read: Read, text: str, having: str) -> None:
    assert str(read(text).having) == having


def test_later_items_may_use_the_aliases_of_earlier_ones(read: Read) -> None:
    query = read("SELECT count(*) AS n, n * 2 AS twice …")
    assert query.outputs[1] == Output("twice", expression=over("__a0 * 2", "__a0"))


def test_stream_names_are_found_without_case_and_in_backticks(read: Read) -> None:
    assert read("SELECT count(*) FROM `Trades` [TUMBLE 1 h];").streams == ("trades",)
