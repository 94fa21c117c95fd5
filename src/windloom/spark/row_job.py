"""What a round takes in for windows of rows: tuples that the frontier has passed get their positions, others wait.

A second Spark job, behind the one that tells the frontiers: the tuples that waited and those of the round, of which
the ripe ones are counted and aggregated natively. A further one brings over the tuples that wait on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windloom.aggregates.arrow import arrow_type, as_array
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.model.time import TICK_MIN
from windloom.model.types import DataType
from windloom.plan.physical import Plan, Scan
from windloom.rounds.positions import Counting, Counts, Positions, RowIntake, counted_scans, counting_of
from windloom.rounds.state import State
from windloom.spark.frames import arrow_frame, ddl_of_columns
from windloom.spark.native import tick_sql
from windloom.spark.partials import scan_frame, unite, without_time
from windloom.spark.positions import POSITION, with_positions

#: Is the tuple of this round, and did not wait?
_FRESH = "__fresh"


@dataclass(frozen=True, slots=True)
class TakenRows:
    """Partials by position, by number of the scan; what became of positions; tuples without a time, by stream."""

    partials: Mapping[int, pa.Table]
    rows: RowIntake
    untimed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the job (`what`): partials of a scan, counts of its keys, its late tuples, or tuples without time."""

    what: str
    frame: DataFrame
    stream: str
    scan: Scan | None = None


def take_rows(
    spark: SparkSession,
    plan: Plan,
    frames: Mapping[str, DataFrame],
    state: State,
    frontiers: Mapping[str, int],
    *,
    skip_untimed: bool,
) -> TakenRows:
    """`frontiers` are those after the round; tuples behind the frontier of their stream before it are late."""
    before = state.positions
    parts: list[_Part] = []
    waiting: dict[str, pa.Table] = {}
    with ExitStack() as scope:
        sources: dict[str, DataFrame] = {}
        for name in dict.fromkeys(scan.stream for scan in counted_scans(plan)):
            source = _source(spark, plan.stream(name), frames.get(name), before.waiting.get(name))
            if source is not None:
                scope.callback(source.persist().unpersist)
                sources[name] = source
                parts += _parts(plan, plan.stream(name), source, before, _passed(state, frontiers, name))
        tables = _run([part.frame for part in parts])
        for name, source in sources.items():
            tick, (closed, frontier) = tick_sql(plan.stream(name)), _passed(state, frontiers, name)
            is_waiting = f"{tick} >= {frontier}L AND ({tick} >= {closed}L OR NOT {_FRESH})"
            waiting[name] = source.where(is_waiting).drop(_FRESH).toArrow()
    return _taken(plan, parts, tables, before, waiting, skip_untimed)


def _passed(state: State, frontiers: Mapping[str, int], stream: str) -> tuple[int, int]:
    """The frontier of a stream before and after the round."""
    return state.frontiers.get(stream, TICK_MIN), frontiers.get(stream, TICK_MIN)


def _source(spark: SparkSession, stream: Stream, fresh: DataFrame | None, waiting: pa.Table | None) -> DataFrame | None:
    """The tuples that waited and those that came, told apart."""
    found = [] if fresh is None else [fresh.withColumn(_FRESH, F.lit(True))]
    if waiting is not None and waiting.num_rows:
        session = spark if fresh is None else fresh.sparkSession  # of a micro-batch, a session of its own
        ddl = ddl_of_columns({name: kind.name for name, kind in stream.columns.items()})
        waited = arrow_frame(session, waiting, ddl).withColumn(_FRESH, F.lit(False))
        found.append(waited if fresh is None else waited.select(*found[0].columns))
    if not found:
        return None
    return found[0] if len(found) == 1 else found[0].unionAll(found[1])


