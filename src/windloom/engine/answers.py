"""Answers as a DataFrame: the plan, the sources and the operator behind `loom.answers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windloom.errors import WindloomError
from windloom.optimizer.intake.woven import whole_scans
from windloom.plan.division import division_of
from windloom.plan.obstacles import obstacle, obstacle_beside_others
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan
from windloom.spark.api import DataFrame, SparkSession, StructType
from windloom.spark.errors import as_windloom_errors
from windloom.spark.operator.frames import answers_frame, every_query, one_query, packed, with_schema
from windloom.spark.operator.sources import check_state, default_buckets, tuple_source


def answers_of(
    spark: SparkSession,
    plan: Plan,
    frames: Mapping[str, DataFrame],
    query: str | None,
    *,
    intake: str,
    buckets: int | None,
    schema: StructType | None = None,
) -> DataFrame:
    """Return the answers of one query, or of all queries of the plan, as a frame of the operator.

    `schema` is that of the DataFrame that the query was given as.
    """
    is_stream = _is_stream(frames)
    for each in plan.queries:
        why = obstacle(plan, each, is_stream=is_stream)
        if why is not None:
            works = "loom.start(…)" if is_stream else f"loom.run()['{each.name}']"
            head = f"query '{each.name}' cannot run as a Spark operator yet"
            raise WindloomError(head, why, f"run it in process: {works}")
    for each in plan.queries if query is None else ():
        why = obstacle_beside_others(plan, each)
        if why is not None:
            head = f"the answers of query '{each.name}' cannot be in one frame with others"
            raise WindloomError(head, why, f"ask for it alone: loom.answers('{each.name}')")
    if buckets is not None and (isinstance(buckets, bool) or buckets < 1):
        raise WindloomError(
            f"buckets cannot be {buckets!r}", hint="give the number of parts that state is divided into"
        )
    with as_windloom_errors("the streams", [planned.query for planned in plan.queries]):
        if is_stream:
            check_state(spark)
        planned = packed(whole_scans(plan))
        sources = {}
        for scan in planned.plan.scans:
            assert isinstance(scan, WovenScan)
            sources[scan.number] = tuple_source(scan, plan.stream(scan.stream), frames[scan.stream], intake)
        count = buckets or default_buckets(spark)
        if division_of(plan).divided:
            count = 1  # the rows of a group come from several keys, and meet only in one bucket
        select: Callable[..., DataFrame] = every_query(planned.plan) if query is None else one_query(query)
        answers = answers_frame(planned, sources, count, select)
        return answers if schema is None else with_schema(answers, schema)


def _is_stream(frames: Mapping[str, DataFrame]) -> bool:
    kinds = {frame.isStreaming for frame in frames.values()}
    if len(kinds) > 1:
        streaming = next(name for name, frame in frames.items() if frame.isStreaming)
        other = next(name for name, frame in frames.items() if not frame.isStreaming)
        raise WindloomError(
            f"stream '{streaming}' is a streaming DataFrame, and '{other}' is a batch DataFrame",
            "a query reads either kind, and not both",
            "read both with spark.readStream, or both with spark.read",
        )
    return kinds == {True}
