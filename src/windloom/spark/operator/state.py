"""Reads the state of an operator from a checkpoint of Spark, stopped or running, with Spark's own reader of state."""

from __future__ import annotations

import pickle
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from windloom.errors import WindloomError
from windloom.operator.buckets import HEAD, PLAN
from windloom.operator.contents import StateContents, contents_of
from windloom.plan.plan import Plan
from windloom.spark.errors import quiet
from windloom.spark.operator.frames import STATE


def read_state(spark: SparkSession, checkpoint: str) -> StateContents:
    """Return what the operator's state holds after the last micro-batch that is committed."""
    what = f"'{checkpoint}' is not the checkpoint of an operator"
    if "://" not in checkpoint and not Path(checkpoint, "state").is_dir():
        raise WindloomError(what, "it has no directory 'state'", "give the checkpointLocation of the streaming query")
    reader = spark.read.format("statestore").option("path", checkpoint).option("stateVarName", STATE)
    try:
        with quiet():
            rows = reader.load().where(f"user_map_key.name IN ('{HEAD}', '{PLAN}')").collect()
    except PySparkException as error:
        fact = str(error).partition("\n")[0]
        raise WindloomError(what, fact, "give the checkpointLocation of a query over loom.answers(…)") from None
    blobs = [(row["user_map_key"]["name"], bytes(row["user_map_value"]["blob"])) for row in rows]
    plans = [blob for name, blob in blobs if name == PLAN]
    if not plans:
        raise WindloomError(what, "no micro-batch is committed in it", "look again when the stream has run")
    # Written by the operator beside its state.
    plan: Plan = pickle.loads(plans[0])
    return contents_of([blob for name, blob in blobs if name == HEAD], plan)
