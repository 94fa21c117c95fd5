"""Random queries over tuples of which many tie, with picks, windows of rows, and edges in expressions, equal DuckDB.

`WINDLOOM_TEXTS=500` draws more of them.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb

from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNT = int(os.environ.get("WINDLOOM_TEXTS", "25"))
_COLUMNS = {"ts": "timestamp", "k": "string", "g": "int", "a": "int", "b": "string", "x": "double", "v": "bigint"}
_NOON = datetime.datetime(2026, 3, 2, 12)
_FIRST, _LAST = ("first", "min_by"), ("last", "max_by")


def drawn(random: Random, count: int) -> list[tuple[Any, ...]]:
    """Few instants and few values, so that orders tie and values are NULL."""
    return [
        (
            _NOON + datetime.timedelta(seconds=30 * random.randrange(60)),
            random.choice([None, "p", "q"]),
            random.randrange(3),
            random.choice([None, -1, 1, 2]),
            random.choice([None, "", "s", "t"]),
            random.choice([None, -0.5, 0.25, 4.0]),
            number,
        )
        for number in range(count)
    ]


@dataclass(frozen=True)
class Window:
    """The bracket, the rows of every window in DuckDB, and expressions of its edges in both."""

    bracket: str
    rows: str
    edges: Sequence[str]


def of_time(random: Random) -> Window:
    length, slide, offset = random.choice([60, 90, 300, 720]), random.choice([30, 60, 300, 600]), random.choice([0, 45])
    last = f"epoch(ts) - (epoch(ts) - {offset}) % {slide}"
    starts = f"SELECT *, CAST({last} AS BIGINT) - n * {slide} AS s FROM t, range(0, {length // slide + 1}) r(n)"
    rows = (
        f"SELECT *, make_timestamp(s * 1000000) AS window_start, make_timestamp((s + {length}) * 1000000) AS window_end"
        f" FROM ({starts}) WHERE epoch(ts) < s + {length}"
    )
    edges = ("minute(window_end)", "second(window_start) + minute(window_end)", "window_end - INTERVAL 1 MINUTE")
    return Window(f"[RANGE {length} seconds SLIDE {slide} seconds OFFSET {offset} seconds]", rows, edges)


def of_rows(random: Random, keys: Sequence[str]) -> Window:
    count, slide, offset = random.choice([1, 2, 5, 400]), random.choice([1, 2, 7]), random.choice([0, 1])
    counted = [key for key in keys if key in _COLUMNS and random.random() < 0.6]
    by = f"PARTITION BY {', '.join(counted)}" if counted else ""
    order = ", ".join(f"{name} NULLS FIRST" for name in _COLUMNS)
    places = f"SELECT *, row_number() OVER ({by} ORDER BY {order}) - 1 AS p, count(*) OVER ({by}) AS c FROM t"
    last = f"p - ((p - {offset}) % {slide} + {slide}) % {slide}"
    starts = f"SELECT *, {last} - n * {slide} AS window_start FROM ({places}), range(0, {count // slide + 1}) r(n)"
    rows = (
        f"SELECT *, window_start + {count} AS window_end FROM ({starts})"
        f" WHERE p < window_start + {count} AND window_start + {count} <= c"
    )
    edges = ("window_end % 3", "window_start + 1", "window_end * 2")
    return Window(f"[{by} ROWS {count} SLIDE {slide} OFFSET {offset}]", rows, edges)


def picks(random: Random) -> tuple[list[str], list[str]]:
    """Picks by one order, as we write them and as DuckDB finds them: fields of one struct."""
    function, by = random.choice([*_FIRST, *_LAST]), random.choice(["ts", "a", "g", "b"])
    by = "ts" if function in ("first", "last") else by
    values = random.sample(["a", "b", "x", "g", "a * 2", "upper(b)"], random.randint(1, 3))
    where = random.choice(["", "", " FILTER (WHERE g > 0)"])
    order = "" if function in ("first", "last") else f", {by}"
    known = f" FILTER (WHERE {by} IS NOT NULL{' AND g > 0' if where else ''})"
    fields = ", ".join(f"'n{i}': ({value}) IS NOT NULL, 'x{i}': {value}" for i, value in enumerate(values))
    struct = f"{'min' if function in _FIRST else 'max'}({{'y': {by}, {fields}}}){known}"
    if random.random() < 0.25:
        named = ", ".join(f"{value} AS f{i}" for i, value in enumerate(values))
        both = ", ".join(f"'f{i}': ({struct}).x{i}" for i in range(len(values)))
        return [f"{function}(struct({named}){order}){where}"], [f"CASE WHEN count(*){known} > 0 THEN {{{both}}} END"]
    ours = [f"{function}({value}{order}){where}" for value in values]
    return ours, [f"({struct}).x{i}" for i in range(len(values))]


def query(random: Random) -> tuple[str, str]:
    """A query in our form, and as DuckDB answers it."""
    keys = random.sample(["k", "g", "coalesce(b, 'none')"], random.randint(0, 2))
    window = of_rows(random, keys) if random.random() < 0.4 else of_time(random)
    ours, theirs = picks(random)
    shared = random.sample(["count(*)", "sum(v)", "count(DISTINCT a)", "max(x)", "avg(g)"], random.randint(0, 2))
    shared += random.sample(window.edges, random.randint(0, 1))
    where = random.choice(["", " WHERE g < 2", " WHERE x IS NOT NULL OR a > 0"])
    having = random.choice(["", " HAVING count(*) > 1", f" HAVING {window.edges[0]} > 1"])
    items = [*keys, *ours, *shared]
    plain_items = [f"c{place}" for place, item in enumerate(items, 1) if "struct(" not in item]
    ordered = ", ".join(f"{column} {random.choice(['ASC', 'DESC'])} NULLS FIRST" for column in plain_items)
    order = f" ORDER BY {ordered}" if ordered and random.random() < 0.3 else ""

    def selected(items: list[str]) -> str:
        return ", ".join(f"{item} AS c{place}" for place, item in enumerate(items, 1))

    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    groups = ", ".join(["window_start", "window_end", *keys])
    text = f"SELECT {selected(items)} FROM t {window.bracket}{where}{group}{having}{order}"
    truth = (
        f"SELECT window_start, window_end, {selected([*keys, *theirs, *shared])} FROM ({window.rows}){where}"
        f" GROUP BY {groups}{having}"
    )
    return text, truth


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(map(plain, value.values()))
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    return round(value, 9) if isinstance(value, float) else value


def test_random_queries_with_ties_and_windows_of_rows_equal_duckdb(spark: SparkSession) -> None:
    random = Random(36)
    rows = drawn(random, 150)
    pairs = [query(random) for _ in range(_COUNT)]
    frame = spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items()))
    loom = Loom(spark)
    loom.stream("t", frame.repartition(3), time="ts")
    for number, (text, _) in enumerate(pairs):
        loom.query(f"q{number}", text)
    results = loom.run()
    with duckdb.connect() as database:
        kinds = {"string": "varchar", "int": "integer"}
        database.execute(
            f"CREATE TABLE t ({', '.join(f'{name} {kinds.get(kind, kind)}' for name, kind in _COLUMNS.items())})"
        )
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(_COLUMNS))})", rows)
        for number, (text, truth) in enumerate(pairs):
            expected = [tuple(map(plain, row)) for row in database.execute(truth).fetchall()]
            found = [tuple(map(plain, row.values())) for row in results.arrow(f"q{number}").to_pylist()]
            assert sorted(found, key=repr) == sorted(expected, key=repr), (text, truth)
