"""Spark's part of the woven intake: it scans, drops unwanted tuples, and evaluates each expression once."""

from __future__ import annotations

from pyspark.sql import DataFrame

from windloom.model.stream import Stream
from windloom.plan.scans import WovenScan
from windloom.spark.intake.native import signature_sql, tick_sql
from windloom.spark.intake.positions import POSITION


def projected(scan: WovenScan, stream: Stream, frame: DataFrame) -> DataFrame:
    """The input of `weave.tuples`: `tick`, the position if tuples are counted, `s0…` (the signature), `x0…`.

    Tuples without a usable time pass every condition, so that they can be counted.
    """
    tick, signature = tick_sql(stream), scan.signature
    if signature.where is not None:
        frame = frame.where(f"({signature.where.sql}) OR {tick} IS NULL")
    words = signature_sql(signature.predicates, is_tested=signature.only_signed)
    found = frame.selectExpr(
        f"{tick} AS tick",
        *([] if scan.counted_by is None else [f"{POSITION} AS position"]),
        *(f"{word} AS s{i}" for i, word in enumerate(words)),
        *(f"{column.guarded_sql(signature.predicates)} AS x{i}" for i, column in enumerate(scan.columns)),
    )
    if signature.only_signed:
        wanted = [f"(s{i} & {bits}L) <> 0L" for i, bits in enumerate(signature.wanting_bits) if bits]
        found = found.where(" OR ".join(["tick IS NULL", *wanted]))
    return found
