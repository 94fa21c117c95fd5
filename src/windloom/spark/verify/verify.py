"""Verification: recomputes a query with Spark's own `window()` (see `verify.windows`) and compares row by row.

It shares nothing with the plan, the slices or the kernels: it uses the query's expressions, and Spark's grouping and
sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windloom.aggregates.aggregator import ListAggregator
from windloom.aggregates.registry import aggregator_for
from windloom.aggregates.user_defined import fold
from windloom.errors import WindloomError
from windloom.model.aggregate import Aggregate
from windloom.model.clauses import ADDED_COLUMNS, CHANGE, REPORT, Emits
from windloom.model.query import Query
from windloom.model.stream import Stream
from windloom.spark.errors import as_windloom_errors
from windloom.spark.native import tick_sql
from windloom.spark.verify.joins import joined, size_of, with_enriched
from windloom.spark.verify.rows import RowFrames
from windloom.spark.verify.windows import windowed

#: The allowed difference of floating-point answers, relative to Σ|x| of the window …
TOLERANCE = 1e-12
#: … and the possible error of Spark's own sum, relative to Σ|x|, per value.
ROUNDING = 2.0**-52
#: Expressions over aggregates, and aggregates that users define, have no error bound of their own.
LOOSE_TOLERANCE = 1e-9


def rows_of_windows(query: Query, reported: pa.Table, expected: pa.Table) -> pa.Table:
    """Return the rows of windows, from what a query with EMIT has reported in a batch run.

    The columns are those of `expected` up to the outputs of the query. With EMIT EARLY the rows are the final ones. A
    change stands in its window, and in those that follow up to its group's next change, or up to the last window that
    is expected to have a row.
    """
    if query.emission.kind is Emits.EARLY:
        return reported.filter(pc.equal(reported[REPORT], "final")).drop_columns(list(ADDED_COLUMNS[Emits.EARLY]))
    if query.emission.kind is not Emits.CHANGES:
        return reported
    changes, expected_ends = reported, _ticks(expected[1])
    slide, ends = query.window.slide_ticks, _ticks(changes["window_end"])
    keys = [changes[2 + index].to_pylist() for index in range(len(query.group_by))]
    texts = list(map(repr, zip(*keys, strict=True))) if keys else [""] * changes.num_rows
    _, groups = np.unique(np.array(texts, object).astype(str), return_inverse=True)
    order = np.lexsort((ends, groups))
    last = int(max(expected_ends.max(initial=0), ends.max(initial=0))) if len(expected_ends) else 0
    following = np.append(ends[order][1:], 0)[: len(order)]
    is_last = np.append(groups[order][1:] != groups[order][:-1], True)[: len(order)]
    upto = np.where(is_last, last + slide, following)
    is_gone = np.asarray(pc.equal(changes[CHANGE], "delete"), np.bool_)[order]
    windows = np.where(is_gone, 0, np.maximum(1, (upto - ends[order]) // slide))
    rows = np.repeat(order, windows)
    moved = slide * (np.arange(len(rows)) - np.repeat(np.cumsum(windows) - windows, windows))
    table = changes.drop_columns(CHANGE).take(pa.array(rows))
    edges = (1,) if query.window.extent_ticks is None else (0, 1)  # landmark windows begin together
    for index in edges:
        field = table.schema.field(index)
        shifted = pa.array(_ticks(changes[index])[rows] + moved).cast(field.type)
        table = table.set_column(index, field, shifted)
    return table


def _ticks(column: pa.ChunkedArray) -> NDArray[np.int64]:
    kind = column.type if pa.types.is_integer(column.type) else pa.timestamp("us", column.type.tz)
    ticks: NDArray[np.int64] = column.cast(kind).cast(pa.int64()).to_numpy()
    return ticks


@dataclass(frozen=True, slots=True)
class Verification:
    """`missing`: rows only Spark has; `extra`: rows only Windloom has; `different`: rows with another value."""

    query: str
    rows: int
    missing: int
    extra: int
    different: int
    first_difference: str
    largest_error: float  # of floating-point sums, relative to Σ|x| of the window

    @property
    def ok(self) -> bool:
        return not (self.missing or self.extra or self.different)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.ok:
            error = f"largest error {self.largest_error:.1e}"
            return f"query '{self.query}': {self.rows:,} rows equal Spark's own window() ({error})"
        return (
            f"query '{self.query}': {self.rows:,} rows compared, {self.missing:,} missing, {self.extra:,} extra,"
            f" {self.different:,} different\nfirst difference: {self.first_difference}"
        )


def time_spark_window(query: Query, streams: Mapping[str, Stream], frames: Mapping[str, DataFrame]) -> float:
    """Return the seconds that Spark takes for the query alone; its answers are computed and discarded."""
    computed = spark_window_frame(query, streams, frames, with_scales=False)
    begun = perf_counter()
    computed.write.format("noop").mode("overwrite").save()
    return perf_counter() - begun


def spark_window_frame(
    query: Query, streams: Mapping[str, Stream], frames: Mapping[str, DataFrame], *, with_scales: bool = True
) -> DataFrame:
    """Return the query as a Spark user writes it; further columns are `__n` and the scale of floating-point answers."""
    streams, frames = with_enriched(query, streams, frames)
    if query.rows is not None:
        row_frames = RowFrames(query.rows, streams, frames)
        if query.rows.columns:
            return row_frames.near() if query.rows.within else row_frames.reported()
        source = row_frames.aggregated()
    elif query.join is not None:
        source = joined(query, streams, frames)
    else:
        source = windowed(query, streams[query.stream], frames[query.stream])
    groups = [F.expr(grouping.expression.sql).alias(f"__g{i}") for i, grouping in enumerate(query.group_by)]
    truths = [_truth(query, aggregate, streams) for aggregate in query.aggregates]
    aggregates = [truth.alias(f"__a{i}") for i, truth in enumerate(truths)]
    extra = [F.count("*").alias("__n")] if with_scales or not aggregates else []
    if with_scales:
        # The scale to which the error of an answer is relative.
        of_pairs = [size_of(aggregate, query) for aggregate in query.aggregates]
        extra += [
            F.expr(size or aggregator_for(aggregate, None).scale_sql(aggregate)).alias(f"__s{i}")
            for i, (aggregate, size) in enumerate(zip(query.aggregates, of_pairs, strict=True))
        ]
    grouped = source.frame.groupBy(source.window, *groups).agg(*aggregates, *extra)
    # Under names that expressions over groups use.
    grouped = grouped.withColumns({"window_start": source.start, "window_end": source.end})
    if query.having is not None:
        grouped = grouped.where(query.having.sql)
    names: list[Column] = [F.col(f"__g{i}").alias(grouping.name) for i, grouping in enumerate(query.group_by)]
    for output in query.outputs:
        sql = output.expression.sql if output.expression is not None else f"__a{output.aggregate}"
        names.append(F.expr(sql).alias(output.name))
    scales = ["__n", *(f"__s{i}" for i in range(len(query.aggregates)))] if with_scales else []
    return grouped.select("window_start", "window_end", *names, *scales)


def verify_query(
    query: Query, streams: Mapping[str, Stream], frames: Mapping[str, DataFrame], answers: pa.Table
) -> Verification:
    """Compare answers with Spark's own answers over the streams that the query reads."""
    _refuse_unverifiable(query)
    with as_windloom_errors(f"query '{query.name}'"):
        expected = spark_window_frame(query, streams, frames).toArrow()
    if query.rows is None or not query.rows.columns:
        return compare(query, expected, rows_of_windows(query, answers, expected))
    # The rows of a row query may repeat and come in any order.
    left, right = (Counter(_texts(table, table.num_columns)) for table in (expected, answers))
    missing, extra = left - right, right - left
    what = ""
    if missing or extra:
        names = ["window_start", "window_end", *(column.name for column in query.rows.columns)]
        values = min(missing or extra)
        shown = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        what = f"missing is {shown}" if missing else f"Spark does not have {shown}"
    return Verification(query.name, expected.num_rows, missing.total(), extra.total(), 0, what, 0.0)


