"""Files of a stream: directories that are followed, and Parquet files that the driver can read without Spark.

The files that appear in a directory become a streaming DataFrame with the declared columns of a stream. Those that are
there at the start determine the format and the columns; later files must be like them. Files should appear complete (be
renamed into place), because a file is read once, when it is first seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.spark.errors import as_windloom_errors
from windloom.spark.sources.nanoseconds import in_microseconds, read_as_numbers
from windloom.spark.sources.read import FORMATS, DataSource, files_in, find_format, local_path, look_at
from windloom.weave.files import readable_columns

_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
#: Options that do not change what is read; those of streams decide which files belong to which micro-batch.
_OPTIONS = {"path", "paths"}
_STREAM_OPTIONS = {
    *("maxfilespertrigger", "maxbytespertrigger", "latestfirst", "filenameonly", "maxfileage", "maxcachedfiles"),
    *("discardcachedinputratio", "cleansource", "sourcearchivedir", "basepath", "__globpaths__"),
}
#: Options that say which files a stream follows, and in which micro-batch they come.
_FOLLOW_OPTIONS = {
    *("maxfilespertrigger", "maxbytespertrigger", "latestfirst", "filenameonly", "maxfileage", "maxcachedfiles"),
    *("discardcachedinputratio", "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter"),
}
#: The property in which the thread of a micro-batch finds the streaming query that it belongs to.
_QUERY_ID = "sql.streaming.queryId"
#: With this setting, Spark converts times written by other programs to the zone of the session.
_CONVERSION = "spark.sql.parquet.int96TimestampConversion"


@dataclass(frozen=True, slots=True)
class FileStream:
    """A directory to follow: `pattern` says which names count, `is_typed` whether there are files with types."""

    source: DataSource
    pattern: str
    is_typed: bool = False

    def read(self, spark: SparkSession, max_files: int | None = None) -> DataFrame:
        """Return the streaming frame; a micro-batch takes at most `max_files` new files."""
        source = self.source
        # Every text file has its own header, and a later file may have other columns; Spark compares them.
        options = {**source.options(enforceSchema=False), "pathGlobFilter": self.pattern}
        with as_windloom_errors(f"stream '{source.stream.name}'"):
            reader = spark.readStream.format(source.format).options(**options)
            if self.is_typed:
                # The types of the files are used, not the declared types, so that a difference is reported now and not
                # by a round.
                read_as_numbers(spark, source.nanoseconds)
                reader = reader.schema(spark.read.format(source.format).options(**options).load(source.path).schema)
            else:
                reader = reader.schema(source.schema(source.names))
            if max_files is not None:
                reader = reader.option("maxFilesPerTrigger", max_files)
            frame = in_microseconds(reader.load(source.path), source.nanoseconds)
            return frame if self.is_typed else source.select(frame, source.names)


def find_file_stream(stream: Stream, path: str) -> FileStream:
    """Inspect a directory to follow, without Spark; `in/*.csv` says which files count, even if there is none yet.

    A directory may be a URL of a file system that Spark reaches; it cannot be inspected, so it needs such a pattern.
    """
    directory, pattern = Path(path), None
    if any(letter in directory.name for letter in "*?[") and not directory.exists():
        path, _, pattern = path.rpartition("/")
        directory = Path(path or ".")
    if "://" in path:
        return _unseen(stream, path, path, pattern)
    if not directory.is_dir():
        raise WindloomError(
            f"stream '{stream.name}': there is no directory '{directory}' to follow",
            "it is a file" if directory.exists() else f"looked for {directory.absolute()}",
            "give the directory that files appear in"
            + ("; without --follow a file is read as a batch" if directory.exists() else ""),
        )
    files = [file for file in files_in(directory) if pattern is None or fnmatchcase(file.name, pattern)]
    if not files:
        return _unseen(stream, local_path(directory), str(directory), pattern)
    source = look_at(stream, directory, files)
    if pattern is None:
        # Names that end like these; other files that appear in the directory are ignored.
        endings = set()
        for suffixes in (file.suffixes for file in files):
            first = next(i for i in reversed(range(len(suffixes))) if suffixes[i].lower() in FORMATS)
            endings.add("".join(suffixes[first:]))  # such as `.csv.gz`
        pattern = f"*{endings.pop()}" if len(endings) == 1 else "*{" + ",".join(sorted(endings)) + "}"
    return FileStream(source, pattern, source.format not in ("csv", "json"))


def _unseen(stream: Stream, place: str, path: str, pattern: str | None) -> FileStream:
    """Return a directory without files: text is assumed to have a header, and columns to be as declared."""
    if pattern is None:
        raise WindloomError(
            f"stream '{stream.name}': nothing tells the format of the files in '{path}'",
            "names that begin with '.' or '_' do not count, and there is no other file yet",
            f"say which files are to come, for example --stream '{stream.name}={path.rstrip('/')}/*.parquet'",
        )
    return FileStream(DataSource(stream, place, *find_format([Path(pattern)], stream), has_header=True), pattern)


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files of this machine of a frame that selects columns of Parquet files, and does nothing else."""

    frame: DataFrame
    location: Any  # Spark's index of the files

    @classmethod
    def of(cls, frame: DataFrame) -> LocalFiles | None:
        """Return the files of a frame; None if the frame does anything else, or executors may be on other machines."""
        try:
            if not str(frame.sparkSession.sparkContext.master).startswith("local"):
                return None
            plan = frame._jdf.queryExecution().analyzed()
            while _only_selects(plan):
                plan = plan.child()
            location = _location(plan, _OPTIONS)
        except Exception:  # a remote session does not show its plan
            return None
        files = None if location is None else cls(frame, location)
        return files if files is not None and files.paths() else None

    def paths(self) -> list[str] | None:
        """Return the files in Spark's order; None if Spark would not read them now, because it holds their rows."""
        is_converted = self.frame.sparkSession.conf.get(_CONVERSION, "false") == "true"
        if is_converted or _is_persisted(self.frame):
            return None
        return _paths(self.frame.sparkSession, self.location)

    def columns(self, kinds: Mapping[str, DataType]) -> frozenset[str]:
        """Return columns that have their type in the first file; other files may differ, and are checked when read."""
        try:
            paths = self.paths()
            return readable_columns(pq.read_metadata(paths[0]).schema, kinds) if paths else frozenset()
        except (OSError, pa.ArrowException):
            return frozenset()


