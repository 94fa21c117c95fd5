"""Native partial aggregation: every scan of a plan in one Spark job.

With one part its columns are the job's columns. Several parts are a union: a column `part` says which, and their
columns share slots by type, so that the union is as wide as the widest part and not as all of them together.

A round also needs the smallest and largest event time of every stream, of tuples that no query wants included: scans
that see all tuples carry it beside their partials, a stream that has none of these gets a part of its own, its clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.plan.physical import Plan, Scan
from windloom.spark.lists import summarised
from windloom.spark.native import input_sql, signature_sql, signed_bits, slice_sql, tick_sql
from windloom.spark.positions import POSITION, with_positions
from windloom.spark.slots import slot_names
from windloom.spark.unions import union_all


@dataclass(frozen=True, slots=True)
class Partials:
    """The job, not yet run. `slots[i]` names the job's columns that hold part i's columns, in order.

    Parts are the plan's scans by number, then clocks. `clocks` maps a stream to the part that tells its time, in which
    the smallest and the largest tick are the last two columns.
    """

    frame: DataFrame
    slots: tuple[tuple[str, ...], ...]
    scans: int
    clocks: Mapping[str, int] = field(default_factory=dict)

    @property
    def scan_slots(self) -> tuple[tuple[str, ...], ...]:
        """By number of the scan: the columns of its partials, without those of a clock."""
        clocks = set(self.clocks.values())
        return tuple(slots[:-2] if number in clocks else slots for number, slots in enumerate(self.slots[: self.scans]))

    def group_hash(self, plan: Plan) -> str:
        """SQL that is equal for all partials that may be rolled up to one group of one set."""
        cases = []
        for scan in plan.scans:
            keys = self.slots[scan.number][1 + scan.words :]
            groups = ", ".join(keys[i] for i in scan.common_groups)
            cases.append(f"WHEN {scan.number} THEN " + (f"hash({groups})" if groups else "0"))
        return f"CASE part {' '.join(cases)} END"

    def split(self, table: pa.Table) -> dict[int, pa.Table]:
        """Each scan's own partials of a table with the job's columns."""
        return {number: self._part(table, number).select(list(slots)) for number, slots in enumerate(self.scan_slots)}

    def largest_ticks(self, table: pa.Table) -> dict[str, int]:
        """The largest event tick of every stream that has tuples with a time in this table."""
        return self._ticks(table, -1, pc.max)

    def smallest_ticks(self, table: pa.Table) -> dict[str, int]:
        """The smallest one."""
        return self._ticks(table, -2, pc.min)

    def _ticks(self, table: pa.Table, place: int, choose: Callable[[pa.ChunkedArray], pa.Scalar]) -> dict[str, int]:
        found = {
            stream: choose(self._part(table, part)[self.slots[part][place]]).as_py()
            for stream, part in self.clocks.items()
        }
        return {stream: tick for stream, tick in found.items() if tick is not None}

    def clock_sql(self) -> dict[str, str]:
        """Aggregates over the job's rows that tell the ticks of every stream: `first NAME` and `seen NAME`."""
        return {
            f"{name} {stream}": f"{function}(if(part = {part}, {self.slots[part][place]}, NULL))"
            for stream, part in self.clocks.items()
            for name, function, place in (("first", "min", -2), ("seen", "max", -1))
        }

    def _part(self, table: pa.Table, number: int) -> pa.Table:
        return table if len(self.slots) == 1 else table.filter(pc.equal(table["part"], number))


def told_ticks(partials: Partials, row: Mapping[str, int | None]) -> tuple[dict[str, int], dict[str, int]]:
    """The largest and the smallest tick of every stream, from a row of `clock_sql`."""
    found: list[dict[str, int]] = []
    for name in ("seen", "first"):
        ticks = {stream: row[f"{name} {stream}"] for stream in partials.clocks}
        found.append({stream: tick for stream, tick in ticks.items() if tick is not None})
    return found[0], found[1]


def partials_of(
    plan: Plan, frames: Mapping[str, DataFrame], timed_streams: Iterable[Stream] = (), *, rows_later: bool = False
) -> Partials:
    """The job for a plan; it also tells the largest tick of every one of `timed_streams`.

    With `rows_later`, sets whose tuples are counted have no partials yet: in rounds, positions need the watermark.
    """
    clocks: dict[str, int] = {}
    with_clocks = list(timed_streams)
    if with_clocks:
        clocks = {scan.stream: scan.number for scan in reversed(plan.scans) if scan.sees_all}
    timed = set(clocks.values())
    parts = [
        scan_frame(
            scan,
            plan.stream(scan.stream),
            _sliceable(scan, plan.stream(scan.stream), frames[scan.stream], rows_later),
            with_clock=scan.number in timed,
        )
        for scan in plan.scans
    ]
    for stream in with_clocks:
        if stream.name not in clocks:
            clocks[stream.name] = len(parts)
            tick = tick_sql(stream)
            parts.append(frames[stream.name].selectExpr(f"min({tick}) AS first", f"max({tick}) AS seen"))
    if len(parts) == 1:
        frame = parts[0]
        return Partials(frame.withColumn("part", F.lit(0)), (tuple(frame.columns),), len(plan.scans), clocks)
    united, slots = unite(parts)
    return Partials(united, slots, len(plan.scans), clocks)


