"""The tuples of strands, from the files in which a stream keeps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windloom.aggregates.arrow import arrow_type
from windloom.durable.tuples import ROUND, TICK, TupleFolder, column_name
from windloom.model.expression import Expression
from windloom.model.rows import Strand
from windloom.model.stream import Stream
from windloom.plan.near import NearJoin, near_join
from windloom.rounds.rows.kept import Kept, TupleFile
from windloom.rounds.rows.near import NearTuples, fits, near_tuples
from windloom.rounds.rows.spans import AskedRows, needed_from, needed_until
from windloom.spark.frames import arrow_frame
from windloom.spark.rows.job import TupleViews
from windloom.spark.rows.session import FEW_TUPLES, JobSessions
from windloom.spark.sources.read import local_path
from windloom.spark.sources.storage import is_remote

#: Up to this many tuples of both sides are joined on the driver and not by Spark.
NEAR_TUPLES = 8_000_000


@dataclass(frozen=True, slots=True)
class StoredTuples:
    """The tuples of streams in files of a folder, for jobs of a session."""

    folder: TupleFolder
    streams: Mapping[str, Stream]
    sessions: JobSessions

    def views(self, kept: Kept, asked: Sequence[AskedRows]) -> TupleViews:
        """Return views of the tuples in files that are asked for.

        Few tuples are read on the driver and passed to Spark at once; many are read by Spark's tasks.
        """
        is_few = read_tuples(kept, asked) <= FEW_TUPLES
        spark = self.sessions.of(is_few=is_few)
        wanted: dict[str, set[str]] = {}
        files: dict[str, dict[str, TupleFile]] = {}
        for strand, strand_files in _read(kept, asked):
            wanted.setdefault(strand.stream, set()).update(strand.columns)
            files.setdefault(strand.stream, {}).update({file.name: file for file in strand_files})

        def tuples(strand: Strand, begin: int, end: int) -> tuple[object, Callable[[], DataFrame]]:
            stream, columns = self.streams[strand.stream], sorted(wanted[strand.stream])
            if is_few:
                files_of_stream = list(files[strand.stream].values())
                return stream.name, lambda: self._held(spark, stream, columns, files_of_stream)
            named = _files(kept, strand, begin, end)
            key = (stream.name, tuple(file.name for file in named))
            return key, lambda: self.frame(spark, stream, columns, named)

        return TupleViews(spark, tuples, has_rounds=True)

    def frame(
        self, spark: SparkSession, stream: Stream, columns: Sequence[str], files: Sequence[TupleFile]
    ) -> DataFrame:
        """Return columns of the tuples in some files, with `__tick` and `__round`; the tasks of a job read them."""
        ddl = _ddl(stream, columns)
        if files:
            paths = [spark_path(self.folder.place, file.name) for file in files]
            # Damage is an error, never a wrong row. The schema is given, so that no job must look for it in the files.
            frame = spark.read.schema(ddl).option("parquet.page.verify-checksum.enabled", "true").parquet(*paths)
        else:
            frame = spark.createDataFrame([], ddl)
        return _named(frame, stream, columns)

    def _held(
        self, spark: SparkSession, stream: Stream, columns: Sequence[str], files: Sequence[TupleFile]
    ) -> DataFrame:
        """Return what `frame` does, read on the driver."""
        if not files:
            return self.frame(spark, stream, columns, files)
        frame = arrow_frame(spark, self.table(stream, columns, files), _ddl(stream, columns))
        return _named(frame.coalesce(1), stream, columns)

    def table(self, stream: Stream, columns: Sequence[str], files: Sequence[TupleFile]) -> pa.Table:
        """Return columns of the tuples in some files, with their names in the files, then `__tick` and `__round`."""
        names = [*(column_name(stream, name) for name in columns), TICK, ROUND]
        kinds = [*(arrow_type(stream.columns[name]) for name in columns), pa.int64(), pa.int64()]
        if not files:
            return pa.schema(list(zip(names, kinds, strict=True))).empty_table()
        tables = [self.folder.read(file, names) for file in files]
        table = pa.concat_tables(tables, promote_options="default")
        for name, kind in zip(names, kinds, strict=True):
            if name not in table.column_names:  # the column was not kept yet when these files were written
                table = table.append_column(name, pa.nulls(table.num_rows, kind))
        return table.select(names).combine_chunks()

    def near(self, kept: Kept, asked_rows: AskedRows) -> tuple[NearJoin, tuple[NearTuples, ...]] | None:
        """Return an interval join that the driver makes, with its tuples; None for other queries, and for very many
        tuples.
        """
        join = near_join(asked_rows.planned, self.streams)
        if join is None or read_tuples(kept, [asked_rows]) > NEAR_TUPLES:
            return None
        sides = []
        for strand, files in _read(kept, [asked_rows]):
            stream = self.streams[strand.stream]
            names = {name: column_name(stream, name) for name in strand.columns}
            kinds = [(column, arrow_type(stream.columns[name])) for name, column in names.items()]
            schema = pa.schema([*kinds, (TICK, pa.int64()), (ROUND, pa.int64())])
            sides.append(near_tuples(self.table(stream, list(names), files).cast(schema), names, TICK, ROUND))
        return (join, tuple(sides)) if fits(sides, join) else None


def read_tuples(kept: Kept, asked: Sequence[AskedRows]) -> int:
    """Return the number of tuples in the files that a job reads, counted once for every strand."""
    return sum(file.rows for _, files in _read(kept, asked) for file in files)


def _read(kept: Kept, asked: Sequence[AskedRows]) -> list[tuple[Strand, tuple[TupleFile, ...]]]:
    """Return every strand, with the files that it needs."""
    files_by_strand = []
    for asked_rows in asked:
        rows, end = asked_rows.planned.rows, needed_until(asked_rows.span)
        for strand in rows.strands:
            begin = needed_from(rows, strand.window, asked_rows.span)
            files_by_strand.append((strand, _files(kept, strand, begin, end)))
    return files_by_strand


def _files(kept: Kept, strand: Strand, begin: int, end: int) -> tuple[TupleFile, ...]:
    return kept[strand.stream].between(begin, end) if strand.stream in kept else ()


def _ddl(stream: Stream, columns: Sequence[str]) -> str:
    fields = [f"{column_name(stream, name)} {stream.columns[name].name}" for name in columns]
    return ", ".join([*fields, f"{TICK} bigint", f"{ROUND} bigint"])


def _named(frame: DataFrame, stream: Stream, columns: Sequence[str]) -> DataFrame:
    """Return the columns under the names that the stream has for them."""
    named = (f"{column_name(stream, name)} AS {Expression.of_column(name).sql}" for name in columns)
    return frame.selectExpr(*named, TICK, ROUND)


def spark_path(place: str, name: str) -> str:
    """Return a file of a checkpoint in the form that Spark takes literally."""
    return f"{place}/{name}" if is_remote(place) else local_path(Path(place) / name)