def _parts(
    plan: Plan, stream: Stream, source: DataFrame, before: Positions, passed: tuple[int, int]
) -> Iterator[_Part]:
    tick, (closed, frontier) = tick_sql(stream), passed
    yield _Part("untimed", source.where(f"{tick} IS NULL").selectExpr("count(1) AS n"), stream.name)
    counted: dict[Counting, DataFrame] = {}
    for scan in counted_scans(plan):
        if scan.stream != stream.name:
            continue
        counts = before.counts_of(scan)
        asked = source.where(f"{tick} > {counts.after}L")
        if counting_of(scan) not in counted:
            ripe = asked.where(f"{tick} < {frontier}L AND ({tick} >= {closed}L OR NOT {_FRESH})")
            keys = [key.sql for key in scan.counted_by or ()]
            counted[counting_of(scan)] = _positioned(ripe, stream, scan, counts)
            grouped = ripe.groupBy(*(F.expr(key).alias(f"k{i}") for i, key in enumerate(keys)))
            yield _Part("counts", grouped.agg(F.expr("count(1) AS count")), stream.name, scan)
        yield _Part("partials", scan_frame(scan, stream, counted[counting_of(scan)]), stream.name, scan)
        late = asked.where(f"{tick} < {closed}L AND {_FRESH}")
        wheres = [plan.sets[fed.number].where for fed in scan.feeds]
        if all(where is not None for where in wheres):
            late = late.where(" OR ".join(f"({where})" for where in dict.fromkeys(wheres)))
        yield _Part("late", late.selectExpr("count(1) AS n"), stream.name, scan)


def _positioned(ripe: DataFrame, stream: Stream, scan: Scan, counts: Counts) -> DataFrame:
    """Positions that go on from what is counted."""
    keys = scan.counted_by or ()
    positioned = with_positions(ripe, stream, keys)
    if counts.table is None or not counts.table.num_rows:
        return positioned
    if not keys:
        return positioned.withColumn(POSITION, F.expr(f"{POSITION} + {counts.most}L"))
    kinds = {f"__k{i}": kind for i, kind in enumerate(_key_types(scan, keys))}
    told = counts.table.rename_columns([*kinds, "__counted"])
    ddl = ddl_of_columns({**{name: kind.name for name, kind in kinds.items()}, "__counted": "bigint"})
    known = F.broadcast(arrow_frame(ripe.sparkSession, told, ddl))
    same = [F.expr(f"{key.sql} <=> __k{i}") for i, key in enumerate(keys)]
    joined = positioned.join(known, on=same, how="left")
    position = F.expr(f"{POSITION} + coalesce(__counted, 0L)")
    return joined.withColumn(POSITION, position).drop(*kinds, "__counted")


def _key_types(scan: Scan, keys: Sequence[Expression]) -> list[DataType]:
    return [scan.group_types[scan.group_by.index(key)] for key in keys]


def _run(frames: list[DataFrame]) -> list[pa.Table]:
    """All of them in one job."""
    if not frames:
        return []
    united, slots = unite(frames)
    table = united.toArrow()
    return [table.filter(pc.equal(table["part"], i)).select(list(names)) for i, names in enumerate(slots)]


def _taken(
    plan: Plan,
    parts: list[_Part],
    tables: list[pa.Table],
    before: Positions,
    waiting: Mapping[str, pa.Table],
    skip_untimed: bool,
) -> TakenRows:
    partials: dict[int, pa.Table] = {}
    late: dict[int, int] = {}
    untimed: dict[str, int] = {}
    counts = {counting_of(scan): before.counts_of(scan) for scan in counted_scans(plan)}
    for part, table in zip(parts, tables, strict=True):
        if part.scan is None:
            untimed[part.stream] = table[0][0].as_py()
            if untimed[part.stream] and not skip_untimed:
                raise without_time(plan.stream(part.stream), untimed[part.stream])
        elif part.what == "partials":
            partials[part.scan.number] = table
        elif part.what == "late":
            late[part.scan.number] = table[0][0].as_py()
        else:
            counting = counting_of(part.scan)
            counts[counting] = counts[counting].plus(_counted(part.scan, table))
    return TakenRows(partials, RowIntake(Positions(waiting, counts), late), untimed)


def _counted(scan: Scan, table: pa.Table) -> pa.Table:
    kinds = _key_types(scan, scan.counted_by or ())
    keys = [as_array(column).cast(arrow_type(kind)) for column, kind in zip(table.columns, kinds, strict=False)]
    names = [*(f"k{i}" for i in range(len(keys))), "count"]
    return pa.Table.from_arrays([*keys, as_array(table.columns[-1])], names=names)