def _sliceable(scan: Scan, stream: Stream, frame: DataFrame, rows_later: bool) -> DataFrame:
    """A frame with what the scan's slices are of: time, or positions."""
    if scan.counted_by is None:
        return frame
    if rows_later:
        return frame.where("false").withColumn(POSITION, F.lit(None).cast("bigint"))
    # All tuples are counted, whether they pass or not: a window of rows is taken before WHERE.
    return with_positions(frame, stream, scan.counted_by)


def unite(parts: list[DataFrame]) -> tuple[DataFrame, tuple[tuple[str, ...], ...]]:
    columns_of = [frame.dtypes for frame in parts]
    slots = tuple(slot_names(kind for _, kind in columns) for columns in columns_of)
    kinds = {
        slot: kind
        for columns, names in zip(columns_of, slots, strict=True)
        for slot, (_, kind) in zip(names, columns, strict=True)
    }
    aligned = []
    for number, (frame, columns, names) in enumerate(zip(parts, columns_of, slots, strict=True)):
        own = {slot: name for slot, (name, _) in zip(names, columns, strict=True)}
        wanted = [f"{own.get(slot, f'CAST(NULL AS {kinds[slot]})')} AS {slot}" for slot in sorted(kinds)]
        aligned.append(frame.selectExpr(f"{number} AS part", *wanted))
    return union_all(aligned), slots


def check_times(plan: Plan, partials: Mapping[int, pa.Table]) -> None:
    """A tuple without a time belongs to no window and cannot be ignored either: refuse, with the count."""
    for scan in plan.scans:
        table = partials.get(scan.number)
        if table is None or not table[0].null_count:
            continue
        raise without_time(plan.stream(scan.stream), timed(scan, table)[1])


def timed(scan: Scan, table: pa.Table) -> tuple[pa.Table, int]:
    """The partials whose slice is known, and the number of tuples in the others."""
    if not table[0].null_count:
        return table, 0
    known = pc.is_valid(table[0])
    return table.filter(known), pc.sum(table.filter(pc.invert(known))[1 + len(scan.key_types)]).as_py()


def without_time(stream: Stream, tuples: int) -> WindloomError:
    return WindloomError(
        f"stream '{stream.name}' has tuples without a usable time",
        f"column '{stream.time}' ({stream.columns[stream.time]}) is NULL, unreadable or out of range"
        f" in {tuples:,} of its rows",
        f'filter them out before loom.stream(…), for example df.where("{stream.time} IS NOT NULL")',
    )


def scan_frame(scan: Scan, stream: Stream, frame: DataFrame, *, with_clock: bool = False) -> DataFrame:
    """`slice`, `s0…` (signature), `g0…`, then each component's fields `c0…`; `first` and `seen` are its clock.

    One row a non-empty (slice, signature, group).
    """
    tick = tick_sql(stream) if scan.counted_by is None else POSITION
    if scan.where is not None:
        # Rows without a time pass every predicate, so that they are seen and refused.
        frame = frame.where(f"({scan.where.sql}) OR {tick} IS NULL")
    inputs = [
        tuple(_guarded(sql, scan, used) for sql in input_sql(planned, tick_sql(stream)))
        for planned, used in zip(scan.components, _used_by(scan, "components"), strict=True)
    ]
    names = {sql: f"x{i}" for i, sql in enumerate(dict.fromkeys(chain.from_iterable(inputs)))}
    groups = [f"g{i}" for i in range(len(scan.group_by))]
    keys = [
        part.sql if part.column is not None else _guarded(part.sql, scan, used)
        for part, used in zip(scan.group_by, _used_by(scan, "groups"), strict=True)
    ]
    words = signature_sql(scan.predicates)
    projected = frame.selectExpr(
        f"{slice_sql(scan.slice_id, tick)} AS slice",
        *(f"{word} AS s{i}" for i, word in enumerate(words)),
        *(f"{key} AS {name}" for key, name in zip(keys, groups, strict=True)),
        *(f"{sql} AS {name}" for sql, name in names.items()),
        *([f"{tick} AS tick"] if with_clock else []),
    )
    signature = [f"s{i}" for i in range(len(words))]
    if scan.only_signed:
        wanted = [f"({name} & {bits}L) <> 0L" for name, bits in zip(signature, signed_bits(scan), strict=True) if bits]
        projected = projected.where(" OR ".join(["slice IS NULL", *wanted]))
    extra = [("first", "min(tick)"), ("seen", "max(tick)")] if with_clock else []
    columns = [[names[one] for one in read] for read in inputs]
    return summarised(projected, ["slice", *signature, *groups], scan.components, columns, extra)


def _used_by(scan: Scan, what: str) -> list[set[int | None]]:
    """For each of the scan's components or grouping columns, the bits of the sets that use it."""
    count = len(scan.components if what == "components" else scan.group_by)
    found: list[set[int | None]] = [set() for _ in range(count)]
    for fed in scan.feeds:
        for position in fed.components if what == "components" else fed.groups:
            found[position].add(fed.bit)
    return found


def _guarded(sql: str, scan: Scan, bits: set[int | None]) -> str:
    """Evaluated only where some set wants the tuple: behind its own predicate, an expression may not fail elsewhere."""
    if None in bits or sql.isidentifier():
        return sql
    satisfied = " OR ".join(f"({scan.predicates[bit].sql})" for bit in sorted(bit for bit in bits if bit is not None))
    return f"CASE WHEN {satisfied} THEN {sql} END"