def compare(query: Query, expected: pa.Table, answers: pa.Table) -> Verification:
    """Compare `expected`, from `spark_window_frame`, with `answers`: the same leading columns, rows in any order."""
    keys = 2 + len(query.group_by)
    # The counts, then the scale of each aggregate; by place, because names may be in use.
    scales = keys + len(query.outputs)
    expected, answers = _sorted(expected, keys), _sorted(answers, keys)
    rows = expected.num_rows
    if expected.num_rows != answers.num_rows or not all(
        equal_values(expected[i], answers[i], None).all() for i in range(keys)
    ):
        return _unmatched(query, expected, answers, keys)
    wrong = np.zeros(rows, np.bool_)
    largest, first = 0.0, ""
    count = expected[scales].to_numpy()
    for column, output in enumerate(query.outputs, keys):
        scale, aggregate = None, None
        if output.aggregate is not None:
            aggregate = query.aggregates[output.aggregate]
            scale = expected[scales + 1 + output.aggregate].to_numpy() if aggregate.own is None else None
        if aggregate is not None and aggregate.is_approximate:
            aggregator = aggregator_for(aggregate, None)
            assert isinstance(aggregator, ListAggregator)
            pairs = zip(expected[column].to_pylist(), answers[column].to_pylist(), strict=True)
            same = np.array([aggregator.is_within(aggregate, truth, answer) for truth, answer in pairs], np.bool_)
        else:
            bound, error = _bounds(expected[column], answers[column], scale, count)
            largest = max(largest, error)
            same = equal_values(expected[column], answers[column], bound)
        if not same.all() and not first:
            row = int(np.flatnonzero(~same)[0])
            group = _place(query, _texts(expected.slice(row, 1), keys)[0])
            ours, theirs = (table[column][row].as_py() for table in (answers, expected))
            first = f"{group}: {output.name} = {ours!r}, Spark has {theirs!r}"
        wrong |= ~same
    return Verification(query.name, rows, 0, 0, int(wrong.sum()), first, largest)


