"""A rehearsal at set-up: tiny runs of everything, so that no user waits for kernels to be compiled.

Each area is one function; Numba compiles the kernels that it calls and keeps them on disk. To add an area of new
kernels, add a function and a line in `AREAS`. Runs go through Spark as a user's do, so that kernels are compiled for
the very types they will meet, and so that Spark's JVM has loaded the classes that its archive should hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import windloom
from windloom.aggregates.columns import ComponentColumns, ListColumns, WindowValues, place
from windloom.aggregates.registry import PlannedComponent, neutral
from windloom.answers.joins.fold import fold_sides
from windloom.answers.joins.terms import FoldTypes, ListedRows, SideRows
from windloom.engine.loom import Loom
from windloom.errors import WindloomError
from windloom.kernels.compiling import compilations, compiled_kernels, kept_in, note_path, write_note
from windloom.kernels.families import FAMILIES
from windloom.kernels.folds.registry import ROW_FOLDS
from windloom.kernels.lists.lists import Lists
from windloom.kernels.locate import sliding_lanes
from windloom.kernels.merge import place_starts, places_of
from windloom.kernels.techniques.registry import TECHNIQUES, allowed
from windloom.kernels.tuples.slices import moved, places_by_code
from windloom.kernels.tuples.sorted_tuples import SortedTuples
from windloom.model.aggregate import COUNT_STAR, Component
from windloom.model.expression import Expression
from windloom.model.join import (
    Corner,
    Folded,
    Join,
    KeyPair,
    Link,
    Product,
    Side,
    SideComponent,
    SumOfProducts,
    WindowedStream,
)
from windloom.model.stream import JoinKind
from windloom.model.types import DataType
from windloom.model.windows import TimeWindow
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.cost.papers import cost_name
from windloom.optimizer.trees import contenders
from windloom.optimizer.workloads import zipf_workload
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.session import JavaHome, archive_path, can_archive, draft_of, end_session, find_java, local_session
from windloom.spark.sources.read import synthetic_trades
from windloom.weave.sorted_tuples import merge_keyed

_SUMMED = ("bigint", "double", "decimal(38,2)")
#: Kinds of components with the types of their arguments: one for each family, and for each way of adding up.
_KEPT = (
    *(("sum", kind) for kind in _SUMMED),
    *((extreme, kind) for kind in _SUMMED for extreme in ("min", "max")),
    ("moments", "double"),
    ("bit_or", "bigint"),
    ("bit_xor", "bigint"),
    ("frequencies", "bigint"),
)


def fold_examples() -> None:
    """Fold everything that can be asked for, of two tiny sides, by every technique."""
    components = (
        PlannedComponent(COUNT_STAR, None),
        *(PlannedComponent(Component(kind, Expression.of_column("x")), DataType.parse(name)) for kind, name in _KEPT),
    )
    folded, planned = _folded(components)
    keys, bounds = [pa.array([1, None])], np.array([0, 1, 2])
    rows = SideRows(
        keys, bounds, np.zeros(2, np.int32), tuple(_two_rows(planned_component) for planned_component in components)
    )
    side_components = tuple(planned_component.component for planned_component in components)
    side = Side(WindowedStream("s", TimeWindow(1, 1)), None, None, (Expression.of_column("k"),), side_components)
    types = FoldTypes((components, components), planned)
    for kind, technique in product((JoinKind.INNER, JoinKind.LEFT), ROW_FOLDS):
        join = Join((side, side), (Link(0, 1, kind, (KeyPair(0, 0),)),), (), folded)
        fold_sides(join, types, (rows, rows), 1, (0,), technique)


def _folded(components: tuple[PlannedComponent, ...]) -> tuple[tuple[Folded, ...], tuple[PlannedComponent, ...]]:
    numbers = {named: number + 1 for number, named in enumerate(_KEPT)}
    examples: list[tuple[Folded, PlannedComponent]] = [
        (SideComponent(0, number, (0, 0)), components[number]) for number in range(1, len(components))
    ]
    for name in _SUMMED:
        number_of_sum = numbers["sum", name]
        products = (Product(1, (number_of_sum, number_of_sum)), Product(-1, (number_of_sum, 0)))
        examples.append(
            (SumOfProducts(products, Product(1, (number_of_sum, number_of_sum))), components[number_of_sum])
        )
    for name in _SUMMED:
        low, high = numbers["min", name], numbers["max", name]
        kind = DataType.parse("decimal(38,4)" if name.startswith("decimal") else name)
        result = PlannedComponent(components[high].component, kind)
        examples.append((Corner("-", (0, low, high), (1, low, high), (0, 0)), result))
    return tuple(folded for folded, _ in examples), tuple(planned for _, planned in examples)


def _two_rows(planned: PlannedComponent) -> WindowValues | ListedRows:
    """Return values of a side, the second of them NULL; sums of decimals need more than 64 bits."""
    nothing = neutral(planned, 2)
    if isinstance(nothing, ListColumns):
        cells = Lists(np.array([0, 1, 1]), np.zeros(1, np.int32), np.ones(1, np.int64))
        places = np.arange(2, dtype=np.int32)
        return ListedRows(replace(nothing, cells=cells, dictionary=pa.array([1])), places, places + np.int32(1))
    assert isinstance(nothing, ComponentColumns)
    limbs = tuple(type(limb)(*(column + column.dtype.type(1) for column in limb)) for limb in nothing.limbs)
    return WindowValues(limbs, None if nothing.valid is None else np.array([True, False]), None)


#: How long to wait for the JVM to exit: it writes the archive then, which takes some ten seconds.
_EXIT_SECONDS = 300.0
_EVENTS, _PER_SECOND, _KEYS = 600, 10, 3
_OF_SLIDES = "[RANGE 20 seconds SLIDE 5 seconds]"

_ORDINARY = {
    "sums": f"SELECT symbol, count(*) AS n, sum(volume) AS v, avg(price) AS p FROM trades {_OF_SLIDES} GROUP BY symbol",
    "bounds": f"SELECT symbol, max(price) AS high, min(volume) AS low FROM trades {_OF_SLIDES} GROUP BY symbol",
    "names": f"SELECT max(symbol) AS s, stddev(price) AS risk FROM trades {_OF_SLIDES} WHERE volume > 100",
    "ratio": "SELECT symbol, sum(price * volume) / sum(volume) AS r FROM trades [RANGE 13 s SLIDE 7 s]"
    " WHERE volume > 50 GROUP BY symbol HAVING count(*) > 1",
    "exact": "SELECT sum(cast(price AS decimal(10,2))) AS d FROM trades [TUMBLE 10 s]",
}
_PICKS = {
    "picks": f"SELECT symbol, first(price) AS f, last(price) AS l, max_by(volume, price) AS m"
    f" FROM trades {_OF_SLIDES} GROUP BY symbol",
    "distinct": f"SELECT symbol, count(DISTINCT volume) AS n, median(price) AS m FROM trades {_OF_SLIDES}"
    " GROUP BY symbol",
    "top": f"SELECT top(3, symbol) AS t, quantile(volume, 0.9) AS q FROM trades {_OF_SLIDES}",
    "moments": f"SELECT skewness(price) AS s, corr(price, volume) AS c FROM trades {_OF_SLIDES} GROUP BY symbol",
    "listed": f"SELECT collect_list(price) AS p, collect_set(volume) AS v FROM trades {_OF_SLIDES} GROUP BY symbol",
    "sketch": f"SELECT approx_count_distinct(volume) AS n, frequent(3, symbol) AS f FROM trades {_OF_SLIDES}",
}
_KINDS = {
    "so_far": "SELECT symbol, sum(volume) AS v, max(price) AS p FROM trades [LANDMARK SLIDE 10 s] GROUP BY symbol",
    "rows": "SELECT avg(price) AS p FROM trades [ROWS 50 SLIDE 10]",
    "sessions": "SELECT symbol, sum(volume) AS v FROM trades [SESSION GAP 1 s] GROUP BY symbol",
    "own_rows": "SELECT symbol, sum(volume) AS v FROM trades [PARTITION BY symbol ROWS 20 SLIDE 5] GROUP BY symbol",
}
_BOUNDS: dict[str, tuple[float, ...]] = {"volume": (100, 200, 300, 400), "price": (80, 90, 110, 120)}
_UNEVEN_BOUNDS: dict[str, tuple[float, ...]] = {
    "volume": (100, 101, 300, 10_000_000),
    "price": (80, 80.5, 110, 10_000_000),
}
#: Aggregates that the driver can project itself, and aggregates that it cannot.
_SIGNED = (
    "count(*) AS n, sum(volume) AS v, avg(price) AS p, max(price) AS high, sum(volume) FILTER (WHERE price > 100) AS f",
    "stddev(price) AS r, max(symbol) AS s, bit_or(volume) AS b, bit_xor(volume) AS x, last(price) AS l,"
    " sum(cast(price AS decimal(10,2))) AS d",
)
#: Aggregates for which all predicates are in one table.
_LOOKED_UP = "count(*) AS n, max(price) AS high"
_JOINED = f"FROM trades {_OF_SLIDES} a JOIN trades {_OF_SLIDES} b ON a.symbol = b.symbol GROUP BY a.symbol"
_JOINS = {
    "whole": f"SELECT a.symbol, count(*) AS n, sum(a.volume * b.volume) AS v {_JOINED}",
    "large": f"SELECT a.symbol, sum(a.volume * 10000000000) AS v {_JOINED}",
    "others": f"SELECT a.symbol, sum(a.price * b.volume) AS p, max(b.price) AS high {_JOINED}",
}


#: Joins that are folded straight from tuples.
_TUPLE_JOINS = {
    name: f"SELECT {group}count(*) AS n, sum(a.volume * b.volume) AS v FROM trades {_OF_SLIDES} a"
    f" JOIN trades {_OF_SLIDES} b ON a.volume = b.volume{rest}"
    for name, group, rest in (("of_all", "", ""), ("by_symbol", "a.symbol, ", " WHERE a.price > 0 GROUP BY a.symbol"))
}


def ordinary_queries(spark: SparkSession) -> None:
    """Run the queries that most catalogs have, over files."""
    with TemporaryDirectory(prefix="windloom-") as folder:
        trades = _trades(spark)
        trades.write.csv(f"{folder}/csv", header=True)
        trades.write.parquet(f"{folder}/parquet")
        spark.read.schema("ts timestamp, symbol string, price double, volume bigint").csv(
            f"{folder}/csv", header=True
        ).count()
        loom = _loom(spark.read.parquet(f"{folder}/parquet"), _ORDINARY)
        loom.table("wide", by="symbol", queries=["sums", "bounds"])
        results = loom.run(out=f"{folder}/out")
        results.table("wide", at="every")
        results["ratio"].orderBy("window_start").limit(5).toArrow()


def lists_of_values(spark: SparkSession) -> None:
    """Run aggregates over lists of values, from Spark and from files that the driver reads itself."""
    _loom(_trades(spark), _PICKS).run()
    with TemporaryDirectory(prefix="windloom-") as folder:
        _trades(spark).write.parquet(f"{folder}/parquet")
        _loom(spark.read.parquet(f"{folder}/parquet"), _PICKS).run()


def many_predicates(spark: SparkSession) -> None:
    """Run enough tuples and predicates that sets are rolled up from signatures."""
    with TemporaryDirectory(prefix="windloom-") as folder:
        synthetic_trades(spark, 40 * _EVENTS, 40 * _PER_SECOND, _KEYS).write.parquet(f"{folder}/parquet")
        for asked, bounds in (
            *((asked, _BOUNDS) for asked in _SIGNED),
            (_LOOKED_UP, _BOUNDS),
            (_LOOKED_UP, _UNEVEN_BOUNDS),
        ):
            conditions = [f"{column} > {bound}" for column, column_bounds in bounds.items() for bound in column_bounds]
            select = f"SELECT symbol, {asked} FROM trades [TUMBLE 30 s] WHERE {{}} GROUP BY symbol"
            queries = {f"q{number}": select.format(condition) for number, condition in enumerate(conditions)}
            _loom(spark.read.parquet(f"{folder}/parquet"), queries).run(intake="woven")


def kinds_of_windows(spark: SparkSession) -> None:
    _loom(_trades(spark), _KINDS).run()
    _loom(_trades(spark), _ORDINARY).run(slicing="cutty")


def rounds_of_streams(spark: SparkSession) -> None:
    """Run two rounds, so that the second one starts with a state."""
    with TemporaryDirectory(prefix="windloom-") as folder:
        trades = _trades(spark)
        trades.repartition(2).write.parquet(f"{folder}/in")
        reader = spark.readStream.schema(trades.schema).option("maxFilesPerTrigger", 1)
        handle = _loom(reader.parquet(f"{folder}/in"), {**_ORDINARY, "distinct": _PICKS["distinct"]}).start(
            path=Path(folder, "out"), checkpoint=Path(folder, "c"), trigger={"availableNow": True}, finish=True
        )
        handle.await_termination()


def tuples_in_order(spark: SparkSession) -> None:
    """Sort tuples directly, because a run sorts only if there are many."""
    for rows in (np.empty(0, np.int32), np.arange(2, dtype=np.int32)):
        places = places_by_code(rows, np.arange(2, dtype=np.int32), 2)
        for kind in (np.int64, np.int32, np.float64, np.bool_):
            moved(np.zeros(2, kind), places)


def techniques(spark: SparkSession) -> None:
    """Run the techniques that the cost model may choose, on every family of fixed size."""
    constants = load_constants()
    lanes = sliding_lanes(8, [2, 5])
    bounds, queries = np.array([0, 8]), np.arange(2)
    for family in FAMILIES.values():
        if family.is_list:
            continue
        cells = family.of(*(np.ones(8, kind) for kind in family.kinds))
        contending = contenders(constants, family)
        for name in (technique for technique in allowed(family) if cost_name(technique, family) in contending):
            TECHNIQUES[name].evaluate(cells, bounds, lanes, queries, family.empty(len(lanes)))


def portions(spark: SparkSession) -> None:
    """Place cells of two parts, the second after the first, as they come from large files."""
    starts, bounds, groups = np.arange(2), np.array([0, 2]), np.zeros(1, np.int64)
    followed = places_of([starts, starts + 1], [bounds, bounds], [groups, groups], 1)
    assert followed is not None
    _, places = followed
    place_starts(starts, places[0].bounds, places[0].first, np.empty(3, np.int64))
    for family in FAMILIES.values():
        if not family.is_list:
            place([ComponentColumns((family.of(*(np.ones(2, kind) for kind in family.kinds)),))] * 2, places, 3)


def folds(spark: SparkSession) -> None:
    """Run every kernel that folds sides of joins."""
    fold_examples()
    _loom(_trades(spark), _JOINS).run(fold="slice_matrix")
    with TemporaryDirectory(prefix="windloom-") as folder:
        # Tuples of files are folded without cells, and tuples of two portions are merged first.
        _trades(spark).write.parquet(f"{folder}/parquet")
        results = _loom(spark.read.parquet(f"{folder}/parquet"), _TUPLE_JOINS).run(intake="woven", fold="slice_matrix")
        assert all(join.tuples for join in results.plan.joins)
    starts = np.array([1]), np.array([0])  # the second portion comes before the first
    merge_keyed(
        [
            {(0, 0): SortedTuples(pa.array([1]), np.array([0, 1]), np.zeros((1, 2), np.int32), start, (), (0,))}
            for start in starts
        ]
    )


def sharing(spark: SparkSession) -> None:
    """Plan windows that do not line up, with and without a search."""
    loom = _loom(_trades(spark), {})
    for number, window in enumerate(zipf_workload(12, 1_000, 20, 0.6, 1, 1_000_000)):
        loom.query(f"q{number}", f"SELECT symbol, max(price) AS p FROM trades {window} GROUP BY symbol")
    for strategy in ("auto", "weave_share", "reweave"):
        loom.plan(strategy)


#: The first area is what nearly every process needs: its kernels are loaded while a session starts.
AREAS: tuple[tuple[str, Callable[[SparkSession], None]], ...] = (
    ("sums, averages, extrema", ordinary_queries),
    ("picks and lists of values", lists_of_values),
    ("many predicates", many_predicates),
    ("kinds of windows", kinds_of_windows),
    ("tuples in order", tuples_in_order),
    ("techniques", techniques),
    ("portions of files", portions),
    ("folds of joins", folds),
    ("sharing", sharing),
    ("streams", rounds_of_streams),
)


def prepare(say: Callable[[str], None]) -> None:
    """Compile what is not compiled yet, make Spark's archive if there is none, and report what is done and where."""
    java = find_java()
    archive = archive_path(java)
    wants_archive = not archive.is_file() and can_archive(java)
    if note_path().is_file() and not wants_archive:
        say(f"kernels are compiled already{_of_archive(java)}")
        return
    if not kept_in():
        raise WindloomError(
            "compiled kernels cannot be kept",
            "neither the folder of the package nor the user's cache is writable",
            "set NUMBA_CACHE_DIR to a writable folder, here and for executors; without it every process compiles again",
        )
    say("starting Spark for a rehearsal (about a minute in all)")
    with draft_of(archive) as draft:
        session = local_session(cores=2, app="windloom rehearsal", archive_to=draft if wants_archive else None)
        rehearse(session, say)
        if wants_archive:
            say("writing an archive of Spark's classes")
        end_session(session, _EXIT_SECONDS)
    folder = os.path.commonpath(kept_in())
    if not Path(folder).is_relative_to(Path(windloom.__file__).parent):
        folder = f"{folder}, because NUMBA_CACHE_DIR names it or the package is not writable"
    say(f"{compilations()} kernels compiled, kept in {folder}{_of_archive(java)}")


def rehearse(session: SparkSession, say: Callable[[str], None]) -> None:
    """Run every area, and write down the kernels of the first."""
    for number, (name, area) in enumerate(AREAS):
        say(f"compiling kernels: {name} ({number + 1} of {len(AREAS)})")
        area(session)
        if number == 0:
            usual = compiled_kernels()
    write_note(usual)  # last: with the note, the rehearsal counts as done


def _of_archive(java: JavaHome) -> str:
    if archive_path(java).is_file():
        return "; Spark starts from an archive of its classes"
    return f"; Spark starts without an archive of its classes, which Java {java.major} did not write"


def _trades(spark: SparkSession) -> DataFrame:
    return synthetic_trades(spark, _EVENTS, _PER_SECOND, _KEYS)


def _loom(trades: DataFrame, queries: dict[str, str]) -> Loom:
    loom = Loom(trades.sparkSession)
    loom.stream("trades", trades, time="ts")
    for name, text in queries.items():
        loom.query(name, text)
    return loom
