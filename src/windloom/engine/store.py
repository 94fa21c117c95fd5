"""Answers as Parquet: one table for each set of output columns, rows carry `query`; all of it appears at once.

Tables are written into a directory beside the wanted one, which takes its name when everything is complete: a run that
fails leaves nothing behind. `manifest.json` says which table holds which queries.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windloom.engine.results import with_utc
from windloom.errors import WindloomError
from windloom.plan.physical import Plan, Shape
from windloom.rounds import Block
from windloom.spark.api import SparkSession
from windloom.spark.executors import WideAnswers
from windloom.spark.frames import arrow_frame, ddl_of, finish, output_types

MANIFEST = "manifest.json"


def check_empty(out: Path) -> None:
    """Refuse to mix a run's answers with what a directory already holds."""
    if re.match(r"\w+://", str(out)):
        raise WindloomError(
            f"cannot write to '{out}'", "the answers go to a directory of this machine", "copy it afterwards"
        )
    if out.exists() and not out.is_dir():
        raise WindloomError(f"cannot write to '{out}'", "it is a file", "give a directory")
    if out.is_dir() and any(out.iterdir()):
        raise WindloomError(
            f"the output directory '{out}' is not empty", hint="give a new directory, or empty this one first"
        )


class ParquetStore:
    """Writes blocks as they come. `tables` tells, by number of the shape, where its rows are."""

    def __init__(self, spark: SparkSession, plan: Plan, out: Path) -> None:
        self._spark, self._plan, self._out = spark, plan, out
        self._work = out.parent / f".{out.name}.unfinished-{os.getpid()}"
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._names = {i: _table_name(dict(output_types(spark, shape))) for i, shape in enumerate(plan.shapes)}
        self.tables = {i: str(out / name) for i, name in self._names.items()}

    def __enter__(self) -> ParquetStore:
        try:
            self._work.mkdir(parents=True)
        except OSError as error:
            raise WindloomError(f"cannot write beside '{self._out}'", str(error), "choose another directory") from None
        for name in self._names.values():
            (self._work / name).mkdir(exist_ok=True)
        return self

    def write(self, block: Block) -> None:
        shape = self._plan.shapes[block.shape]
        counts = np.diff(block.bounds)
        query = pa.DictionaryArray.from_arrays(
            pa.array(np.repeat(np.arange(len(counts), dtype=np.int32), counts)), pa.array(block.queries, pa.string())
        )
        table = block.table.add_column(0, "query", query)
        if shape.select is not None:
            table = self._finished(_decoded(table), shape)
        name = self._names[block.shape]
        if name not in self._writers:
            # Dictionary columns are only our way of carrying them: readers see the plain types.
            self._writers[name] = pq.ParquetWriter(
                self._work / name / "part-00000.parquet", _decoded(table.slice(0, 0)).schema, compression="zstd"
            )
        self._writers[name].write_table(_decoded(table))

    def write_wide(self, wide: WideAnswers) -> None:
        """Answers that live on executors: Spark writes them, one table after another."""
        names = pa.table({"number": pa.array(range(len(wide.queries)), pa.int32()), "name": pa.array(wide.queries)})
        lookup = arrow_frame(self._spark, names, "number int, name string")
        for number, shape in enumerate(self._plan.shapes):
            rows = wide.shape_frame(self._plan, number)
            rows = rows.join(lookup.hint("broadcast"), rows["query"] == lookup["number"]).drop("query", "number")
            done = finish(rows.withColumnRenamed("name", "query"), shape, keep=("query",))
            done.write.mode("append").parquet(str(self._work / self._names[number]))

    def _finished(self, table: pa.Table, shape: Shape) -> pa.Table:
        frame = arrow_frame(self._spark, table, ddl_of(shape, with_query=True))
        return with_utc(finish(frame, shape, keep=("query",)).toArrow())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()
        if kind is not None:
            shutil.rmtree(self._work, ignore_errors=True)
            return
        self._fill_empty_tables()
        (self._work / MANIFEST).write_text(json.dumps(self._manifest(), indent=2, ensure_ascii=False) + "\n")
        if self._out.exists():
            self._out.rmdir()  # checked to be empty; a rename cannot replace a directory everywhere
        self._work.rename(self._out)

    def _fill_empty_tables(self) -> None:
        """A table without rows still has a schema to read."""
        for number, name in self._names.items():
            if not any((self._work / name).iterdir()):
                shape = self._plan.shapes[number]
                empty = self._spark.createDataFrame([], ddl_of(shape, with_query=True))
                schema = with_utc(finish(empty, shape, keep=("query",)).toArrow())
                pq.write_table(schema, self._work / name / "part-00000.parquet")

    def _manifest(self) -> dict[str, object]:
        tables: dict[str, dict[str, object]] = {}
        for number, name in self._names.items():
            queries = [planned.name for planned in self._plan.queries if planned.shape == number]
            columns = dict(output_types(self._spark, self._plan.shapes[number]))
            entry = tables.setdefault(name, {"columns": {"query": "string", **columns}, "queries": []})
            entry["queries"] = sorted([*entry["queries"], *queries])  # type: ignore[misc]
        return {"format": "windloom-answers/1", "tables": tables}


def _decoded(table: pa.Table) -> pa.Table:
    fields = [
        pa.field(one.name, one.type.value_type) if pa.types.is_dictionary(one.type) else one for one in table.schema
    ]
    return table.cast(pa.schema(fields))


def _table_name(columns: dict[str, str]) -> str:
    """Readable, safe as a directory, and different for different columns or types."""
    readable = "_".join(name for name in columns if name not in ("window_start", "window_end"))
    slug = re.sub(r"[^a-z0-9]+", "_", readable.lower()).strip("_")[:60] or "windows"
    digest = hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:6]
    return f"{slug}-{digest}"