def _truth(query: Query, aggregate: Aggregate, streams: Mapping[str, Stream]) -> Column:
    """Return the aggregate as Spark computes it; plain Python computes one that a user defines.

    FIRST and LAST compare the time of the tuple whose column they take: of several such tuples, the latest.
    """
    read = () if aggregate.argument is None else aggregate.argument.columns
    if query.rows is not None:
        (selection,) = query.rows.selections
        every = range(selection.joined)
        numbers = [i for i in every if any(name.startswith(f"{selection.strands[i].alias}.") for name in read)]
        ticks = [f"__t{i}" for i in numbers or every]
        tick = ticks[0] if len(ticks) == 1 else f"greatest({', '.join(ticks)})"
    elif query.join is not None:
        sides = enumerate(query.join.sides)
        own = [f"__t{i}" for i, side in sides if any(column.startswith(f"{side.alias}.") for column in read)]
        tick = own[0] if own else "CAST(NULL AS BIGINT)"
    else:
        tick = tick_sql(streams[query.stream])
    user_defined, sql = aggregate.own, aggregator_for(aggregate, None).truth_sql(aggregate, tick)
    if user_defined is None:
        return F.expr(sql)
    return F.udf(partial(fold, user_defined), user_defined.result.name, useArrow=False)(F.expr(sql))


def _refuse_unverifiable(query: Query) -> None:
    """Raise for a query that has no rows of Spark to be compared with, within a bound."""
    of_rows = query.rows is not None and bool(query.rows.columns)
    if query.emission.kind is Emits.EMPTY or (query.emission.kind is Emits.CHANGES and of_rows):
        raise WindloomError(
            f"query '{query.name}' cannot be verified",
            f"with {query.emission} it does not report exactly the rows that windows have",
            "verify the same query without EMIT",
        )
    places = {f"__a{i}": aggregate for i, aggregate in enumerate(query.aggregates) if aggregate.is_approximate}
    computed = [output.expression for output in query.outputs if output.expression is not None]
    computed += [] if query.having is None else [query.having]
    for expression in computed:
        for name in set(expression.columns) & set(places):
            raise WindloomError(
                f"query '{query.name}' cannot be verified",
                f"it computes with '{places[name]}', which is approximate, so the result has no bound",
                "verify a query that reports the bare aggregate",
            )


