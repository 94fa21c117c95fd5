"""Answers of a batch run as Parquet: the files of one round, all of which appear at once.

They are written into a directory with another name, and moved to their target when everything is complete: a run that
fails leaves nothing behind.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from windloom.durable.storage import LocalStorage, StorageError
from windloom.engine.sinks.finishing import queries_text
from windloom.engine.sinks.manifest import MANIFEST
from windloom.engine.sinks.parquet import ParquetSink, round_file
from windloom.engine.sinks.sink import RoundAnswers
from windloom.engine.sinks.tables import AnswerTables
from windloom.errors import WindloomError
from windloom.model.emission import Emits
from windloom.plan.physical import Plan
from windloom.spark.answers.executors import WideAnswers
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import arrow_frame, finish
from windloom.spark.unions import union_all

#: How many rows of a table Spark writes into one file.
_FILE_ROWS = 5_000_000
#: How many shapes with equal columns Spark writes together: more would make its plan too long to read.
_UNITED_SHAPES = 50


def check_empty(out: Path) -> None:
    """Raise if the directory already holds something: a run's answers are not mixed with other files."""
    if re.match(r"\w{2,}:/", str(out)):
        raise WindloomError(
            f"cannot write to '{out}'", "the answers go to a directory of this machine", "copy it afterwards"
        )
    try:
        if out.exists() and not out.is_dir():
            raise WindloomError(f"cannot write to '{out}'", "it is a file", "give a directory")
        entries = sorted(path.name for path in out.iterdir()) if out.exists() else []
    except OSError as error:
        raise _unwritable(out, error) from None
    if entries:
        raise WindloomError(
            f"the output directory '{out}' is not empty",
            f"it holds {len(entries):,} {'entry' if len(entries) == 1 else 'entries'}, such as '{entries[0]}'",
            "give a new directory, or empty this one first",
        )


class ParquetStore:
    """The Parquet sink over a hidden directory. `tables` gives the final place of each shape's rows, by its number."""

    pieces = None

    def __init__(self, spark: SparkSession, plan: Plan, answers: AnswerTables, out: Path) -> None:
        check_empty(out)
        self._spark, self._plan, self._answers = spark, plan, answers
        self._out = out.absolute()  # Spark's own working directory may be another
        # An existing directory may be the root of a volume, or in use by others: it is filled, not replaced.
        self._fills = out.exists()
        name = f".{self._out.name}.unfinished-{os.getpid()}"
        self._work = (self._out if self._fills else self._out.parent) / name
        self._made: list[Path] = []  # parents that did not exist
        self._names = [answers.name(shape) for shape in plan.shapes]
        self.tables = [self._out / name for name in self._names]
        # What a crash leaves behind is not used, so nothing must be synced before the directory has its final name.
        self._storage = LocalStorage(self._work, syncs=False)

    def __enter__(self) -> ParquetStore:
        self._made = [parent for parent in self._work.parents if not parent.exists()]
        shutil.rmtree(self._work, ignore_errors=True)  # left by a killed process with the same process id
        try:
            for name in self._names:
                (self._work / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._remove()
            raise _unwritable(self._out, error) from None
        return self

    def write(self, round: int, answers: RoundAnswers) -> None:
        sink = ParquetSink(self._storage, str(self._out), None)
        if answers.wide is None:
            sink.write(round, answers)
        else:
            self._write_wide(answers.wide)
            sink.describe(answers.tables)
        self._complete(round)

    def rows(self, table: str) -> pa.Table | None:
        """Return nothing: rows can be read only when the run is complete."""
        return None

    def close(self) -> None:
        """Do nothing: the files are shown when the run has ended."""

    def _write_wide(self, wide: WideAnswers) -> None:
        """Let Spark write answers that live on executors, one table after another, in few files."""
        names = pa.table({"number": pa.array(range(len(wide.queries)), pa.int32()), "name": pa.array(wide.queries)})
        lookup = arrow_frame(self._spark, names, "number int, name string")
        for name in dict.fromkeys(self._names):
            shapes = [number for number, table in enumerate(self._names) if table == name]
            for part in range(0, len(shapes), _UNITED_SHAPES):
                numbers = shapes[part : part + _UNITED_SHAPES]
                queries = [planned.name for planned in self._plan.queries if planned.shape in numbers]
                with as_windloom_errors(queries_text(queries)):
                    done = union_all(
                        [data_frame for number in numbers for data_frame in self._named(wide, number, lookup)]
                    )
                    done = done.coalesce(1 + wide.totals.rows // _FILE_ROWS)
                    done.write.mode("append").parquet(f"file://{self._work / name}")

    def _named(self, wide: WideAnswers, number: int, lookup: DataFrame) -> list[DataFrame]:
        """Return the finished rows of a shape with the names of their queries."""
        if self._plan.shapes[number].emits is not Emits.FINAL:
            queries = [planned for planned in self._plan.queries if planned.shape == number]
            return [wide.reported(self._plan, query, with_query=True) for query in queries]
        frame = wide.shape_frame(self._plan, number)
        frame = frame.join(lookup.hint("broadcast"), frame["query"] == lookup["number"]).drop("query", "number")
        return [finish(frame.withColumnRenamed("name", "query"), self._plan.shapes[number], keep=("query",))]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self._publish()
                return
            except OSError as problem:
                error = problem
            except BaseException:
                self._remove()
                raise
        self._remove()
        cause = error.__cause__ if isinstance(error, StorageError) else error
        if isinstance(cause, OSError):  # a full disk, a volume that went away
            raise _unwritable(self._out, cause) from cause

    def _complete(self, round: int) -> None:
        """Write an empty file, with a schema, for a table without rows; remove files that Spark writes for itself."""
        for note in [path for path in self._work.rglob("*") if path.name.startswith(("_", ".")) and path.is_file()]:
            note.unlink()
        for number, name in enumerate(self._names):
            if not any((self._work / name).iterdir()):
                pq.write_table(self._answers.empty(self._plan.shapes[number]), self._work / name / round_file(round))

    def _publish(self) -> None:
        if not self._fills:
            self._work.rename(self._out)
            return
        for entry in sorted(self._work.iterdir(), key=lambda path: path.name == MANIFEST):
            entry.rename(self._out / entry.name)  # the manifest is last: if it is there, everything is there
        self._work.rmdir()

    def _remove(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)
        for parent in self._made:
            try:
                parent.rmdir()
            except OSError:  # another process uses it by now
                return


def _unwritable(out: Path, error: OSError) -> WindloomError:
    return WindloomError(f"cannot write to '{out}'", str(error), "choose another directory, or make room")
