"""Streams for equivalence with Spark: small, seeded, and full of what goes wrong."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from typing import Any

#: Columns of the random stream; `ts` is event time.
SCHEMA = (
    "ts timestamp, k string, g int, x double, f float, n bigint, i int, s smallint, d decimal(12,2), w decimal(30,4),"
    " b boolean, t string, day date"
)

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SPECIAL = [0.0, -0.0, 0.1, 1e15, -1e15, math.nan, math.inf, 1e-300]


def random_rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    """Ties, bursts, gaps and disorder, times on both sides of the epoch, NULLs, keys that come and go."""
    rng = random.Random(seed)
    tick = rng.choice([-500, -5_000, 1_700_000_000]) * 1_000_000
    rows = []
    for index in range(count):
        tick += rng.choice([0, 0, 1, 1_000, 300_000, 1_000_000, 2_500_000, 60_000_000 if rng.random() < 0.1 else 7])
        late = tick - rng.choice([0, 0, 0, 5_000_000])
        phase = index * 4 // count  # which keys exist changes with time
        rows.append(
            (
                _EPOCH + datetime.timedelta(microseconds=late),
                _maybe(rng, rng.choice(["a", "b", "ä", ""]) + str(phase)),
                _maybe(rng, rng.randrange(3)),
                _maybe(rng, rng.choice(_SPECIAL) if rng.random() < 0.05 else rng.uniform(-100, 100)),
                _maybe(rng, rng.uniform(-1, 1)),
                _maybe(rng, rng.randint(-(2**45), 2**45)),
                _maybe(rng, rng.randint(-1000, 1000)),
                _maybe(rng, rng.randint(-100, 100)),
                _maybe(rng, Decimal(rng.randint(-(10**11), 10**11)).scaleb(-2)),
                _maybe(rng, Decimal(rng.randint(-(10**29), 10**29)).scaleb(-4)),
                _maybe(rng, rng.random() < 0.5),
                _maybe(rng, "".join(rng.choice("xyzÄ€") for _ in range(rng.randrange(3)))),
                _maybe(rng, datetime.date(2026, 1, 1) + datetime.timedelta(days=rng.randrange(-9, 9))),
            )
        )
    rng.shuffle(rows)
    return rows


def _maybe(rng: random.Random, value: Any) -> Any:
    return None if rng.random() < 0.12 else value


_ARGUMENTS = {
    "x": "num", "f": "num", "n": "whole", "i": "whole", "s": "whole", "d": "num", "w": "num",
    "b": "condition", "x > 0 OR b": "condition", "t": "any", "day": "any", "ts": "any",
    "x * 2 + i": "num", "abs(n)": "num", "length(t)": "num", "CASE WHEN b THEN x ELSE -x END": "num",
    "upper(t)": "any",
}  # fmt: skip
_NUMERIC = ["sum", "avg", "min", "max", "count", "var_pop", "var_samp", "stddev_pop", "stddev_samp"]
_NUMERIC += ["skewness", "kurtosis", "try_sum", "try_avg"]
_FUNCTIONS = {
    "num": _NUMERIC,
    "whole": [*_NUMERIC, "bit_and", "bit_or", "bit_xor"],
    "condition": ["bool_and", "every", "bool_or", "any", "some", "min", "max", "count"],
    "any": ["min", "max", "count"],
}
_PICKS = ["min_by", "max_by", "first", "last"]
#: Of two columns without infinities, for which Spark's own covariance depends on the order of the tuples.
_PAIRED = ["corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_syy"]
_FINITE = ["f", "n", "i", "s", "d", "w", "abs(n)", "length(t)"]
_PREDICATES = ["", "", "", "WHERE x > 0", "WHERE k LIKE 'a%' AND i IS NOT NULL", "WHERE b", "WHERE i > 10000"]
_FILTERS = [
    *filter(None, _PREDICATES),
    "WHERE x > 0 OR NULL",
    "WHERE NOT (i > 0 AND b)",
    "WHERE NULL",
    "WHERE t IN ('x', '')",
]
_GROUPINGS = ["", "k", "g", "k, g", "g, k", "b", "x > 0 AS positive", "upper(k) AS u, g", "day", "i % 3 AS m"]


def random_query(rng: random.Random) -> str:
    """CQL with windows that do and do not line up, offsets, gaps, and aggregates of every kind and type."""
    slide = rng.choice([1, 2, 3, 5, 7, 10, 12, 60, 97])
    length = rng.choice([slide * rng.randint(1, 6), rng.randint(1, 4 * slide), max(1, slide // 3), slide + 1])
    offset = rng.choice(["", "", f" OFFSET {rng.randint(-90, 90)} seconds", " OFFSET 1 ms"])
    aggregates = []
    for number in range(rng.randint(1, 3)):
        argument = rng.choice(list(_ARGUMENTS))
        function = rng.choice(_PICKS if rng.random() < 0.15 else _FUNCTIONS[_ARGUMENTS[argument]])
        by = f", {rng.choice(list(_ARGUMENTS))}" if function.endswith("_by") else ""
        call = f"{function}({argument}{by})"
        if rng.random() < 0.1:
            call = f"{rng.choice(_PAIRED)}({', '.join(rng.sample(_FINITE, 2))})"
        text = "count(*)" if number and rng.random() < 0.4 else call
        condition = f" FILTER ({rng.choice(_FILTERS)})" if rng.random() < 0.25 else ""
        aggregates.append(f"{text}{condition} AS o{number}")
    grouping = rng.choice(_GROUPINGS)
    head = f"{grouping}, " if grouping else ""
    by = ", ".join(item.split(" AS ")[0] for item in grouping.split(", ")) if grouping else ""
    tail = f" GROUP BY {by}" if by else ""
    having = rng.choice(["", "", " HAVING count(*) > 1"])
    return (
        f"SELECT {head}{', '.join(aggregates)} FROM s [RANGE {length} seconds SLIDE {slide} seconds{offset}]"
        f" {rng.choice(_PREDICATES)}{tail}{having}"
    )
