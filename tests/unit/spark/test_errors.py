"""Spark's failures as errors of ours, without Spark."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from windloom.errors import WindloomError
from windloom.language.select import parse_query
from windloom.model import DataType, Stream
from windloom.spark.errors import as_windloom_errors

FULL = (
    "[STREAM_FAILED] Query [id = 4743ea6b] terminated with exception: java.io.IOException: No space left on device"
    " SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: [id = 4743ea6b]"
)


def test_a_file_system_that_fails_under_spark_is_the_users_to_mend() -> None:
    with pytest.raises(WindloomError) as raised, as_windloom_errors("the stream"):
        raise PySparkException(FULL)
    assert raised.value.message == "the disk is full: Spark cannot write files of the stream"
    assert raised.value.detail == "No space left on device"
    assert raised.value.hint.startswith("make room")
    with pytest.raises(WindloomError) as raised, as_windloom_errors("the stream"):
        raise PySparkException(FULL.replace("No space left on device", "Permission denied"))
    assert raised.value.message == "Spark cannot read or write files of the stream"


def test_what_is_not_the_users_to_mend_passes_unchanged() -> None:
    with pytest.raises(PySparkException, match="a bug"), as_windloom_errors("the stream"):
        raise PySparkException("[INTERNAL_ERROR] a bug of Spark SQLSTATE: XX000")


WORKER = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker. Please see the stack trace below.\n"
    "Traceback (most recent call last):\n"
    '  File "worker.py", line 1, in main\n'
    "pyspark.serializers.SerializationError: Caused by Traceback (most recent call last):\n"
    '  File "windloom/kernels/compiled.py", line 8, in <module>\n'
    "    import numba\n"
    "ModuleNotFoundError: No module named 'numba'\n SQLSTATE: 38000"
)


def test_a_worker_without_a_module_is_told_by_the_modules_name() -> None:
    with pytest.raises(WindloomError) as raised, as_windloom_errors("the stream"):
        raise PySparkException(WORKER)
    assert raised.value.message == "Python on an executor cannot import what Windloom needs"
    assert raised.value.detail == "No module named 'numba'"
    assert "spark.pyspark.python" in raised.value.hint


def test_a_result_too_large_for_the_driver_is_told_with_size_and_limit() -> None:
    with pytest.raises(WindloomError) as raised, as_windloom_errors("query 'q'"):
        raise PySparkException(
            "Job aborted due to stage failure: Total size of serialized results of 3 tasks (1536.0 KiB) is bigger than"
            " spark.driver.maxResultSize (1024.0 KiB)"
        )
    assert raised.value.message == "what Spark would bring to the driver for query 'q' is too large"
    assert raised.value.detail == "it has more than 1536.0 KiB, and spark.driver.maxResultSize allows 1024.0 KiB"


FAILED = """[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
== SQL (line 1, position 5) ==
1 + qty / 0
    ^^^^^^^
"""


def test_the_queries_that_ask_for_a_failed_expression_are_named_up_to_five() -> None:
    columns = {"ts": DataType.parse("timestamp"), "qty": DataType.parse("int"), "my_qty": DataType.parse("int")}
    streams = {"orders": Stream("orders", columns, time="ts")}
    asked = {
        "other": "SELECT sum(my_qty / 0) AS s",
        "literal": "SELECT sum(qty / 03) AS s",
        **{f"q{number}": f"SELECT sum({number} + qty / 0) AS s" for number in range(7)},
    }
    queries = [parse_query(name, f"{text} FROM orders [TUMBLE 1 hour]", streams) for name, text in asked.items()]
    with pytest.raises(WindloomError) as raised, as_windloom_errors("stream 'orders'", queries):
        raise PySparkException(FAILED)
    shown = "'q0', 'q1', 'q2', 'q3', 'q4' and 2 more"
    assert raised.value.detail == f"[DIVIDE_BY_ZERO] Division by zero.\nin qty / 0, asked by {shown}"
    with pytest.raises(WindloomError) as raised, as_windloom_errors("stream 'orders'", queries[:2]):
        raise PySparkException(FAILED)
    assert raised.value.detail.endswith("in qty / 0")
