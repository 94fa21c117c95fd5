"""Reading a stream's data from files: the format by its ending, the columns by the catalog."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.spark.errors import as_windloom_errors

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}


def read_source(spark: SparkSession, stream: Stream, path: str) -> DataFrame:
    """A file or directory of Parquet, CSV, JSON lines or ORC as a batch DataFrame."""
    place = Path(path)
    remote = "://" in path
    if not remote and not place.exists():
        raise WindloomError(f"stream '{stream.name}': there is no file or directory '{path}'", hint="check the path")
    name = _format(place, remote, stream.name)
    reader = spark.read.format(name)
    if name in ("csv", "json"):
        # Text has no types of its own: a field that does not fit its declared type is an error, never a silent NULL.
        reader = reader.schema(", ".join(f"`{column}` {kind.name}" for column, kind in stream.columns.items()))
        reader = reader.option("mode", "FAILFAST")
    if name == "csv":
        separator = "\t" if place.suffix == ".tsv" else ","
        reader = reader.option("header", remote or _has_header(place, separator, stream)).option("sep", separator)
    with as_windloom_errors(f"stream '{stream.name}'"):
        return reader.load(path)


def _format(place: Path, remote: bool, stream: str) -> str:
    files = [place]
    if not remote and place.is_dir():
        files = [file for file in sorted(place.rglob("*")) if file.is_file() and not file.name.startswith(("_", "."))]
        if not files:
            raise WindloomError(f"stream '{stream}': the directory '{place}' holds no data", hint="check the path")
    for suffix in reversed(files[0].suffixes):
        if suffix in _FORMATS:
            return _FORMATS[suffix]
    raise WindloomError(
        f"stream '{stream}': cannot tell the format of '{files[0]}'", hint="use " + ", ".join(sorted(_FORMATS))
    )


def _has_header(place: Path, separator: str, stream: Stream) -> bool:
    """The first line is a header if it names the stream's columns."""
    file = place if place.is_file() else next(one for one in sorted(place.rglob("*.[ct]sv*")) if one.is_file())
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8", errors="replace") as lines:
        first = next(csv.reader(lines, delimiter=separator), [])
    named = [stream.find_column(field.strip()) is not None for field in first]
    return bool(named) and sum(named) * 2 > len(named)
