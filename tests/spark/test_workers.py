"""Python on executors that lacks what the kernels need: told by name in a batch and in a stream, never a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.trades import trades
from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = {"n": "SELECT count(*) AS n FROM trades [TUMBLE 60 seconds]"}
#: Found by Python when it starts: a module of this name is not there.
HIDE = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "{module}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


@pytest.fixture
def lacking(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """Workers that are started from now on lack a module; Spark has other ones for other environments."""
    module: str = request.param
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "sitecustomize.py").write_text(HIDE.format(module=module))
    environment = spark.sparkContext.environment
    before = dict(environment)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(tmp_path / "hiding"), before.get("PYTHONPATH")]))
    yield module
    environment.clear()
    environment.update(before)


@pytest.mark.parametrize("lacking", ["numba", "windloom"], indirect=True)
def test_a_batch_on_executors_names_the_module_that_they_lack(spark: SparkSession, lacking: str) -> None:
    loom = Loom(spark)
    loom.stream("trades", trades(spark), time="ts")
    loom.query("n", COUNT["n"])
    with pytest.raises(WindloomError, match="Python on an executor cannot import") as raised:
        loom.run(placement="executors", buckets=2)
    assert raised.value.detail == f"No module named '{lacking}'"
    assert loom.run(placement="driver").arrow("n").num_rows == 4
