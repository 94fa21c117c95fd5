"""A relation in files: read again when they have changed, which is found without Spark if they are on this machine."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from windloom.model.relation import Relation
from windloom.spark.sources.read import files_in, find_source

#: Path, size and time of change of every file.
_Files = tuple[tuple[str, int, int], ...]


class RelationFiles:
    """The argument of `loom.relation` for a path: a function that returns the current DataFrame.

    As long as no file is added, removed or replaced, it returns the same DataFrame, and nothing is read again. Spark
    lists files of other machines; its lists show whether they have changed.
    """

    def __init__(self, spark: SparkSession, relation: Relation, path: str) -> None:
        self._spark, self._relation, self._path = spark, relation, path
        self._files: _Files | None = None
        self._frame: DataFrame | None = None

    def __call__(self) -> DataFrame:
        files = None if "://" in self._path else _listed(Path(self._path))
        if self._frame is None or files is None or files != self._files:
            self._frame, self._files = find_source(self._relation, self._path).read(self._spark), files
        return self._frame


def _listed(path: Path) -> _Files:
    files = files_in(path) if path.is_dir() else [path]
    listed = [(str(file), file.stat()) for file in files if file.exists()]
    return tuple((name, about.st_size, about.st_mtime_ns) for name, about in listed)
