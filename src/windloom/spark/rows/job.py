"""One Spark job makes the rows of all row queries of a round; the rows become blocks.

In a batch run, Spark reads the tuples of strands or, if they are few, they are fetched once for all queries.

For a round of a few thousand tuples, Spark takes longer to plan, compile and shuffle than to compute. So if few tuples
are read, every strand is one partition, nothing is shuffled or broadcast, and expressions are interpreted: bounds of
windows differ in every round, and code for them would be compiled each time. Answers do not depend on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windloom.answers.blocks import Block
from windloom.answers.rows.row_queries import summarised
from windloom.checkpoint.tuple_files import TICK
from windloom.model.expression import Expression
from windloom.model.rows import RowInput
from windloom.model.types import DataType, arrow_type
from windloom.plan.plan import Plan
from windloom.spark.collect import collected, estimated_bytes
from windloom.spark.frames import arrow_frame, slot_names
from windloom.spark.native import instant_sql, tick_sql
from windloom.spark.rows.lifetimes import answers_sql, lifetimes_sql, partials_sql
from windloom.spark.rows.sql import RowQuestion, ends_sql
from windloom.spark.untimed import Untimed
from windloom.state.cells import Cells, merge_all
from windloom.state.tuple_store import ReportedWindows

#: The column that says which query a row of the job belongs to.
_TAG = "__query"
#: Up to this number, the tuples of all strands together count as few.
FEW_TUPLES = 200_000
#: Streams may have few tuples if Spark estimates all of them together at less than this.
_FEW_BYTES = 16 << 20
#: Listing files must not become a separate job, however many there are.
_LARGE = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "10000"}
_SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.shuffle.partitions": "1",
    **_LARGE,
}


@dataclass(slots=True)
class TupleViews:
    """The tuples of the job: temporary views of frames, which exist while the job is analysed.

    `tuples` returns the tuples of a strand with ticks in `[begin, end)`, and a key that is equal for equal tuples.
    """

    spark: SparkSession
    tuples: Callable[[RowInput, int, int], tuple[object, Callable[[], DataFrame]]]
    has_rounds: bool
    _names: dict[object, str] = field(default_factory=dict)
    _scope: ExitStack = field(default_factory=ExitStack)

    def view(self, strand: RowInput, begin: int, end: int) -> str:
        key, make = self.tuples(strand, begin, end)
        if key not in self._names:
            name = f"__windloom_{uuid4().hex}"
            make().createOrReplaceTempView(name)
            self._scope.callback(self.spark.catalog.dropTempView, name)
            self._names[key] = name
        return self._names[key]

    def analysed(self, text: str) -> DataFrame:
        try:
            return self.spark.sql(text)
        finally:
            self._scope.close()
            self._names = {}


def rows_sql(asked: ReportedWindows, views: TupleViews, time: DataType | None) -> str:
    """Return the SQL of `window_start`, `window_end`, and columns `c0, c1, …`; edges are ticks if `time` is None."""

    instant = str if time is None else partial(instant_sql, kind=time)
    planned, question = asked.planned, _question(asked, views, instant)
    if planned.is_aggregated:
        return answers_sql(question, planned)
    return (lifetimes_sql if planned.rows.has_lifetimes else ends_sql)(question, planned.orders)


def _question(asked: ReportedWindows, views: TupleViews, instant: Callable[[str], str] = str) -> RowQuestion:
    span = asked.span
    return RowQuestion(asked.planned.rows, span, views.view, instant, follows=views.has_rounds and span.follows)


def row_summaries(plan: Plan, asked: Sequence[ReportedWindows], views: TupleViews) -> dict[str, Cells]:
    """Return partials of the rows that enter, by the query that aggregates them; there is one job per query."""
    cells_by_query = {}
    for asked_rows in asked:
        frame = views.analysed(partials_sql(_question(asked_rows, views), asked_rows.planned))
        parts = [
            summarised(asked_rows.planned, plan, table)
            for table in collected(frame, f"the partials of '{asked_rows.planned.name}'")
            if table.num_rows
        ]
        if parts:
            cells_by_query[asked_rows.planned.name] = merge_all(parts)
    return cells_by_query


def row_blocks(plan: Plan, asked: Sequence[ReportedWindows], views: TupleViews) -> Iterator[Block]:
    """Yield the rows of all queries that report windows, made by one job."""
    if not asked:
        return
    shapes = [plan.shapes[asked_rows.planned.shape] for asked_rows in asked]
    slots, names, kinds = [], [], dict[str, str]()  # columns of all queries share slots by type
    for shape in shapes:
        fields = [("window_start", shape.time), ("window_end", shape.time)]
        fields += [(f"c{index}", kind) for index, (_, kind) in enumerate(shape.groups + shape.columns)]
        slots.append(slot_names(kind.name for _, kind in fields))
        names.append({slot: name for slot, (name, _) in zip(slots[-1], fields, strict=True)})
        kinds |= {slot: kind.name for slot, (_, kind) in zip(slots[-1], fields, strict=True)}
    parts = []
    for number, (asked_rows, shape) in enumerate(zip(asked, shapes, strict=True)):
        selected = [
            f"{names[number][slot] if slot in names[number] else f'CAST(NULL AS {kinds[slot]})'} AS {slot}"
            for slot in sorted(kinds)
        ]
        text = rows_sql(asked_rows, views, shape.time)
        parts.append(f"(SELECT {number} AS {_TAG}, {', '.join(selected)} FROM ({text}))")
    frame = views.analysed(" UNION ALL ".join(parts))
    shown = ", ".join(f"'{asked_rows.planned.name}'" for asked_rows in asked[:3])
    for table in collected(frame, f"the rows of {shown}"):
        for number, asked_rows in enumerate(asked):
            mine = table if len(asked) == 1 else table.filter(pc.equal(table[_TAG], number))
            if mine.num_rows:
                planned, shape = asked_rows.planned, shapes[number]
                columns = [("window_start", shape.time), ("window_end", shape.time), *shape.groups, *shape.columns]
                # In the types of the shape: Spark returns timestamps in the zone of the session.
                schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns])
                rows = mine.select(list(slots[number])).rename_columns(schema.names).cast(schema)
                yield Block(planned.shape, (planned.name,), np.array([0, rows.num_rows], np.int64), rows)


class JobSessions:
    """Sessions with the functions, views and settings of the user's session, and further settings of their own."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._sessions: dict[bool, SparkSession] = {}

    def of(self, *, is_few: bool) -> SparkSession:
        """Return the session for a job that reads few tuples, or many."""
        if is_few not in self._sessions:
            try:
                java: Any = self._spark._jsparkSession
                session = SparkSession(self._spark.sparkContext, java.cloneSession())
            except Exception:  # a remote session cannot be cloned
                session = self._spark
            else:
                for name, value in (_SMALL if is_few else _LARGE).items():
                    session.conf.set(name, value)
            self._sessions[is_few] = session
        return self._sessions[is_few]

    def forget(self) -> None:
        """Forget the sessions, so that the next job sees what the user has registered since."""
        self._sessions = {}


