"""The results of a run: a table for each query, as a Spark DataFrame or an Arrow table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windloom.answers.blocks import Block
from windloom.answers.presentation import presented
from windloom.answers.wide import WidePart, wide_over_time
from windloom.engine.views import AnswerViews, facts_table
from windloom.errors import WindloomError, near_names
from windloom.explain.analysis import MeasuredRun, analysis, analysis_text
from windloom.model.clauses import ADDED_COLUMNS, Emits
from windloom.model.query import Query
from windloom.model.stream import Version
from windloom.model.types import arrow_type, as_array
from windloom.optimizer.facts import PlanningFacts
from windloom.plan.outputs import why_spark
from windloom.plan.plan import Plan
from windloom.sinks.round_rows import reported
from windloom.sinks.tables import PORTION_ROWS, PORTION_SHAPES, RowFinisher, plain
from windloom.spark.api import DataFrame, SparkSession, StructType
from windloom.spark.collect import collected
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import arrow_frame, ddl_of, ddl_of_columns, finish, presented_frame, session_zone
from windloom.spark.sources.read import local_path
from windloom.state.cells import concat_keys, number_groups
from windloom.state.state import State
from windloom.statistics.estimates import Estimates, Memory, estimates_of
from windloom.statistics.observations import RoundObserved
from windloom.statistics.set_statistics import Ongoing

if TYPE_CHECKING:
    from windloom.checkpoint.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True)
class RunStats:
    """Figures of one run: `events` counts the tuples aggregated into partials, `results` the rows before any HAVING.

    `untimed` counts rows without a usable time, which are in no window.
    """

    events: int
    partials: int
    results: int
    late_partly: int
    late_dropped: int
    untimed: int
    queries: int
    trees: int
    strategy: str
    placement: str
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())

    def __getitem__(self, name: str) -> Any:
        return self.as_dict()[name]

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": dict(self.seconds), "total_seconds": self.total_seconds}


class UnknownQueryError(WindloomError, KeyError):
    """A name that is not among the queries. It is also a KeyError, because results are a mapping."""


def unknown_query(name: str, known: list[str]) -> UnknownQueryError:
    count = "there is 1 query" if len(known) == 1 else f"there are {len(known):,} queries"
    return UnknownQueryError(f"unknown query '{name}'", count, near_names(name, known))


def unknown_table(name: str, known: list[str]) -> WindloomError:
    return WindloomError(
        f"there is no table '{name}'",
        f"declared are: {', '.join(known) or 'none'}",
        near_names(name, known) if known else "declare it: loom.table(name, by=…, queries=[…])",
    )


class Results(AnswerViews, Mapping[str, DataFrame]):
    """Answers by query name. `results["q"]` is a Spark DataFrame, `results.arrow("q")` the same as an Arrow table."""

    def __init__(self, spark: SparkSession, plan: Plan, stats: RunStats) -> None:
        self._spark = spark
        self.plan = plan
        self.stats = stats
        self.observed = RoundObserved()  # used to predict later plans
        self.measured = MeasuredRun()
        self.untimed: Mapping[str, int] = {}  # by stream, its rows without a usable time
        self.versions: Mapping[str, Version] = {}  # of the relations that the run has read
        self.relations: Mapping[str, DataFrame] = {}  # the rows of these versions
        self.tables: Mapping[str, WideTable] = {}  # the wide tables that were declared
        self.schemas: Mapping[str, StructType] = {}  # of queries that were given as DataFrames
        self._shape_of = {planned.name: planned.shape for planned in plan.queries}

    def __iter__(self) -> Iterator[str]:
        return iter(self._shape_of)

    def __len__(self) -> int:
        return len(self._shape_of)

    def __contains__(self, name: object) -> bool:
        return name in self._shape_of

    def __getitem__(self, name: str) -> DataFrame:
        """Return what the text of a query selects: with a window in brackets, all columns of its rows."""
        frame = presented_frame(self.frame_of_rows(name), self._query(name))
        return frame.toDF(*self.schemas[name].names) if name in self.schemas else frame

    def arrow(self, name: str) -> pa.Table:
        """Return what the text of a query selects, as `results[name]` does."""
        rows = presented(self.rows(name), self._query(name))
        return rows.rename_columns(self.schemas[name].names) if name in self.schemas else rows

    @property
    def zone(self) -> str:
        return session_zone(self._spark)

    def frame_of_rows(self, name: str) -> DataFrame:
        """Return the rows of one query, as `rows` does."""
        raise NotImplementedError

    def rows(self, name: str) -> pa.Table:
        """Return the rows of one query, whatever it selects: window_start, window_end, groupings, outputs."""
        with as_windloom_errors(f"query '{name}'"):
            return with_utc(pa.concat_tables(collected(self.frame_of_rows(name), f"query '{name}'")))

    def _query(self, name: str) -> Query:
        self._shape(name)
        return self.plan.query(name).query

    def grouping(self, name: str) -> list[str]:
        return [grouping.name for grouping in self.plan.query(name).query.group_by]

    def table(self, name: str, at: str = "latest") -> pa.Table:
        """Return a wide table that was declared with `loom.table`: the latest window per query, one row per key.

        With `at="every"`, there is a row per key and instant at which a window of one of the queries ends.
        """
        if name not in self.tables:
            raise unknown_table(name, list(self.tables))
        return self.tables[name].rows(self._coded_rows if at == "every" else self.rows, at)

    def _coded_rows(self, name: str) -> pa.Table:
        """Return the rows of a query, with groups as dictionaries if they are there already."""
        return self.rows(name)

    def analyze(self, format: str = "text") -> str:
        """Show where the time of the run went; `format` is "text" or "json".

        By stage: seconds, those of the processor, and how much of the cores was idle. By tree: what went in, what came
        out, and the seconds of its answers.
        """
        if format not in ("text", "json"):
            raise WindloomError(f"unknown format '{format}'", "a run is text or data", "use 'text' or 'json'")
        found = analysis(self.plan, self.measured)
        return json.dumps(found, indent=2, ensure_ascii=False) if format == "json" else analysis_text(found)

    def _shape(self, name: str) -> int:
        if name not in self._shape_of:
            raise unknown_query(name, list(self))
        return self._shape_of[name]

    def __repr__(self) -> str:
        stats = self.stats
        return (
            f"<Results of {stats.queries:,} queries: {stats.results:,} rows from {stats.partials:,} partials"
            f" of {stats.events:,} events in {stats.total_seconds:.2f} s ({stats.placement})>"
        )

    def _repr_html_(self) -> str:
        names = list(self)
        shown = ", ".join(names[:12]) + (f" and {len(names) - 12:,} more" if len(names) > 12 else "")
        return facts_table("Windloom run", {"answers of": shown, **self.stats.as_dict()})


class DriverResults(Results):
    """Answers held by the driver as Arrow blocks."""

    def __init__(
        self, spark: SparkSession, plan: Plan, stats: RunStats, blocks: list[Block], state: State | None = None
    ) -> None:
        """`state` is the state that the run left; queries that report changes need it."""
        super().__init__(spark, plan, stats)
        self._state = State() if state is None else state
        self._finishing = RowFinisher(spark)
        self._by_spark: dict[str, pa.Table] = {}  # answers of queries that only Spark could evaluate
        self._pieces: dict[str, list[tuple[Block, int]]] = {}
        for block in blocks:
            for index, name in enumerate(block.queries):
                self._pieces.setdefault(name, []).append((block, index))

    def __getitem__(self, name: str) -> DataFrame:
        if name in self.schemas:  # also what cannot be NULL is as in the DataFrame
            return arrow_frame(self._spark, self.arrow(name), self.schemas[name])
        return super().__getitem__(name)

    def frame_of_rows(self, name: str) -> DataFrame:
        shape = self.plan.shapes[self._shape(name)]
        answer = self._here(name) if shape.emits not in ADDED_COLUMNS else self.rows(name)
        if answer is not None:
            return arrow_frame(self._spark, answer, ddl_of_columns(self._finishing.types(shape)))
        return finish(arrow_frame(self._spark, plain(self._table(name)), ddl_of(shape)), shape)

    def rows(self, name: str) -> pa.Table:
        return reported(self._finished(name), self.plan.query(name), self.plan.shapes[self._shape(name)], self._state)

    def _coded_rows(self, name: str) -> pa.Table:
        slices = self._slices(name) if self._is_as_made(name) else []
        return pa.concat_tables(slices) if slices else self.rows(name)

    def _is_as_made(self, name: str) -> bool:
        """Return whether the rows of a query are those that the step has made, as they are."""
        shape = self.plan.shapes[self._shape(name)]
        return shape.select is None and shape.having is None and shape.emits is Emits.FINAL

    def _finished(self, name: str) -> pa.Table:
        if self._is_as_made(name):
            # Shares the memory of the blocks, except for groups.
            return plain(self._table(name))
        answer = self._here(name)
        if answer is not None:
            return answer
        shape = self.plan.shapes[self._shape(name)]
        if why_spark(shape) is None:  # a value needs Spark, which may refuse it: asked for this query alone
            return self._finishing.by_spark({name: (shape, self._table(name))})[name]
        # Runs one job for the query and for other queries that may be asked for later.
        shapes = {query: self.plan.shapes[number] for query, number in self._shape_of.items()}
        others = [query for query in self if query != name and query not in self._by_spark and why_spark(shapes[query])]
        asked = {name: (shapes[name], self._table(name))}
        for other in others:
            rows = sum(table.num_rows for _, table in asked.values())
            if rows >= PORTION_ROWS or len(asked) == PORTION_SHAPES:
                break
            asked[other] = (shapes[other], self._table(other))
        try:
            self._by_spark.update(self._finishing.by_spark(asked))
        except WindloomError:  # another query may be at fault; it raises when it is asked for
            self._by_spark.update(self._finishing.by_spark({name: asked[name]}))
        return self._by_spark[name]

    def _here(self, name: str) -> pa.Table | None:
        """Return the answer, if no Spark job is needed for it any more; otherwise None."""
        if name in self._by_spark:
            return self._by_spark[name]
        return self._finishing.here(self.plan.shapes[self._shape(name)], self._table(name))

    def _slices(self, name: str) -> list[pa.Table]:
        return [
            block.table.slice(block.bounds[i], block.bounds[i + 1] - block.bounds[i])
            for block, i in self._pieces.get(name, [])
        ]

    def _table(self, name: str) -> pa.Table:
        """Return the rows of a query, with the columns that the step makes."""
        shape = self.plan.shapes[self._shape(name)]
        pieces = self._slices(name)
        if len(pieces) == 1:
            return pieces[0]
        columns = [("window_start", shape.time), ("window_end", shape.time), *shape.groups, *shape.columns]
        schema = pa.schema([(column, arrow_type(kind)) for column, kind in columns])
        return pa.concat_tables([piece.cast(schema) for piece in pieces]) if pieces else schema.empty_table()


class StoredResults(Results):
    """Answers that a run wrote to Parquet."""

    def __init__(self, spark: SparkSession, plan: Plan, stats: RunStats, tables: Sequence[Path]) -> None:
        super().__init__(spark, plan, stats)
        self._tables = tables  # by number of the shape

    def frame_of_rows(self, name: str) -> DataFrame:
        rows = self._spark.read.parquet(local_path(self._tables[self._shape(name)]))
        return rows.where(rows["query"] == name).drop("query")


def with_utc(table: pa.Table) -> pa.Table:
    """Return the rows with instants in UTC, and with all columns nullable.

    Spark returns timestamps in the zone of the session, and marks expressions that cannot be NULL; answers must not
    depend on either.
    """
    fields = [
        pa.field(
            column.name,
            pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(column.type) and column.type.tz else column.type,
        )
        for column in table.schema
    ]
    return table.cast(pa.schema(fields))


# Wide tables: one row per key, the answers of many queries as columns, all as of one common watermark.


@dataclass(frozen=True, slots=True)
class WideTable:
    """`by` are the grouping columns, which all queries have."""

    name: str
    by: tuple[str, ...]
    queries: tuple[Query, ...]

    @classmethod
    def of(cls, name: str, by: str | Sequence[str], names: Sequence[str], known: Mapping[str, Query]) -> WideTable:
        keys = (by,) if isinstance(by, str) else tuple(by)
        if not names:
            raise WindloomError(f"the table '{name}' has no queries", hint="name them: queries=['avg_1h', 'max_1d']")
        for query in names:
            if query not in known:
                raise unknown_query(query, list(known))
            _check(name, keys, known[query])
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise WindloomError(f"the table '{name}' names query '{twice}' twice", hint="name it once")
        table = cls(name, keys, tuple(known[query] for query in names))
        columns = ["watermark", *keys, *(column for query in table.queries for column in table.columns(query).values())]
        for column in columns:
            if columns.count(column) > 1:
                raise WindloomError(
                    f"the table '{name}' would have two columns '{column}'",
                    hint="give the query or its column another name",
                )
        return table

    def columns(self, query: Query) -> dict[str, str]:
        """Return the query's output columns, and their names in the table; a single column is named after it."""
        names = [output.name for output in query.outputs]
        return {name: query.name if len(names) == 1 else f"{query.name}_{name}" for name in names}

    def rows(self, answers: Callable[[str], pa.Table], at: str, watermark: int | None = None) -> pa.Table:
        """Return the table as of `watermark`, a tick: for every query, the window that ends last at or before it.

        A key is in the table if it has an answer in one of these windows; for a query without an answer there is NULL.
        The default watermark is the latest start of a window that holds a tuple: no tuple before it is missing. If `at`
        is "every", the table has the rows of all instants up to the watermark, by default of all there are.
        """
        if at not in ("latest", "every"):
            raise WindloomError(
                f"the table '{self.name}' cannot be read at={at!r}",
                "it has a row per key at the latest instant, or at every instant at which a window ends",
                "use at='latest' or at='every'",
            )
        tables = {query.name: answers(query.name) for query in self.queries}
        if at == "every":
            parts = [WidePart(tables[query.name], query.window, self.columns(query)) for query in self.queries]
            return wide_over_time(parts, self.by, "watermark", watermark)
        if watermark is None:
            starts = [pc.max(table["window_start"].cast(pa.int64())).as_py() for table in tables.values()]
            watermark = max((start for start in starts if start is not None), default=0)
        windows = []
        for query in self.queries:
            rows, window = tables[query.name], query.window
            end = window.last_start(watermark - window.range_ticks) + window.range_ticks
            windows.append(rows.filter(pc.equal(rows["window_end"].cast(pa.int64()), end)))
        return self._joined(windows, watermark, next(iter(tables.values())).schema.field("window_end").type)

    def _joined(self, tables: Sequence[pa.Table], watermark: int, instant: pa.DataType) -> pa.Table:
        # Arrow's join is not used: for it, NULL and NaN never equal themselves.
        keys = [[as_array(table[name]) for name in self.by] for table in tables]
        together = keys[0]
        for more in keys[1:]:
            together = concat_keys(together, more)
        numbers, distinct = number_groups(together, sum(table.num_rows for table in tables))
        count = len(distinct[0]) if distinct else int(any(table.num_rows for table in tables))
        arrays = [pa.array(np.full(count, watermark, np.int64)).cast(instant), *distinct]
        names = ["watermark", *self.by]
        first = 0
        for query, table in zip(self.queries, tables, strict=True):
            row_of_group = np.full(count, -1, np.int64)
            row_of_group[numbers[first : first + table.num_rows]] = np.arange(table.num_rows)
            first += table.num_rows
            indices = pa.array(row_of_group, mask=row_of_group < 0)
            for column, name in self.columns(query).items():
                arrays.append(as_array(table[column]).take(indices))
                names.append(name)
        return pa.Table.from_arrays(arrays, names=names)