@dataclass(frozen=True, slots=True)
class StreamedFiles:
    """The Parquet files of this machine that a streaming frame follows, if it does nothing but select columns."""

    spark: SparkSession
    path: str
    options: Mapping[str, str]

    @classmethod
    def of(cls, frame: DataFrame) -> StreamedFiles | None:
        """Return the files of a frame; None if the frame does anything else, or executors may be on other machines."""
        try:
            if not str(frame.sparkSession.sparkContext.master).startswith("local"):
                return None
            plan = frame._jdf.queryExecution().analyzed()
            while _only_selects(plan) or _name(plan) == "EventTimeWatermark":
                plan = plan.child()
            source = plan.dataSource()
            if _name(plan) != "StreamingRelation" or str(source.className()).lower() != "parquet":
                return None
            pairs, options = source.options().toSeq(), dict[str, str]()
            for index in range(pairs.length()):
                options[str(pairs.apply(index)._1()).lower()] = str(pairs.apply(index)._2())
        except Exception:  # a remote session does not show its plan
            return None
        path = options.pop("path", "")
        parts = urlsplit(path)
        is_plain = parts.scheme in ("", "file") and not parts.netloc and options.keys() <= _FOLLOW_OPTIONS
        return cls(frame.sparkSession, path, options) if path and is_plain else None

    def names(self) -> DataFrame:
        """Return the stream of the names of these files, in the micro-batches in which their rows would come."""
        reader = self.spark.readStream.format("binaryFile").options(**self.options)
        schema = "path string, modificationTime timestamp, length long, content binary"
        return reader.schema(schema).load(self.path).select("path")  # so their contents are not read