def batch_views(
    plan: Plan, frames: Mapping[str, DataFrame], asked: Sequence[ReportedWindows], untimed: Untimed
) -> TupleViews:
    """Return views of all tuples that have a time."""
    streams = {stream.name: stream for stream in plan.streams}
    wanted: dict[str, set[str]] = {}
    for asked_rows in asked:
        for strand in asked_rows.planned.rows.strands:
            wanted.setdefault(strand.stream, set()).update(strand.columns)
    tuples = {}
    for name, columns in wanted.items():
        selected = (Expression.of_column(column).sql for column in sorted(columns))
        tuples[name] = frames[name].selectExpr(*selected, f"{tick_sql(streams[name])} AS {TICK}")
    session, fetched = next(iter(tuples.values())).sparkSession, _fetch_few(tuples)
    if fetched is not None:
        session = JobSessions(session).of(is_few=True)
    for name in wanted:
        if fetched is None:
            missing = F.expr(f"count_if({tick_sql(streams[name])} IS NULL)").alias("n")
            untimed.add(name, int(frames[name].select(missing).collect()[0]["n"]))
        else:
            untimed.add(name, fetched[name].column(TICK).null_count)
            ddl = ", ".join(f"{Expression.of_column(column).sql} {kind}" for column, kind in tuples[name].dtypes)
            tuples[name] = arrow_frame(session, fetched[name], ddl).coalesce(1)
        tuples[name] = tuples[name].where(f"{TICK} IS NOT NULL")
    return TupleViews(
        session, lambda strand, begin, end: (strand.stream, lambda: tuples[strand.stream]), has_rounds=False
    )


def _fetch_few(frames: Mapping[str, DataFrame]) -> dict[str, pa.Table] | None:
    """Return the tuples of all streams; None if they may be many."""
    sizes = [estimated_bytes(frame) for frame in frames.values()]
    if any(size is None for size in sizes) or sum(size or 0 for size in sizes) > _FEW_BYTES:
        return None
    tables, left = {}, FEW_TUPLES
    for name, frame in frames.items():
        tables[name] = frame.limit(left + 1).toArrow()  # Spark's estimate may be far off
        left -= tables[name].num_rows
        if left < 0:
            return None
    return tables
