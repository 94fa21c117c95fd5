"""Reads tuples from Parquet files without Spark: Arrow reads them, and our evaluator projects them.

Files are declined, and read by Spark instead, if anything may differ from what Spark would read: types other than those
of the frame, columns that some file lacks, dates before 1900, a value that Spark would refuse.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from windloom.expressions.arithmetic import DeclinedError
from windloom.expressions.evaluate import DecodedColumns, evaluate, may_refuse
from windloom.expressions.node import Node, columns_of
from windloom.expressions.predicate_index import (
    DistinctWords,
    PredicateTable,
    clusters,
    examples,
    over_examples,
    take_codes,
)
from windloom.kernels.tuples.signatures import SIGNATURE_BITS
from windloom.model.arrays import Mask
from windloom.model.stream import Stream
from windloom.model.time import INTEGER_UNITS
from windloom.model.types import DataType, TypeKind, arrow_type, as_array
from windloom.plan.scans import LocalColumn, LocalProjection, Signature, WovenScan


def project_tuples(local: LocalProjection, signature: Signature, table: pa.Table, tick: pa.Array) -> pa.Table:
    """Return `tick`, `s0…` (the signature), `x0…`, as Spark would project them, of tuples that are wanted.

    Tuples without a tick are always wanted. Raises DeclinedError if Spark may refuse a tuple.
    """
    try:
        if local.where is not None:
            selected = pa.array(_holds(local.where, DecodedColumns(table)) | _untimed(tick))
            table, tick = table.filter(selected), tick.filter(selected)
        rows = DecodedColumns(table)
        words, has_bit = _signature(local.predicates, signature, rows)
        arrays = [tick, *words, *(_column(column, rows) for column in local.columns)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:  # an overflow, or a decimal that does not fit
        raise DeclinedError(str(error)) from None
    names = ["tick", *(f"s{i}" for i in range(len(words))), *(f"x{i}" for i in range(len(local.columns)))]
    tuples = pa.Table.from_arrays(arrays, names)
    if has_bit is None:
        return tuples
    wanted = has_bit | _untimed(tick) if tick.null_count else has_bit
    return tuples if wanted.all() else tuples.filter(pa.array(wanted))


def _signature(
    predicates: tuple[Node, ...], signature: Signature, rows: DecodedColumns
) -> tuple[list[pa.Array], Mask | None]:
    """Return the words of the signature of every tuple; and, if others are left out, which tuples have a bit of a set.

    If one table has all predicates, the words are encoded by its distinct words, the same in all parts of a stream.
    """
    coded = _coded(predicates, signature.words)
    if coded is None or not coded[0].pays(rows.table.num_rows):
        words = _words(predicates, signature.words, rows)
        arrays = [pa.array(word) for word in words]
        wanted = _wanted(signature, words)
        return arrays if coded is None else [array.dictionary_encode() for array in arrays], wanted
    table, distinct_words = coded
    entries = table.entries_of(rows)
    wanted = _wanted(signature, list(table.words))
    if wanted is not None:
        wanted = None if wanted.all() else take_codes(entries, wanted)
    return [word.column(entries) for word in distinct_words], wanted


def _wanted(signature: Signature, words: Sequence[NDArray[np.int64]]) -> Mask | None:
    """Return which signatures have a bit of a set; None if no tuples are left out."""
    if not signature.only_signed:
        return None
    wanted = np.zeros(len(words[0]), np.bool_)
    for word, bits in zip(words, signature.wanting_bits, strict=True):
        wanted |= (word & bits) != 0
    return wanted


def _words(predicates: tuple[Node, ...], count: int, rows: DecodedColumns) -> list[NDArray[np.int64]]:
    """Return the signature of every tuple: predicates are looked up in tables where that is possible and pays."""
    words = [np.zeros(rows.table.num_rows, np.int64) for _ in range(count)]
    looked_up: set[int] = set()
    for table in _tables(predicates, count):
        if table.pays(rows.table.num_rows):
            table.sign(rows, words)
            looked_up |= set(table.bits)
    for bit, predicate in enumerate(predicates):
        if bit not in looked_up:
            words[bit // SIGNATURE_BITS] |= _holds(predicate, rows) * np.int64(1 << bit % SIGNATURE_BITS)
    return words


@lru_cache(maxsize=16)
def _tables(predicates: tuple[Node, ...], count: int) -> tuple[PredicateTable, ...]:
    """Return the tables in which predicates are looked up, made once for all parts of a stream."""
    tables = []
    for cluster in clusters(predicates):
        rows, words = examples(cluster), np.zeros((count, cluster.entries), np.int64)
        for bit in cluster.bits:
            holds = _holds(over_examples(predicates[bit], cluster), rows)
            words[bit // SIGNATURE_BITS] |= holds * np.int64(1 << bit % SIGNATURE_BITS)
        tables.append(PredicateTable(tuple(cluster.subjects.values()), tuple(cluster.bits), words))
    return tuple(tables)


@lru_cache(maxsize=16)
def _coded(predicates: tuple[Node, ...], count: int) -> tuple[PredicateTable, tuple[DistinctWords, ...]] | None:
    """Return the table that has all predicates, and its distinct words; None if there is no such table."""
    tables = _tables(predicates, count)
    if len(tables) != 1 or len(tables[0].bits) != len(predicates):
        return None
    return tables[0], tuple(map(DistinctWords.of, tables[0].words))


def _holds(node: Node, rows: DecodedColumns) -> Mask:
    """Return where a condition is TRUE."""
    if node.op in ("and", "or") and not any(map(may_refuse, node.operands[1:])):
        combine = np.logical_and if node.op == "and" else np.logical_or
        return reduce(combine, (_holds(operand, rows) for operand in node.operands))
    names = columns_of(node)
    column = rows.table[next(iter(names))] if len(names) == 1 else None
    if column is not None and pa.types.is_dictionary(column.type) and column.num_chunks == 1 and not column.null_count:
        # Once per distinct value, not once per tuple.
        coded = column.chunk(0)
        of_values = _holds(node, DecodedColumns(pa.table([coded.dictionary], list(names))))
        mask: Mask = of_values[coded.indices.to_numpy()]
        return mask
    value = evaluate(node, rows)
    if isinstance(value, pa.Scalar):
        return np.full(rows.table.num_rows, bool(value.as_py()))
    mask = (pc.fill_null(value, False) if value.null_count else value).to_numpy(zero_copy_only=False)
    return mask


def _untimed(tick: pa.Array) -> Mask:
    mask: Mask = np.array(tick.is_null().to_numpy(zero_copy_only=False), np.bool_)
    return mask


def _column(column: LocalColumn, rows: DecodedColumns) -> pa.Array | pa.ChunkedArray:
    node = column.node
    if node.op == "read" and column.component is None:
        return rows.table[node.value]  # as it is, with its dictionary
    value = evaluate(node, rows)
    values = pa.repeat(value, rows.table.num_rows) if isinstance(value, pa.Scalar) else as_array(value)
    return values if column.component is None else column.component.aggregator.woven_arrow(values)


def readable_columns(schema: pq.ParquetSchema, kinds: Mapping[str, DataType]) -> frozenset[str]:
    """Return the columns of a file that can be read as these types without converting anything."""
    arrow = schema.to_arrow_schema()
    lowered = [name.lower() for name in arrow.names]
    old = {schema.column(i).path for i in range(len(schema)) if schema.column(i).physical_type == "INT96"}
    return frozenset(
        name
        for name, kind in kinds.items()
        if name in arrow.names
        and "." not in name
        and lowered.count(name.lower()) == 1
        and _is_kind(arrow.field(name).type, kind, is_old=name in old)
    )


def _is_kind(arrow: pa.DataType, kind: DataType, *, is_old: bool) -> bool:
    """Return whether a type in a file is this type. Times of 96 bits are instants too, and are read as microseconds."""
    if kind.kind is TypeKind.TIMESTAMP:
        return bool(is_old or (pa.types.is_timestamp(arrow) and arrow.unit == "us" and arrow.tz is not None))
    try:
        return bool(not is_old and arrow == arrow_type(kind))
    except KeyError:  # a type that only Spark has
        return False


#: The years 0001 to 9999, the range of Spark's timestamps.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
#: The intended size of a portion, in bytes: large enough for the kernels, small enough for several to fit in memory.
PORTION_BYTES = 256 << 20
#: Row groups are read together up to this many rows.
UNIT_ROWS = 1 << 18
#: Before 1900, files may hold dates and times of another calendar.
_FIRST_DAY, _FIRST_MICRO = -25_567, -25_567 * 86_400_000_000
#: Keys that Spark writes into files with dates of the Julian calendar.
_JULIAN = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True, slots=True)
class FileChunk:
    """Consecutive row groups of a file; `first` is the least time of the first of them, if the file says that."""

    path: str
    groups: tuple[int, ...]
    rows: int
    first: int | None = field(default=None, compare=False)


def file_tuples(
    scan: WovenScan, stream: Stream, paths: Sequence[str], portion: int = PORTION_BYTES
) -> Generator[pa.Table, None, None]:
    """Yield the projected tuples of all files, in portions of `portion` bytes; DeclinedError if Spark must read."""
    local = scan.local
    assert local is not None
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            found = [unit for each in pool.map(lambda path: _units(path, local, stream), paths) for unit in each]
            units = _in_order(found)
            waiting: list[Future[pa.Table]] = []
            for chunks in [*_portions(units, max(1, portion // _width(scan, local))), []]:
                tables = [read.result() for read in waiting]
                # The next portion is read while this one is woven.
                waiting = [pool.submit(_read, unit, scan, local, stream) for unit in chunks]
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
    units = _in_order(units_of(local, stream, paths))
    return list(_portions(units, max(1, portion // _width(scan, local)), threads))


def _in_order(units: list[FileChunk]) -> list[FileChunk]:
    """Return parts of files in order of time, so that portions cover little of it, and follow one another.

    Spark lists files in any order, which stays where one does not say when it begins.
    """
    if not units:
        raise DeclinedError("files without tuples")
    return units if any(unit.first is None for unit in units) else sorted(units, key=lambda unit: unit.first or 0)


def _width(scan: WovenScan, local: LocalProjection) -> int:
    """The bytes of a projected tuple."""
    return 8 * (1 + scan.signature.words + len(local.columns))


def _portions(units: Sequence[FileChunk], most: int, together: int = 1) -> Iterator[list[FileChunk]]:
    """Yield portions of consecutive units, with about equally many rows each, at most `most` unless one unit has more.

    The number of portions is a multiple of `together` if units are small enough.
    """
    rows = sum(unit.rows for unit in units)
    even = rows / max(1, -(-rows // (most * together)) * together)
    chunks: list[FileChunk] = []
    count = 0
    for unit in units:
        # As near to even as whole units allow.
        if chunks and (count + unit.rows > most or count + unit.rows / 2 > even):
            yield chunks
            chunks, count = [], 0
        chunks.append(unit)
        count += unit.rows
    if chunks:
        yield chunks


def units_of(local: LocalProjection, stream: Stream, paths: Sequence[str]) -> list[FileChunk]:
    """Return files in parts that are read one by one; DeclinedError if their metadata show that Spark must read."""
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
    times = [i for i in range(len(metadata.schema)) if metadata.schema.column(i).path == stream.time]
    units: list[FileChunk] = []
    groups: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= UNIT_ROWS or group == metadata.num_row_groups - 1:
            told = [metadata.row_group(groups[0]).column(i).statistics for i in times]
            first = told[0].min_raw if told and told[0] is not None and told[0].has_min_max else None
            units.append(FileChunk(path, tuple(groups), rows, first))
            groups, rows = [], 0
    return units


def _read(unit: FileChunk, scan: WovenScan, local: LocalProjection, stream: Stream) -> pa.Table:
    strings = [name for name in local.reads if stream.columns[name].kind is TypeKind.STRING]
    file = pq.ParquetFile(unit.path, read_dictionary=strings, memory_map=True, coerce_int96_timestamp_unit="us")
    table = file.read_row_groups(list(unit.groups), columns=list(local.reads), use_threads=False)
    for place, name in enumerate(table.column_names):
        kind = stream.columns[name]
        if kind.kind in (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ, TypeKind.DATE):
            is_date = kind.kind is TypeKind.DATE
            least = pc.min(table[name].cast(pa.int32() if is_date else pa.int64())).as_py()
            if least is not None and least < (_FIRST_DAY if is_date else _FIRST_MICRO):
                raise DeclinedError("a date before 1900")
        if kind.kind is TypeKind.TIMESTAMP and table[name].type != arrow_type(kind):  # an instant, whatever the zone
            table = table.set_column(place, name, table[name].cast(arrow_type(kind)))
    return project_tuples(local, scan.signature, table, _ticks(as_array(table[stream.time]), stream))


def _ticks(time: pa.Array, stream: Stream) -> pa.Array:
    """Return the ticks of a time column, equal to those of `tick_sql`."""
    if stream.columns[stream.time].kind is not TypeKind.INTEGER:
        return time.view(pa.int64())
    ticks = INTEGER_UNITS[stream.time_unit or "us"]
    values = time.cast(pa.int64())
    first, last = FIRST_SECOND * 1_000_000 // ticks, LAST_SECOND * 1_000_000 // ticks
    inside = pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
    return pc.multiply(pc.if_else(inside, values, pa.scalar(None, pa.int64())), np.int64(ticks))
