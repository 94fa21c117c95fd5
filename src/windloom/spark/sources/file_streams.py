"""Follows a directory: the files that appear in it, as a streaming DataFrame with the declared columns of a stream.

The files that are there at the start determine the format and the columns; later files must be like them. Files should
appear complete (be renamed into place), because a file is read once, when it is first seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from windloom.errors import WindloomError
from windloom.model.stream import Stream
from windloom.spark.errors import as_windloom_errors
from windloom.spark.sources.read import FORMATS, Source, files_in, find_format, local_path, look_at, separator_of


@dataclass(frozen=True, slots=True)
class FileStream:
    """A directory to follow: `pattern` says which names count, `is_typed` whether there are files with types."""

    source: Source
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
                reader = reader.schema(spark.read.format(source.format).options(**options).load(source.path).schema)
            else:
                reader = reader.schema(source.schema(source.names))
            if max_files is not None:
                reader = reader.option("maxFilesPerTrigger", max_files)
            frame = reader.load(source.path)
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
        return _unseen(stream, path, _wanted(stream, path, pattern))
    if not directory.is_dir():
        raise WindloomError(
            f"stream '{stream.name}': there is no directory '{directory}' to follow",
            "it is a file" if directory.exists() else f"looked for {directory.absolute()}",
            "give the directory that files appear in"
            + ("; without --follow a file is read as a batch" if directory.exists() else ""),
        )
    files = [file for file in files_in(directory) if pattern is None or fnmatchcase(file.name, pattern)]
    if not files:
        return _unseen(stream, local_path(directory), _wanted(stream, str(directory), pattern))
    source = look_at(stream, directory, files)
    return FileStream(source, pattern or _endings(files), source.format not in ("csv", "json"))


def _unseen(stream: Stream, path: str, pattern: str) -> FileStream:
    """Return a directory without files: text is assumed to have a header, and columns to be as declared."""
    kind, suffix = find_format([Path(pattern)], stream)
    return FileStream(Source(stream, path, kind, separator_of(suffix), has_header=True), pattern)


def _wanted(stream: Stream, path: str, pattern: str | None) -> str:
    if pattern is None:
        raise WindloomError(
            f"stream '{stream.name}': nothing tells the format of the files in '{path}'",
            "names that begin with '.' or '_' do not count, and there is no other file yet",
            f"say which files are to come, for example --stream '{stream.name}={path.rstrip('/')}/*.parquet'",
        )
    return pattern


def _endings(files: Sequence[Path]) -> str:
    """Return a pattern for names like these; other files that appear in the directory are ignored."""
    endings = sorted({"".join(_ending(file)) for file in files})
    return f"*{endings[0]}" if len(endings) == 1 else "*{" + ",".join(endings) + "}"


def _ending(file: Path) -> Sequence[str]:
    """Return the part of the name from the ending that shows the format, such as `.csv.gz`."""
    suffixes = file.suffixes
    first = next(i for i in reversed(range(len(suffixes))) if suffixes[i].lower() in FORMATS)
    return suffixes[first:]
