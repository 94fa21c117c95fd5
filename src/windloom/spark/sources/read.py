"""Reads the data of a stream, or a relation, from files: the format from the ending, the columns from the catalog.

Text has no types, so a field that does not fit its declared type is an error, never a silent NULL. The columns of text
are found by their names, if it has names.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from pyspark.sql import DataFrame, SparkSession

from windloom.errors import WindloomError, near_names
from windloom.model.stream import Relation, Stream
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import quoted
from windloom.spark.sources.nanoseconds import in_microseconds, nanosecond_columns, read_as_numbers

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
}
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
#: The number of lines of JSON read to learn the names of its fields.
_LOOKED_AT = 1_000
#: Path, size and time of change of every file.
_Files = tuple[tuple[str, int, int], ...]
#: 2026-01-05 00:00 UTC, a Monday.
FIRST_TICK = 1_767_571_200_000_000


@dataclass(frozen=True, slots=True)
class DataSource:
    """A file or directory, inspected but not yet read.

    `fields` are the names of the columns of text in the order of the file, or the declared columns in another spelling;
    None means that the file could not be inspected.
    """

    stream: Stream
    path: str
    format: str
    separator: str = ","
    fields: tuple[str, ...] | None = None
    has_header: bool = False
    nanoseconds: Mapping[str, bool] = field(default_factory=dict)  # columns of Parquet, and whether they are instants

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as spelled in the data."""
        return self.fields or tuple(self.stream.columns)

    def read(self, spark: SparkSession) -> DataFrame:
        # Columns of CSV are identified by their place: a header may hold anything, even the same name twice.
        by_place = self.format == "csv" and self.fields is not None
        columns = [f"_{i}" for i in range(len(self.names))] if by_place else list(self.names)
        reader = spark.read.format(self.format).options(**self.options(enforceSchema=by_place))
        if self.format in ("csv", "json"):
            reader = reader.schema(self.schema(columns))
        with as_windloom_errors(self.stream.title):
            read_as_numbers(spark, self.nanoseconds)
            frame = in_microseconds(reader.load(self.path), self.nanoseconds)
            return frame if self.fields is None else self.select(frame, columns)

    def options(self, enforceSchema: bool) -> dict[str, bool | str]:
        """Return options of Spark's reader. Spark checks headers against the columns unless `enforceSchema` is set."""
        options: dict[str, bool | str] = {"mode": "FAILFAST"} if self.format in ("csv", "json") else {}
        if self.format == "csv":
            options |= {"sep": self.separator, "header": self.has_header, "enforceSchema": enforceSchema}
            options |= {"escape": '"'}  # quotes are doubled inside quotes (RFC 4180)
        return options

    def schema(self, columns: Sequence[str]) -> str:
        """Return the declared types with the given names, in the order of the data."""
        fields = []
        for column, name in zip(columns, self.names, strict=True):
            declared = self.stream.find_column(name.strip())
            fields.append(f"{quoted(column)} {'string' if declared is None else self.stream.columns[declared].name}")
        return ", ".join(fields)

    def select(self, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Return declared columns in the declared spelling, of a frame that has `columns` in the order of the data."""
        spelled = {self.stream.find_column(name.strip()): columns[i] for i, name in enumerate(self.names)}
        return frame.selectExpr(*(f"{quoted(spelled[name])} AS {quoted(name)}" for name in self.stream.columns))


def find_source(stream: Stream, path: str) -> DataSource:
    """Inspect a file or directory of Parquet, CSV, JSON lines or ORC, without Spark."""
    if "://" in path:
        return DataSource(stream, path, *find_format([Path(path)], stream), has_header=True)
    place = Path(path)
    if not place.exists():
        raise WindloomError(
            f"{stream.title}: there is no file or directory '{place}'",
            f"looked for {place.absolute()}",
            "check the path",
        )
    files = files_in(place) if place.is_dir() else [place]
    if not files:
        raise WindloomError(
            f"{stream.title}: the directory '{place}' holds no data",
            "names that begin with '.' or '_' do not count",
            "check the path",
        )
    return look_at(stream, place, files)


def look_at(stream: Stream, path: Path, files: Sequence[Path]) -> DataSource:
    """Return the source at `place`, from the files in it: at least one, all of one format."""
    kind, separator = find_format(files, stream)
    literal = local_path(path)
    try:
        if kind == "csv":
            return _look_at_csv(stream, literal, files, separator)
        if kind == "json":
            return DataSource(stream, literal, kind, fields=_look_at_json(stream, files[0]))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise WindloomError(
            f"{stream.title}: cannot read '{path}'", str(error), "check the file; text must be UTF-8"
        ) from None
    return DataSource(stream, literal, kind, nanoseconds=nanosecond_columns(files) if kind == "parquet" else {})


def read_source(spark: SparkSession, stream: Stream, path: str) -> DataFrame:
    """Return the data as a batch DataFrame: the declared columns of the stream, or all columns if files have types."""
    return find_source(stream, path).read(spark)


def local_path(path: Path) -> str:
    """Return a path of this machine in the form that Spark takes literally, whatever its working directory."""
    return "file://" + re.sub(r"([\\{}\[\]*?])", r"\\\1", str(path.absolute()))


def files_in(folder: Path) -> list[Path]:
    """Return the files below a directory that Spark would read."""
    inside = [(file, file.relative_to(folder).parts) for file in sorted(folder.rglob("*")) if file.is_file()]
    return [file for file, parts in inside if not any(part.startswith(("_", ".")) for part in parts)]


def find_format(files: Sequence[Path], stream: Stream) -> tuple[str, str]:
    """Return the format of all files, and what separates the fields of text."""
    endings = [
        next((suffix.lower() for suffix in reversed(file.suffixes) if suffix.lower() in FORMATS), "") for file in files
    ]
    for file, ending in zip(files, endings, strict=True):
        if not ending:
            raise WindloomError(
                f"{stream.title}: cannot tell the format of '{file}'",
                f"its ending is '{file.suffix}'" if file.suffix else "its name has no ending",
                "use " + ", ".join(sorted(FORMATS)),
            )
        if ending != endings[0]:
            raise WindloomError(
                f"{stream.title}: the directory '{files[0].parent}' holds files of several formats",
                f"'{files[0].name}' and '{file.name}'",
                "give a directory with files of one format",
            )
    return FORMATS[endings[0]], "\t" if endings[0] == ".tsv" else ","


def _open(file: Path) -> TextIO | None:
    """Return the text of a file; None if only Spark can unpack it."""
    if file.suffix.lower() in (".zst", ".zstd", ".lz4", ".snappy", ".deflate"):
        return None
    opener = _OPENERS.get(file.suffix.lower(), open)
    text: TextIO = opener(file, "rt", encoding="utf-8-sig", newline="")
    return text


def _look_at_csv(stream: Stream, path: str, files: Sequence[Path], separator: str) -> DataSource:
    """Return the names of the columns, from a header that all files share or, without one, from the catalog."""
    first: list[str] | None = None
    for file in files:
        lines = _open(file)
        if lines is None:
            return DataSource(stream, path, "csv", separator, has_header=True)
        with lines:
            row = next(csv.reader(lines, delimiter=separator), None)
        if row is None:
            continue
        if first is None:
            first = row
            names = _header(stream, row)
            _check_columns(stream, file, row, names)
        elif names and row != first:
            raise WindloomError(
                f"{stream.title}: the files of '{files[0].parent}' have different columns",
                f"'{files[0].name}' begins with {separator.join(first)}\n'{file.name}' with {separator.join(row)}",
                "give files with one header",
            )
    header = bool(first) and bool(names)
    fields = tuple(first) if header and first else tuple(stream.columns)
    return DataSource(stream, path, "csv", separator, fields, header)


def _header(stream: Stream, row: list[str]) -> list[str | None]:
    """Return the declared column that each field names; none at all if the first line holds data.

    A header names the time column, or most of its fields are names of columns; for a relation, one field is enough.
    """
    named = [stream.find_column(field.strip()) for field in row]
    known = sum(name is not None for name in named)
    is_named = bool(known) if stream.is_relation else stream.time in named
    return named if is_named or known * 2 > len(row) else []


def _check_columns(stream: Stream, file: Path, row: list[str], names: list[str | None]) -> None:
    if not names:
        if len(row) != len(stream.columns):
            raise WindloomError(
                f"{stream.title}: '{file}' does not have the declared columns",
                f"declared are {len(stream.columns)} columns, its first line has {len(row)}: {', '.join(row)[:200]}",
                "declare every column in the order of the file, or give it a header",
            )
        return
    for column in stream.columns:
        if names.count(column) != 1:
            what = "no" if column not in names else "more than one"
            raise WindloomError(
                f"{stream.title} is declared with a column '{column}', and its data has {what} such column",
                f"the header of '{file}' is {', '.join(row)}",
                near_names(column, row) if what == "no" else "give each column of the file a name of its own",
            )


def _look_at_json(stream: Stream, file: Path) -> tuple[str, ...] | None:
    """Return the declared columns as the fields spell them; a field may be missing, but not misspelled."""
    lines = _open(file)
    if lines is None:
        return None
    names: dict[str, None] = {}
    with lines:
        for line in islice(lines, _LOOKED_AT):
            try:
                record = json.loads(line)
            except ValueError:  # Spark reports what is wrong with it, and where
                continue
            if isinstance(record, dict):
                names.update(dict.fromkeys(record))
    fields = Stream(stream.name, dict.fromkeys(names, next(iter(stream.columns.values()))))  # only names matter
    for column in stream.columns:
        if names and fields.find_column(column) is None:
            others = [name for name in names if stream.find_column(name) is None]
            hint = near_names(column, others)
            if column == stream.time or hint.startswith("did you mean"):
                raise WindloomError(
                    f"{stream.title} is declared with a column '{column}' that its data does not have",
                    f"the fields of '{file}' are {', '.join(names)}",
                    hint,
                )
    return tuple(fields.find_column(column) or column for column in stream.columns)


class RelationFiles:
    """A relation in files, for `loom.relation`: a function that returns the current DataFrame.

    As long as no file is added, removed or replaced, it returns the same DataFrame, and nothing is read again. Spark
    lists files of other machines; its lists show whether they have changed.
    """

    def __init__(self, spark: SparkSession, relation: Relation, path: str) -> None:
        self._spark, self._relation, self._path = spark, relation, path
        self._files: _Files | None = None
        self._frame: DataFrame | None = None

    def __call__(self) -> DataFrame:
        files: _Files | None = None
        if "://" not in self._path:
            path = Path(self._path)
            about = [
                (str(file), file.stat()) for file in (files_in(path) if path.is_dir() else [path]) if file.exists()
            ]
            files = tuple((name, status.st_size, status.st_mtime_ns) for name, status in about)
        if self._frame is None or files is None or files != self._files:
            self._frame, self._files = find_source(self._relation, self._path).read(self._spark), files
        return self._frame


def synthetic_trades(spark: SparkSession, events: int, per_second: int, keys: int, seed: int = 1) -> DataFrame:
    """Return synthetic trades (`ts, symbol, price, volume`) that depend only on the seed, generated by Spark itself.

    There are `per_second` evenly spaced events per second of event time, over `keys` symbols.
    """
    step = 1_000_000 // per_second
    mixed = f"xxhash64(id, {seed})"
    key = f"pmod({mixed}, {keys})"
    slow = f"sin(id / {max(1, events // 7)}.0 + {key})"
    return spark.range(events, numPartitions=max(2, min(64, events // 250_000))).selectExpr(
        f"timestamp_micros({FIRST_TICK} + id * {step}) AS ts",
        f"concat('S', lpad(cast({key} AS string), {len(str(keys - 1))}, '0')) AS symbol",
        # Prices vary with time and differ by symbol, so that charts show something and no two windows are alike.
        f"round(100 + 40 * {slow} + pmod({mixed}, 1000) / 100.0, 2) AS price",
        f"cast(1 + pmod(shiftright({mixed}, 20), 500) AS bigint) AS volume",
    )