def _bounds(
    expected: pa.ChunkedArray, answers: pa.ChunkedArray, scale: NDArray[np.float64] | None, count: NDArray[np.int64]
) -> tuple[NDArray[np.float64] | None, float]:
    """Return the allowed difference of each row, and the largest one found relative to its scale; None means exact."""
    if not pa.types.is_floating(expected.type):
        return None, 0.0
    left, right = _numbers(expected), _numbers(answers)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if scale is None:
            return LOOSE_TOLERANCE * np.maximum(np.abs(left), np.abs(right)), 0.0
        size = np.nan_to_num(np.asarray(scale, np.float64), nan=0.0, posinf=np.finfo(np.float64).max)
        error = np.abs(left - right) / np.where(size > 0, size, 1.0)
        finite = error[np.isfinite(error)]
        return (TOLERANCE + ROUNDING * count) * size, float(finite.max()) if len(finite) else 0.0


def equal_values(left: pa.ChunkedArray, right: pa.ChunkedArray, bound: NDArray[np.float64] | None) -> NDArray[np.bool_]:
    nulls = left.is_null().to_numpy(), right.is_null().to_numpy()
    if pa.types.is_floating(left.type):
        a, b = _numbers(left), _numbers(right)
        with np.errstate(invalid="ignore"):
            equal = (a == b) | (np.isnan(a) & np.isnan(b))
            if bound is not None:
                equal |= np.abs(a - b) <= bound
    elif pa.types.is_null(left.type):
        equal = np.ones(len(left), np.bool_)
    elif pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        equal = np.array([_plain(a) == _plain(b) for a, b in pairs], np.bool_)
    else:
        equal = pc.fill_null(pc.equal(left, right.cast(left.type)), False).to_numpy()
    return np.asarray((nulls[0] & nulls[1]) | (equal & ~nulls[0] & ~nulls[1]), np.bool_)


def _plain(value: object) -> object:
    """Return a nested value in which NaN equals itself."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(field) for name, field in value.items()}
    return "NaN" if isinstance(value, float) and value != value else value


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.asarray(pc.fill_null(column, 0.0).to_numpy(), np.float64)


def _sorted(table: pa.Table, keys: int) -> pa.Table:
    renamed = table.rename_columns([f"c{i}" for i in range(table.num_columns)])  # a query may use any name, even twice
    return renamed.sort_by([(f"c{i}", "ascending") for i in range(keys)])


def _unmatched(query: Query, expected: pa.Table, answers: pa.Table, keys: int) -> Verification:
    left, right = _texts(expected, keys), _texts(answers, keys)
    missing, extra = set(left) - set(right), set(right) - set(left)
    doubled = len(right) - len(set(right))
    what = "a row appears twice"
    if missing:
        what = f"missing is {_place(query, min(missing))}"
    elif extra:
        what = f"Spark does not have {_place(query, min(extra))}"
    return Verification(query.name, len(left), len(missing), len(extra) + doubled, 0, what, 0.0)


def _texts(table: pa.Table, keys: int) -> list[tuple[str, ...]]:
    """Return the window and group of each row as text; NaN equals NaN, and NULL differs from every text."""
    columns = []
    for edge in (table[0], table[1]):
        if not pa.types.is_integer(edge.type):  # positions of tuples stay numbers
            edge = pc.cast(edge, pa.timestamp("us", edge.type.tz and "UTC"))
        columns.append([str(value) for value in edge.to_pylist()])
    columns += [[repr(value) for value in table[i].to_pylist()] for i in range(2, keys)]
    return list(zip(*columns, strict=True))


def _place(query: Query, values: tuple[str, ...]) -> str:
    names = ["window_start", "window_end", *(grouping.name for grouping in query.group_by)]
    return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
