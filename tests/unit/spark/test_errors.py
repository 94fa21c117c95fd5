"""Spark's failures as errors of ours, without Spark."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from windloom.errors import WindloomError
from windloom.spark.errors import as_windloom_errors

FULL = (
    "[STREAM_FAILED] Query [id = 4743ea6b] terminated with exception: java.io.IOException: No space left on device"
    " SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: [id = 4743ea6b]"
)


def test_a_file_system_that_fails_under_spark_is_the_users_to_mend() -> None:
    with pytest.raises(WindloomError) as raised, as_windloom_errors("the stream"):
        raise PySparkException(FULL)
    assert raised.value.message == "Spark cannot read or write files of the stream"
    assert raised.value.detail == "No space left on device"


def test_what_is_not_the_users_to_mend_passes_unchanged() -> None:
    with pytest.raises(PySparkException, match="a bug"), as_windloom_errors("the stream"):
        raise PySparkException("[INTERNAL_ERROR] a bug of Spark SQLSTATE: XX000")
