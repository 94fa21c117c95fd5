"""Random streams and queries for property tests: small numbers, so that every edge case is hit often."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

from hypothesis import strategies as st

from windloom.model import (
    Aggregate,
    DataType,
    Expression,
    ExpressionKey,
    Grouping,
    LandmarkWindow,
    Output,
    Query,
    Stream,
    TimeWindow,
    Window,
    WindowedStream,
)
from windloom.model.windows.cumulate import CumulateWindow

COLUMNS = {
    "tick": DataType.parse("bigint"),
    "k": DataType.parse("string"),
    "f": DataType.parse("double"),
    "x": DataType.parse("double"),
    "n": DataType.parse("bigint"),
    "i": DataType.parse("int"),
    "d": DataType.parse("decimal(12,2)"),
    "b": DataType.parse("boolean"),
}
STREAM = Stream("s", COLUMNS, "tick", time_unit="us")
#: Three streams of the same columns, for looms that read several; "s" alone for all others.
STREAMS = {name: replace(STREAM, name=name) for name in ("s", "t", "u")}
TYPES = {ExpressionKey(stream, name): kind for stream in STREAMS for name, kind in COLUMNS.items()}

_FLOATS = st.one_of(
    st.none(), st.sampled_from([0.0, -0.0, 0.1, 1e15, -1e15, 3.0, math.nan, math.inf]), st.floats(-100, 100, width=32)
)
_BOOLEAN = ("bool_and", "bool_or", "min", "max", "count")
_WHOLE = ("bit_and", "bit_or", "bit_xor")
_NUMERIC = ("sum", "avg", "min", "max", "count", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
_NUMERIC += ("skewness", "kurtosis", "try_sum", "try_avg")
_PAIRED = ("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_sxy")

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "tick": st.integers(-40, 80),
            "k": st.sampled_from(["a", "b", None]),
            "f": st.sampled_from([1.0, math.nan, 0.0, None]),
            "x": _FLOATS,
            "n": st.one_of(st.none(), st.integers(-(2**40), 2**40)),
            "i": st.one_of(st.none(), st.integers(-5, 5)),
            "d": st.one_of(st.none(), st.integers(-999, 999).map(lambda v: Decimal(v).scaleb(-2))),
            "b": st.one_of(st.none(), st.booleans()),
        }
    ),
    max_size=25,
)

#: Ways to take in streams whose components all have native partials and whose windows are of time.
INTAKES = st.sampled_from(["woven", "native"])

WINDOWS = st.builds(TimeWindow, st.integers(1, 24), st.integers(1, 16), st.integers(-9, 9))
CUMULATING = st.builds(
    lambda slide, count, offset: CumulateWindow(slide * count, slide, offset),
    st.integers(1, 9),
    st.integers(1, 6),
    st.integers(-30, 30),
)


@st.composite
def picks(draw: st.DrawFn, column: str) -> Aggregate:
    """Few values of many tuples, so that what is looked at is often equal."""
    function = draw(st.sampled_from(["min_by", "max_by", "first", "last"]))
    together = draw(st.sampled_from(["", "", "x", "bk", "dxn"]))  # what else is picked from the same tuple
    names = dict.fromkeys(draw(st.permutations([column, *together])) if together else ())
    picked = tuple(map(Expression.of_column, names))
    by = Expression.of_column(draw(st.sampled_from("fxidbk"))) if function.endswith("_by") else None
    return Aggregate(function, Expression.of_column(column), by, picked=picked if len(names) > 1 else ())


@st.composite
def aggregates(draw: st.DrawFn) -> Aggregate:
    where = draw(st.sampled_from([None, None, Expression.of_column("b")]))
    return replace(draw(unfiltered_aggregates()), where=where)


@st.composite
def unfiltered_aggregates(draw: st.DrawFn) -> Aggregate:
    column = draw(st.sampled_from(["x", "n", "i", "d", "b", "k", None]))
    if column is None:
        return Aggregate("count")
    kind = draw(st.integers(0, 7))
    if kind < 2:
        return draw(picks(column))
    if kind == 2 and column in "xnid":
        second = Expression.of_column(draw(st.sampled_from("xnidf")))
        return Aggregate(draw(st.sampled_from(_PAIRED)), Expression.of_column(column), second)
    functions = _BOOLEAN if column == "b" else ("min", "max", "count")
    functions = _NUMERIC if column in "xnid" else functions
    function = draw(st.sampled_from((*functions, *_WHOLE) if column in "ni" else functions))
    return Aggregate(function, Expression.of_column(column))


@st.composite
def queries(draw: st.DrawFn, name: str) -> Query:
    chosen = draw(st.lists(aggregates(), min_size=1, max_size=3, unique=True))
    grouping = draw(st.sampled_from([(), ("k",), ("f",), ("k", "f"), ("f", "k")]))
    return make_query(name, draw(WINDOWS), chosen, grouping)


def make_query(
    name: str,
    window: Window,
    chosen: list[Aggregate],
    grouping: tuple[str, ...] = (),
    where: str | None = None,
    stream: str = "s",
) -> Query:
    return Query(
        name,
        WindowedStream(stream, window),
        None if where is None else Expression.of_column(where),
        tuple(Grouping(column, Expression.of_column(column)) for column in grouping),
        tuple(chosen),
        tuple(Output(f"o{i}", i) for i in range(len(chosen))),
        None,
        "",
    )


@st.composite
def catalogs(draw: st.DrawFn, most: int = 4) -> list[Query]:
    count = draw(st.integers(1, most))
    return [draw(queries(f"q{i}")) for i in range(count)]


@st.composite
def growing_catalogs(draw: st.DrawFn, asked: st.SearchStrategy[Aggregate] | None = None) -> list[Query]:
    """Landmark and cumulating queries of several slides, and others beside them, over few groupings."""
    landmarks = st.builds(LandmarkWindow, st.integers(1, 16), st.integers(-9, 9))
    growing = st.one_of(landmarks, CUMULATING)
    windows = draw(st.lists(growing, min_size=1, max_size=3)) + draw(st.lists(WINDOWS, max_size=2))
    chosen = st.lists(aggregates() if asked is None else asked, min_size=1, max_size=2, unique=True)
    grouping = st.sampled_from([(), ("k",), ("k", "f")])
    return [make_query(f"q{i}", window, draw(chosen), draw(grouping)) for i, window in enumerate(windows)]
