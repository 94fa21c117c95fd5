"""Times in nanoseconds, as pandas and Arrow write them to Parquet, read as the microseconds that Spark has.

Spark refuses such columns, or reads them as whole numbers if a setting of the session says so. These numbers become
times here. A time that is finer than a microsecond is an error that names its row, never rounded in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from windloom.errors import NANOSECONDS_HINT
from windloom.spark.frames import quoted

#: The setting with which Spark reads nanoseconds as whole numbers. Without it, it refuses the file.
_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"


def nanosecond_columns(files: Sequence[Path]) -> dict[str, bool]:
    """Return the columns of Parquet files that hold nanoseconds, and whether they are instants (and not local times).

    The first file decides, as it does for other types. Times in Spark's own 96 bits do not count: Spark reads them.
    """
    try:
        written = pq.read_metadata(files[0]).schema
        kinds = {field.name: field.type for field in written.to_arrow_schema()}
    except (OSError, pa.ArrowException):  # Spark reports in its own words what is wrong with the file
        return {}
    physical = {written.column(index).path: written.column(index).physical_type for index in range(len(written))}
    return {
        name: kind.tz is not None
        for name, kind in kinds.items()
        if pa.types.is_timestamp(kind) and kind.unit == "ns" and physical.get(name) == "INT64"
    }


def read_as_numbers(spark: SparkSession, columns: Mapping[str, bool]) -> None:
    """Let the session read these columns, if there are any; what it could read before is read as before."""
    if columns:
        spark.conf.set(_AS_LONG, "true")


def in_microseconds(frame: DataFrame, columns: Mapping[str, bool]) -> DataFrame:
    """Return the frame with these columns, which are whole numbers in it, as times."""
    if not columns:
        return frame
    return frame.selectExpr(*_expressions(frame.columns, columns))


def _expressions(names: Iterable[str], columns: Mapping[str, bool]) -> list[str]:
    texts = []
    for name in names:
        column = quoted(name)
        if name not in columns:
            texts.append(column)
            continue
        whole = f"{column} div 1000"
        local = f"timestampadd(MICROSECOND, {whole}, TIMESTAMP_NTZ '1970-01-01 00:00:00')"
        time = f"timestamp_micros({whole})" if columns[name] else local
        # In the form in which errors of workers are told, so that users see an error of ours.
        parts = [
            _literal(f"\nwindloom.errors.WindloomError: column '{name}' has a time finer than a microsecond\nrow "),
            "_metadata.row_index + 1",
            _literal(" of '"),
            "_metadata.file_name",
            _literal("' has "),
            column,
            _literal(f" nanoseconds since 1970, and Spark has microseconds\nhint: {NANOSECONDS_HINT}"),
        ]
        texts.append(
            f"CASE WHEN {column} % 1000 <> 0 THEN raise_error(concat({', '.join(parts)})) ELSE {time} END AS {column}"
        )
    return texts


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