def micro_batch_paths(spark: SparkSession, depths: dict[str, int | None]) -> list[str] | None:
    """Return the files of this thread's micro-batch, if it selects columns of files and does nothing else.

    The frame that Spark passes on does not show where its tuples come from, but the streaming query has the plan of
    the micro-batch that it has begun. None if the plan does anything else, or executors may be on other machines.
    `depths` remembers, by query, how deep the reading of files lies in the plan, None if there is none: looking at
    every column takes a while, and all micro-batches of a query have the same plan over different files.
    """
    try:
        query = str(spark.sparkContext.getLocalProperty(_QUERY_ID))
        if depths.get(query, 0) is None or spark.conf.get(_CONVERSION, "false") == "true":
            return None
        plan = spark._jsparkSession.streams().get(query).streamingQuery().lastExecution().analyzed()
        if query not in depths:
            depth, node = 0, plan
            while _name(node) == "WriteToMicroBatchDataSourceV1" or _only_selects(node):
                node, depth = node.child(), depth + 1
            is_local = str(spark.sparkContext.master).startswith("local")
            is_plain = is_local and _location(node, _OPTIONS | _STREAM_OPTIONS) is not None
            depths[query] = depth if is_plain else None
        for _ in range(depths[query] or 0):
            plan = plan.child()
        return None if depths[query] is None else _paths(spark, plan.relation().location())
    except Exception:  # these are internals of Spark, so any step may be missing
        return None


def _paths(spark: SparkSession, location: Any) -> list[str] | None:
    jvm: Any = spark.sparkContext._jvm
    # All names in one call, however many there are; they are encoded, and hold no blanks.
    listed = str(jvm.org.apache.hadoop.util.StringUtils.join(" ", location.inputFiles()))
    parts = [urlsplit(address) for address in listed.split(" ") if address]
    if any(part.scheme != "file" or part.netloc or part.query or part.fragment for part in parts):
        return None
    return [unquote(part.path) for part in parts]


def _location(plan: Any, harmless: set[str]) -> Any | None:
    """Return where the files are, if the plan reads plain Parquet files, with no options other than `harmless`."""
    if _name(plan) != "LogicalRelation" or not plan.catalogTable().isEmpty():
        return None
    relation = plan.relation()
    if _name(relation) != "HadoopFsRelation" or str(relation.fileFormat().getClass().getName()) != _FORMAT:
        return None
    options = {str(name).lower() for name in str(relation.options().keys().mkString("\n")).split("\n") if name}
    is_plain = relation.partitionSchema().length() == 0 and relation.bucketSpec().isEmpty() and options <= harmless
    return relation.location() if is_plain else None


def _is_persisted(frame: DataFrame) -> bool:
    """Return whether Spark has persisted the frame, or one that it selects from: the files may have changed since."""
    if frame.sparkSession._jsparkSession.sharedState().cacheManager().isEmpty():
        return False
    # A new frame is made, because a frame looks for persisted data only when it is first used.
    plan = frame.select("*")._jdf.queryExecution().withCachedData()
    while _name(plan) == "Project":
        plan = plan.child()
    return _name(plan) == "InMemoryRelation"


def _only_selects(plan: Any) -> bool:
    """Return whether the plan selects columns under their own names, and does nothing else."""
    if _name(plan) != "Project":
        return False
    for index in range(plan.projectList().length()):
        column = plan.projectList().apply(index)
        if _name(column) == "Alias":  # in a micro-batch, Spark renumbers columns by aliases of the same name
            if str(column.name()) != str(column.child().name()):
                return False
            column = column.child()
        if _name(column) != "AttributeReference":
            return False
    return True


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())
