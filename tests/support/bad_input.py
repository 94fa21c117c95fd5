"""Mistakes people make in queries, which the API and the command line must both explain."""

from __future__ import annotations

#: By sentence: the text of a query over the trades, and the words its error must hold.
BAD_QUERIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "an unknown stream": ("SELECT count(*) FROM trade [TUMBLE 1 hour]", ("unknown stream 'trade'", "'trades'")),
    "an unknown column": ("SELECT avg(prise) …", ("unknown column 'prise'", "'price'")),
    "an unknown column in WHERE": ("SELECT count(*) … WHERE prise > 1", ("unknown column 'prise'",)),
    "an unknown column in GROUP BY": ("SELECT count(*) … GROUP BY symbols", ("unknown column 'symbols'",)),
    "a range of zero": ("SELECT count(*) FROM trades [RANGE 0 seconds SLIDE 1 second]", ("range", "positive")),
    "a negative range": ("SELECT count(*) FROM trades [RANGE -5 seconds SLIDE 1 second]", ("range", "-5 seconds")),
    "a slide of zero": ("SELECT count(*) FROM trades [RANGE 5 seconds SLIDE 0 seconds]", ("slide", "positive")),
    "a negative slide": ("SELECT count(*) FROM trades [RANGE 5 seconds SLIDE -1 s]", ("slide", "-1 second")),
    "a negative length of Spark's window()": (
        "SELECT count(*) FROM trades GROUP BY window(ts, '-1 hour')",
        ("range", "-1 hour"),
    ),
    "months": ("SELECT count(*) FROM trades [RANGE 1 month SLIDE 1 day]", ("'month'", "fixed length", "30 days")),
    "years in window()": ("SELECT count(*) FROM trades GROUP BY window(ts, '1 year')", ("'year'", "fixed length")),
    "a gap of zero": ("SELECT count(*) FROM trades [SESSION GAP 0 seconds]", ("gap", "positive", "[SESSION GAP")),
    "a gap that is computed": (
        "SELECT count(*) FROM trades GROUP BY session_window(ts, symbol)",
        ("gap of session_window()", "the same for all tuples", "'5 minutes'"),
    ),
    "an aggregate of a string": ("SELECT avg(symbol) …", ("avg(symbol)", "type string")),
    "an aggregate of a computed string": ("SELECT sum(upper(symbol)) …", ("sum(upper(symbol))", "type string")),
    "a condition of numbers": ("SELECT every(volume) …", ("every(volume)", "bigint", "not a boolean")),
    "a condition of computed strings": ("SELECT bool_or(upper(symbol)) …", ("bool_or(upper(symbol))", "type string")),
    "a pick by an array": ("SELECT max_by(symbol, array(volume)) …", ("max_by(symbol, array(volume))", "has no order")),
    "a pick of a map": ("SELECT last(map(symbol, volume)) …", ("last(map(symbol, volume))", "has no order")),
    "a pick by nothing": ("SELECT min_by(symbol) …", ("min_by() takes two arguments, not 1",)),
    "a filter that is no condition": ("SELECT sum(volume) FILTER (WHERE price + 1) …", ("FILTER", "type double")),
    "an unknown column in FILTER": (
        "SELECT count(*) FILTER (WHERE prise > 1) …",
        ("unknown column 'prise'", "'price'"),
    ),
    "a grouping by an array": (
        "SELECT count(*) … GROUP BY array(volume)",
        ("group by 'array(volume)'", "array<bigint>"),
    ),
    "a grouping by a collation": (
        "SELECT count(*) … GROUP BY symbol COLLATE UTF8_LCASE",
        ("group by 'symbol COLLATE UTF8_LCASE'", "lower("),
    ),
    "a WHERE that is no condition": ("SELECT count(*) … WHERE price + 1", ("WHERE", "type double")),
    "a HAVING that is no condition": ("SELECT count(*) AS n … HAVING sum(volume)", ("HAVING", "sum(volume)", "bigint")),
    "an unknown function": ("SELECT sum(roumd(price)) …", ("roumd(price)", "did you mean 'round'")),
    "an unknown function over aggregates": ("SELECT twice(sum(price)) AS x …", ("twice(sum(price))",)),
    "types that do not go together": (
        "SELECT sum(volume) + DATE '2026-01-05' AS x …",
        ("sum(volume) + DATE '2026-01-05'", "DATATYPE_MISMATCH"),
    ),
    "a value that changes by itself": ("SELECT count(*) … WHERE rand() > price", ("rand",)),
    "a text that is no query": ("SELEKT 1", ("SELEKT",)),
}
