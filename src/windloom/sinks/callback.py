"""Callback: calls a function of the user with the rows of a round as Spark DataFrames.

The function is called once for each table that a round fills. Queries with equal output columns share a table, whose
column `query` names the query of each row. After a crash the last round is repeated, with the same number and the same
rows, so what the function does must be safe to repeat for the same number.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace
from windloom.spark.api import DataFrame
from windloom.spark.frames import arrow_frame, ddl_of_columns


class CallbackSink(Sink):
    def __init__(self, place: SinkPlace, function: Callable[[DataFrame, int], object]) -> None:
        self._spark, self._function = place.spark, function

    def write(self, round: int, answers: RoundAnswers) -> None:
        parts_by_table: dict[str, list[pa.Table]] = {}
        for name, rows in answers.rows():
            parts_by_table.setdefault(name, []).append(rows)
        for name, parts in parts_by_table.items():
            ddl = ddl_of_columns(answers.tables[name].columns)
            self._function(arrow_frame(self._spark, pa.concat_tables(parts), ddl), round)
