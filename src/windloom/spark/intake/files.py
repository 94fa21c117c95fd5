"""Reads tuples from Parquet files without Spark: Arrow reads them, and our evaluator projects them.

Files are declined, and read by Spark instead, if anything may differ from what Spark would read: types other than those
of the frame, columns that some file lacks, dates before 1900, a value that Spark would refuse.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windloom.aggregates.arrow import arrow_type, as_array
from windloom.model.stream import Stream
from windloom.model.time import INTEGER_UNITS
from windloom.model.types import DataType, TypeKind
from windloom.plan.local import LocalProjection
from windloom.plan.scans import WovenScan
from windloom.rounds.evaluate import DeclinedError
from windloom.rounds.evaluate.tuples import project_tuples
from windloom.spark.intake.collect import PORTION_BYTES
from windloom.spark.intake.native import FIRST_SECOND, LAST_SECOND
from windloom.spark.sources.local_files import readable_columns

#: Row groups are read together up to this many rows.
UNIT_ROWS = 1 << 18
#: Before 1900, files may hold dates and times of another calendar.
_FIRST_DAY, _FIRST_MICRO = -25_567, -25_567 * 86_400_000_000
#: Keys that Spark writes into files with dates of the Julian calendar.
_JULIAN = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True, slots=True)
class FileChunk:
    """Consecutive row groups of a file."""

    path: str
    groups: tuple[int, ...]
    rows: int


def file_tuples(
    scan: WovenScan, stream: Stream, paths: Sequence[str], portion: int = PORTION_BYTES
) -> Generator[pa.Table, None, None]:
    """Yield the projected tuples of all files, in portions of `portion` bytes; DeclinedError if Spark must read."""
    local = scan.local
    assert local is not None
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            units = [unit for found in pool.map(lambda path: _units(path, local, stream), paths) for unit in found]
            if not units:
                raise DeclinedError("files without tuples")
            waiting: list[Future[pa.Table]] = []
            for own in [*_portions(units, max(1, portion // _width(scan, local))), []]:
                tables = [read.result() for read in waiting]
                # The next portion is read while this one is woven.
                waiting = [pool.submit(_read, unit, scan, local, stream) for unit in own]
                if tables:
                    yield pa.concat_tables(tables).unify_dictionaries()
                    del tables
        except (OSError, pa.ArrowException) as error:  # Spark reports in its own words what is wrong with a file
            raise DeclinedError(str(error)) from None
        finally:
            pool.shutdown(cancel_futures=True)


def file_portions(
    scan: WovenScan, stream: Stream, paths: Sequence[str], portion: int, threads: int
) -> list[list[FileChunk]]:
    """Return the files in portions of at most `portion` bytes, to be read and woven by `threads` threads at once.

    Every thread gets about the same number of tuples, if the files can be divided that way.
    """
    local = scan.local
    assert local is not None
    units = units_of(local, stream, paths)
    if not units:
        raise DeclinedError("files without tuples")
    return list(_portions(units, max(1, portion // _width(scan, local)), threads))


def _width(scan: WovenScan, local: LocalProjection) -> int:
    """The bytes of a projected tuple."""
    return 8 * (1 + scan.signature.words + len(local.columns))


def _portions(units: Sequence[FileChunk], most: int, together: int = 1) -> Iterator[list[FileChunk]]:
    """Portions of consecutive units, with about equally many rows each, at most `most` unless one unit has more.

    The number of portions is a multiple of `together` if units are small enough.
    """
    rows = sum(unit.rows for unit in units)
    even = rows / max(1, -(-rows // (most * together)) * together)
    own: list[FileChunk] = []
    held = 0
    for unit in units:
        if own and (held + unit.rows > most or held + unit.rows / 2 > even):  # as near to even as whole units allow
            yield own
            own, held = [], 0
        own.append(unit)
        held += unit.rows
    if own:
        yield own


def units_of(local: LocalProjection, stream: Stream, paths: Sequence[str]) -> list[FileChunk]:
    """Files in parts that are read one by one; raises DeclinedError if their metadata show that Spark must read."""
    try:
        return [unit for path in paths for unit in _units(path, local, stream)]
    except (OSError, pa.ArrowException) as error:
        raise DeclinedError(str(error)) from None


def whole_tuples(scan: WovenScan, stream: Stream, units: Sequence[FileChunk]) -> pa.Table:
    """Return the projected tuples of all parts, read by one thread; raises DeclinedError if Spark must read."""
    local = scan.local
    assert local is not None
    try:
        return pa.concat_tables([_read(unit, scan, local, stream) for unit in units]).unify_dictionaries()
    except (OSError, pa.ArrowException) as error:
        raise DeclinedError(str(error)) from None


def _units(path: str, local: LocalProjection, stream: Stream) -> list[FileChunk]:
    metadata = pq.read_metadata(path, memory_map=True)
    readable = readable_columns(metadata.schema, stream.columns)
    for name in local.reads:
        if name not in readable:
            raise DeclinedError(f"'{path}' has no column '{name}' of type {stream.columns[name]}")
    if any(key in (metadata.metadata or {}) for key in _JULIAN):
        raise DeclinedError(f"'{path}' may hold dates of the Julian calendar")
    units: list[FileChunk] = []
    groups: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= UNIT_ROWS or group == metadata.num_row_groups - 1:
            units.append(FileChunk(path, tuple(groups), rows))
            groups, rows = [], 0
    return units


def _read(unit: FileChunk, scan: WovenScan, local: LocalProjection, stream: Stream) -> pa.Table:
    strings = [name for name in local.reads if stream.columns[name].kind is TypeKind.STRING]
    file = pq.ParquetFile(unit.path, read_dictionary=strings, memory_map=True, coerce_int96_timestamp_unit="us")
    table = file.read_row_groups(list(unit.groups), columns=list(local.reads), use_threads=False)
    for place, name in enumerate(table.column_names):
        kind = stream.columns[name]
        _refuse_early(table[name], kind)
        if kind.kind is TypeKind.TIMESTAMP and table[name].type != arrow_type(kind):  # an instant, whatever the zone
            table = table.set_column(place, name, table[name].cast(arrow_type(kind)))
    return project_tuples(local, scan.signature, table, _ticks(as_array(table[stream.time]), stream))


def _refuse_early(column: pa.ChunkedArray, kind: DataType) -> None:
    if kind.kind in (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ, TypeKind.DATE):
        first = _FIRST_DAY if kind.kind is TypeKind.DATE else _FIRST_MICRO
        least = pc.min(column.cast(pa.int32() if kind.kind is TypeKind.DATE else pa.int64())).as_py()
        if least is not None and least < first:
            raise DeclinedError("a date before 1900")


def _ticks(time: pa.Array, stream: Stream) -> pa.Array:
    """Return the ticks of a time column, equal to those of `tick_sql`."""
    if stream.columns[stream.time].kind is not TypeKind.INTEGER:
        return time.view(pa.int64())
    ticks = INTEGER_UNITS[stream.time_unit or "us"]
    values = time.cast(pa.int64())
    first, last = FIRST_SECOND * 1_000_000 // ticks, LAST_SECOND * 1_000_000 // ticks
    inside = pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
    return pc.multiply(pc.if_else(inside, values, pa.scalar(None, pa.int64())), np.int64(ticks))
