"""Answers that a run or a stream has left in a directory of Parquet, by the name of their query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from windloom.engine.results import unknown_query
from windloom.engine.views import AnswerViews, rows_table
from windloom.errors import WindloomError
from windloom.model.clauses import REPORT
from windloom.sinks.parquet import read_manifest
from windloom.sinks.sink import replaced
from windloom.sinks.tables import plain
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.frames import session_zone
from windloom.spark.session import local_session
from windloom.spark.sources.read import local_path


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """What a directory holds of a query: its text, how many rows, and from where to where their windows reach."""

    text: str
    rows: int = 0
    first: object = None
    last: object = None


class AnswerFolder(AnswerViews, Mapping[str, DataFrame]):
    """`folder["q"]` is a Spark DataFrame; `folder.arrow("q")`, `.pandas`, `.polars` and `.plot` need no Spark."""

    def __init__(self, out: str | Path, spark: SparkSession | None = None) -> None:
        self._out, self._given = Path(out), spark
        self._queries: dict[str, dict[str, Any]] = read_manifest(out)["queries"]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    def __contains__(self, name: object) -> bool:
        return name in self._queries

    def __getitem__(self, name: str) -> DataFrame:
        files = self._files(name)
        if REPORT in files.schema.names:  # reports replace each other, whichever program reads them
            return self._spark.createDataFrame(self.arrow(name))
        rows = self._spark.read.parquet(local_path(self._out / self._about(name)["table"]))
        return rows.where(rows["query"] == name).drop("query")

    def arrow(self, name: str) -> pa.Table:
        """Return the rows of a query, in the order of rounds; of EMIT EARLY, the last report of each window."""
        rows = self._files(name).to_table(filter=pc.field("query") == name).drop_columns("query")
        return replaced(rows, self.grouping(name)) if REPORT in rows.column_names else rows

    @property
    def zone(self) -> str:
        spark = self._given or SparkSession.getActiveSession()
        return "UTC" if spark is None else session_zone(spark)

    def grouping(self, name: str) -> list[str]:
        return list(self._about(name)["by"])

    def summary(self) -> dict[str, StoredQuery]:
        """Return what is there of each query; only the edges of windows are read."""
        parts: list[pa.Table] = []
        for folder in sorted({about["table"] for about in self._queries.values()}):
            for batch in _dataset(self._out / folder).to_batches(columns=["query", "window_start", "window_end"]):
                rows = pa.table(
                    [batch["query"], batch["window_start"].cast(pa.int64()), batch["window_end"].cast(pa.int64())],
                    ["query", "first", "last"],
                )
                counted = rows.group_by("query").aggregate([("first", "count"), ("first", "min"), ("last", "max")])
                kind = str(batch.schema.field("window_end").type)
                parts.append(counted.append_column("kind", pa.repeat(kind, len(counted))))
        found: dict[str, StoredQuery] = {name: StoredQuery(about["text"]) for name, about in self._queries.items()}
        if parts:
            by = pa.concat_tables(parts).group_by(["query", "kind"])
            figures = [("first_count", "sum"), ("first_min", "min"), ("last_max", "max")]
            for row in by.aggregate(figures).to_pylist():
                first, last = (_edge(row[name], row["kind"]) for name in ("first_min_min", "last_max_max"))
                text = found[row["query"]].text
                found[row["query"]] = StoredQuery(text, row["first_count_sum"], first, last)
        return found

    def _about(self, name: str) -> dict[str, Any]:
        if name not in self._queries:
            raise unknown_query(name, list(self._queries))
        return self._queries[name]

    def _files(self, name: str) -> ds.Dataset:
        return _dataset(self._out / self._about(name)["table"])

    @property
    def _spark(self) -> SparkSession:
        self._given = self._given or SparkSession.getActiveSession() or local_session()
        return self._given

    def __repr__(self) -> str:
        return f"<answers of {len(self):,} {'query' if len(self) == 1 else 'queries'} in '{self._out}'>"

    def _repr_html_(self) -> str:
        found = self.summary().items()
        rows = [(name, each.rows, each.first, each.last, " ".join(each.text.split())) for name, each in found]
        return rows_table(f"Answers in {self._out}", ("query", "rows", "from", "until", "text"), rows)


def read(out: str | Path, spark: SparkSession | None = None) -> AnswerFolder:
    """Return the answers that `loom.run(out=…)`, a stream with the sink "parquet" or `windloom run --out` has written.

    `read(out)["q"]` is a Spark DataFrame, on `spark` if it is given, otherwise on the session that there is.
    """
    return AnswerFolder(out, spark)


def _dataset(folder: Path) -> ds.Dataset:
    """Return the files of a table, in the order of rounds, without dictionaries."""
    try:
        files: ds.Dataset = ds.dataset(folder, format="parquet")
        return files.replace_schema(plain(files.schema.empty_table()).schema)
    except (OSError, pa.ArrowException) as error:
        first = str(error).partition("\n")[0]
        raise WindloomError(f"cannot read '{folder}'", first, "write the answers again, to a new directory") from None


def _edge(tick: int, kind: str) -> object:
    """Return an edge of a window as a person reads it: an instant, or a position."""
    return pa.scalar(tick).cast(pa.timestamp("us")).as_py() if kind.startswith("timestamp") else tick