def _check(name: str, by: tuple[str, ...], query: Query) -> None:
    groups = tuple(grouping.name for grouping in query.group_by)
    if sorted(groups) != sorted(by):
        raise WindloomError(
            f"query '{query.name}' cannot be part of the table '{name}'",
            f"it is grouped by {', '.join(groups) or 'nothing'}, the table by {', '.join(by) or 'nothing'}",
            "a row of the table is a group of each of its queries, so group them by the same columns",
        )
    if query.emission.kind in ADDED_COLUMNS:
        raise WindloomError(
            f"query '{query.name}' cannot be part of the table '{name}'",
            f"with {query.emission}, a window does not have one row of every group",
            "use the same query without EMIT",
        )
    if query.window.wide_obstacle is not None:
        raise WindloomError(
            f"query '{query.name}' cannot be part of the table '{name}'",
            query.window.wide_obstacle,
            "use windows of time",
        )


class ObservedData:
    """A loom's observations of its data, from its own runs or from the rounds of a stream.

    A run has seen all data, so it replaces earlier runs. Sets that it did not have keep their estimates.
    """

    def __init__(self) -> None:
        self.estimates = Estimates()
        self.ongoing: Ongoing | None = None
        self.versions: dict[str, Version] = {}  # versions of relations that the last run has read
        self.rounds: list[RoundObserved] = []  # rounds of the stream that was learned from

    @property
    def known(self) -> PlanningFacts:
        return PlanningFacts(estimates=self.estimates, ongoing=self.ongoing, versions=self.versions)

    def add(self, results: Results) -> bool:
        """Keep rates, groups and sizes of relations as a run observed them; return whether any of it is new."""
        estimates = estimates_of(results.observed).before(self.estimates)
        versions = {**self.versions, **results.versions}
        if (estimates, versions) == (self.estimates, self.versions):
            return False
        self.estimates, self.versions = estimates, versions
        return True

    def read(self, checkpoint: Checkpoint, place: str) -> list[str]:
        """Read what the last rounds of a stream have observed; return files that were left out as damaged."""
        from windloom.checkpoint.checkpoint import LEAST_COMMITS
        from windloom.explain.charts import damaged_text

        memory, newest = Memory(), checkpoint.newest_plan()
        self.rounds = checkpoint.recent_observed(LEAST_COMMITS)
        if checkpoint.damaged and not self.rounds:
            raise WindloomError(
                f"nothing can be learned from '{place}'",
                damaged_text(list(checkpoint.damaged)),
                "plan without it, or let the stream run a round",
            )
        for observed in self.rounds:
            memory.add(observed)
        self.estimates = memory.estimates(trends=True).before(self.estimates)
        self.ongoing = None if newest is None else newest.ongoing
        return list(checkpoint.damaged)
