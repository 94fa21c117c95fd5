"""Scalar expressions: one text for all spellings, and only what is known passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.errors import QueryError
from windloom.model import Expression, Query

Read = Callable[[str], Query]


def canonical(read: Read, text: str) -> str:
    return str(read(f"SELECT count(*) … WHERE {text}").where)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PRICE>1", "price > 1"),
        ("trades.price > 1", "price > 1"),
        ("((price)) > (1)", "price > 1"),
        ("(price > 1)", "price > 1"),
        ("price   >\n 1 -- why", "price > 1"),
        ("price != 1 and Price == 2", "price <> 1 AND price = 2"),
        ("`My Col` = 1 or `my col` = 2", "`My Col` = 1 OR `My Col` = 2"),
        ("(price + 1) * 2", "(price + 1) * 2"),
        ("(price * 1) + 2", "price * 1 + 2"),
        ("price - (1 - 2)", "price - (1 - 2)"),
        ("- - price", "-(-price)"),
        ("+price", "positive(price)"),
        ("not price is null", "price IS NOT NULL"),
        ("NOT (symbol IN ('a'))", "symbol NOT IN ('a')"),
        ("not symbol like 'a'", "symbol NOT LIKE 'a'"),
        ("not (symbol like all ('a', 'b'))", "NOT symbol LIKE ALL ('a', 'b')"),
        ("symbol not like all ('a', 'b')", "symbol NOT LIKE ALL ('a', 'b')"),
        ("symbol not between 'a' and 'b'", "symbol NOT BETWEEN 'a' AND 'b'"),
        ("symbol regexp 'a'", "symbol RLIKE 'a'"),
        ('symbol = "x"', "symbol = 'x'"),
        ("symbol = 'it''s'", "symbol = 'it''s'"),
        (r"symbol = 'a\'b\n'", r"symbol = 'a\'b\n'"),
        ("symbol RLIKE r'\\d'", "symbol RLIKE r'\\d'"),
        ("volume > 10l", "volume > 10L"),
        ("price > 1e-3", "price > 1E-3"),
        ("ts > date '2020-01-01'", "ts > DATE '2020-01-01'"),
        ("ts + interval 1 hour  30 minutes > ts", "ts + INTERVAL 1 HOUR 30 MINUTES > ts"),
        ("Upper( SYMBOL )", "upper(symbol)"),
        ("nvl(price,0)", "nvl(price, 0)"),
        ("cast(price as int)", "CAST(price AS INT)"),
        ("price::int", "CAST(price AS INT)"),
        ("case when price>1 then 1 end", "CASE WHEN price > 1 THEN 1 END"),
        ("timestampdiff(hour, ts, ts)", "timestampdiff(HOUR, ts, ts)"),
        ("extract(hour from ts)", "EXTRACT(HOUR FROM ts)"),
        ("meta.Code = trades.meta.name", "meta.Code = meta.name"),
        ("sizes[0]", "sizes[0]"),
        ("exists(sizes, price -> price > 1)", "exists(sizes, price -> price > 1)"),
        ("filter(sizes, (v, i) -> v > volume)[0] = 1", "filter(sizes, (v, i) -> v > volume)[0] = 1"),
        ("price <=> volume", "price <=> volume"),
        ("price is not distinct from volume", "price <=> volume"),
        ("price > volume is null", "(price > volume) IS NULL"),
        ("sum_of_things(price)", "sum_of_things(price)"),
    ],
)
def test_spellings_of_one_expression_have_one_text(read: Read, text: str, expected: str) -> None:
    assert canonical(read, text) == expected
    assert canonical(read, expected) == expected


def test_an_expression_knows_the_columns_it_reads(read: Read) -> None:
    where = read(
        "SELECT count(*) … WHERE Volume > 1 AND meta.code + price > `my col` AND exists(sizes, v -> v = 1)"
    ).where
    assert where is not None
    assert where.columns == ("My Col", "meta", "price", "sizes", "volume")
    assert where.column is None


def test_a_bare_column_is_known_as_such(read: Read) -> None:
    assert read("SELECT max((trades.PRICE)) …").aggregates[0].argument == Expression.of_column("price")


def test_a_column_named_like_a_sql_word_stays_a_column() -> None:
    assert Expression.of_column("true").sql == "`true`"


def test_an_expression_that_is_nested_too_deeply_is_refused(read: Read) -> None:
    with pytest.raises(QueryError, match="the query is nested too deeply"):
        canonical(read, "(" * 400 + "price" + ")" * 400)


def test_long_chains_of_conditions_are_read(read: Read) -> None:
    text = " OR ".join(f"price = {number}" for number in range(3000))
    assert canonical(read, text) == text
