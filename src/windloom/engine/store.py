"""Answers as Parquet: one table for each set of output columns, rows carry `query`; all of it appears at once.

Tables are written into a directory of another name, and moved to where they are wanted when everything is complete: a
run that fails leaves nothing behind. `manifest.json` says which table holds which queries.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windloom.engine.finishing import queries_text
from windloom.engine.tables import AnswerTables
from windloom.errors import WindloomError
from windloom.plan.physical import Plan
from windloom.rounds import Block
from windloom.spark.answers.executors import WideAnswers
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import arrow_frame, finish
from windloom.spark.unions import union_all

MANIFEST = "manifest.json"
_FIRST_FILE = "part-00000.parquet"

#: Rows of a table that Spark writes into one file.
_FILE_ROWS = 5_000_000
#: Shapes of equal columns that Spark writes together: more would be a plan too long to be read.
_UNITED_SHAPES = 50


def check_empty(out: Path) -> None:
    """Refuse to mix a run's answers with what a directory already holds."""
    if re.match(r"\w{2,}:/", str(out)):
        raise WindloomError(
            f"cannot write to '{out}'", "the answers go to a directory of this machine", "copy it afterwards"
        )
    try:
        if out.exists() and not out.is_dir():
            raise WindloomError(f"cannot write to '{out}'", "it is a file", "give a directory")
        held = sorted(one.name for one in out.iterdir()) if out.exists() else []
    except OSError as error:
        raise _unwritable(out, error) from None
    if held:
        raise WindloomError(
            f"the output directory '{out}' is not empty",
            f"it holds {len(held):,} {'entry' if len(held) == 1 else 'entries'}, such as '{held[0]}'",
            "give a new directory, or empty this one first",
        )


class ParquetStore:
    """Writes blocks as they come. `tables` tells, by number of the shape, where its rows are."""

    def __init__(self, spark: SparkSession, plan: Plan, out: Path) -> None:
        check_empty(out)
        self._spark, self._plan = spark, plan
        self._out = out.absolute()  # Spark's own working directory may be another
        # An existing directory may be the root of a volume, or somebody's place: it is filled, not replaced.
        self._fills = out.exists()
        name = f".{self._out.name}.unfinished-{os.getpid()}"
        self._work = (self._out if self._fills else self._out.parent) / name
        self._made: list[Path] = []  # parents that were not there
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._answers = AnswerTables(spark)
        self._names = [self._answers.name(shape) for shape in plan.shapes]
        self.tables = [self._out / name for name in self._names]

    def __enter__(self) -> ParquetStore:
        self._made = [one for one in self._work.parents if not one.exists()]
        shutil.rmtree(self._work, ignore_errors=True)  # left by a process of the same number that was killed
        try:
            for name in self._names:
                (self._work / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._remove()
            raise _unwritable(self._out, error) from None
        return self

    def write(self, blocks: Iterable[Block]) -> None:
        for shape, table in self._answers.pieces(self._plan, blocks):
            name = self._answers.name(shape)
            if name not in self._writers:
                file = self._work / name / _FIRST_FILE
                self._writers[name] = pq.ParquetWriter(file, table.schema, compression="zstd")
            self._writers[name].write_table(table)

    def write_wide(self, wide: WideAnswers, rows: int) -> None:
        """Answers that live on executors: Spark writes them, one table after another, in few files."""
        names = pa.table({"number": pa.array(range(len(wide.queries)), pa.int32()), "name": pa.array(wide.queries)})
        lookup = arrow_frame(self._spark, names, "number int, name string")
        for name in dict.fromkeys(self._names):
            shapes = [number for number, own in enumerate(self._names) if own == name]
            for part in range(0, len(shapes), _UNITED_SHAPES):
                numbers = shapes[part : part + _UNITED_SHAPES]
                queries = [planned.name for planned in self._plan.queries if planned.shape in numbers]
                with as_windloom_errors(queries_text(queries)):
                    done = union_all([self._named(wide, number, lookup) for number in numbers])
                    done = done.coalesce(1 + rows // _FILE_ROWS)
                    done.write.mode("append").parquet(f"file://{self._work / name}")

    def _named(self, wide: WideAnswers, number: int, lookup: DataFrame) -> DataFrame:
        found = wide.shape_frame(self._plan, number)
        found = found.join(lookup.hint("broadcast"), found["query"] == lookup["number"]).drop("query", "number")
        return finish(found.withColumnRenamed("name", "query"), self._plan.shapes[number], keep=("query",))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for writer in self._writers.values():
                writer.close()
            if kind is None:
                self._complete()
                self._publish()
        except OSError as problem:
            error = error or problem
        except BaseException:
            self._remove()
            raise
        if error is not None:
            self._remove()
        if isinstance(error, OSError):  # a full disk, a volume that went away
            raise _unwritable(self._out, error) from error

    def _complete(self) -> None:
        """A table without rows still has a schema to read; what Spark notes for itself is of no use to readers."""
        for note in [one for one in self._work.rglob("*") if one.name.startswith(("_", ".")) and one.is_file()]:
            note.unlink()
        for number, name in enumerate(self._names):
            if not any((self._work / name).iterdir()):
                pq.write_table(self._answers.empty(self._plan.shapes[number]), self._work / name / _FIRST_FILE)
        text = json.dumps(self._manifest(), indent=2, ensure_ascii=False) + "\n"
        (self._work / MANIFEST).write_text(text, encoding="utf-8")

    def _publish(self) -> None:
        if not self._fills:
            self._work.rename(self._out)
            return
        for entry in sorted(self._work.iterdir(), key=lambda one: one.name == MANIFEST):
            entry.rename(self._out / entry.name)  # the manifest last: where it is, everything is
        self._work.rmdir()

    def _remove(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)
        for parent in self._made:
            try:
                parent.rmdir()
            except OSError:  # somebody else uses it by now
                return

    def _manifest(self) -> dict[str, object]:
        tables: dict[str, dict[str, Any]] = {}
        for number, name in enumerate(self._names):
            queries = [planned.name for planned in self._plan.queries if planned.shape == number]
            columns = self._answers.columns(self._plan.shapes[number])
            entry = tables.setdefault(name, {"columns": columns, "queries": []})
            entry["queries"] = sorted([*entry["queries"], *queries])
        return {"format": "windloom-answers/1", "tables": tables}


def _unwritable(out: Path, error: OSError) -> WindloomError:
    return WindloomError(f"cannot write to '{out}'", str(error), "choose another directory, or make room")
