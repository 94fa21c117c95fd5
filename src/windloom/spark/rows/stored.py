"""The tuples of strands, from the files in which a stream keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from windloom.durable.tuples import ROUND, TICK, column_name
from windloom.model.expression import Expression
from windloom.model.rows import Strand
from windloom.model.stream import Stream
from windloom.rounds.rows.kept import Kept, TupleFile
from windloom.spark.rows.strands import StrandTuples
from windloom.spark.sources.read import local_path
from windloom.spark.sources.storage import is_remote


def stored_tuples(spark: SparkSession, place: str, streams: Mapping[str, Stream], kept: Kept) -> StrandTuples:
    """What the files of a checkpoint at `place` hold."""

    def frame(strand: Strand, begin: int, end: int) -> DataFrame:
        stream = streams[strand.stream]
        files = kept[strand.stream].between(begin, end) if strand.stream in kept else ()
        return tuples_frame(spark, place, stream, strand.columns, files)

    return StrandTuples(frame, has_rounds=True)


def tuples_frame(
    spark: SparkSession, place: str, stream: Stream, columns: Sequence[str], files: Sequence[TupleFile]
) -> DataFrame:
    """Columns of the tuples in some files, with `__tick` and `__round`."""
    fields = [(column_name(stream, name), stream.columns[name].name, name) for name in columns]
    ddl = ", ".join([*(f"{own} {kind}" for own, kind, _ in fields), f"{TICK} bigint", f"{ROUND} bigint"])
    if files:
        paths = [spark_path(place, file.name) for file in files]
        # Damage is an error, never a wrong row. The schema is given: no job has to look at the files for it.
        found = spark.read.schema(ddl).option("parquet.page.verify-checksum.enabled", "true").parquet(*paths)
    else:
        found = spark.createDataFrame([], ddl)
    named = (f"{own} AS {Expression.of_column(name).sql}" for own, _, name in fields)
    return found.selectExpr(*named, TICK, ROUND)


def spark_path(place: str, name: str) -> str:
    """A file of a checkpoint in the form that Spark takes literally."""
    return f"{place}/{name}" if is_remote(place) else local_path(Path(place) / name)
