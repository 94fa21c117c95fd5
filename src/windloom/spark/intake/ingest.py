"""Unites several streams in one streaming frame, and splits a micro-batch of it into one frame per stream again.

One Spark query reads all streams of a loom, so that a round is one micro-batch of all of them and replays as one.
Columns share slots by type; `stream` is the number of a tuple's stream. All columns are kept, because a later query may
ask for any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from windloom.model.expression import Expression
from windloom.spark.unions import unite


@dataclass(frozen=True, slots=True)
class Ingest:
    """`frame` is what the Spark query reads; `columns` has (slot, column) pairs of each stream, in order."""

    frame: DataFrame
    columns: Mapping[str, tuple[tuple[str, str], ...]]

    def split(self, batch: DataFrame) -> dict[str, DataFrame]:
        """The tuples of a micro-batch, by stream, with the stream's own columns."""
        if len(self.columns) == 1:
            return {next(iter(self.columns)): batch}
        return {
            name: batch.where(f"stream = {number}").selectExpr(*(f"{slot} AS {_quoted(own)}" for slot, own in columns))
            for number, (name, columns) in enumerate(self.columns.items())
        }


def ingest_of(frames: Mapping[str, DataFrame]) -> Ingest:
    if len(frames) == 1:
        ((name, frame),) = frames.items()
        return Ingest(frame, {name: tuple((column, column) for column in frame.columns)})
    united, slots = unite(list(frames.values()), "stream")
    pairs = {
        name: tuple(zip(own, frame.columns, strict=True))
        for (name, frame), own in zip(frames.items(), slots, strict=True)
    }
    return Ingest(united, pairs)


def _quoted(column: str) -> str:
    return Expression.of_column(column).sql
