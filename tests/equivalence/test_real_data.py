"""Real streams of ../shared/data against Spark's own window()."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windloom import Loom

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOGS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "debs2012/debs2012_small.parquet": (
        "manufacturing equipment at 100 Hz",
        {"time": "ts"},
        [
            "SELECT sum(mf01) AS a, max(mf02) AS b, avg(mf03) AS c FROM s [RANGE 60 seconds SLIDE 1 second]",
            "SELECT min(mf01) AS a, stddev_samp(mf02) AS b FROM s [RANGE 7 seconds SLIDE 300 ms]",
            "SELECT avg(mf01 + mf02) AS a, count(*) AS n FROM s [TUMBLE 10 seconds] HAVING count(*) > 10",
        ],
    ),
    "debs2014/debs2014_smartgrid.parquet": (
        "smart plugs, many ties",
        {"time": "ts", "unit": "s"},
        [
            "SELECT house, avg(value) AS a, max(value) AS m FROM s [RANGE 30 seconds SLIDE 4 seconds]"
            " WHERE property = 1 GROUP BY house",
            "SELECT house, household, plug, sum(value) AS a FROM s [RANGE 20 seconds SLIDE 7 seconds]"
            " GROUP BY house, household, plug",
            "SELECT count(*) AS n, var_pop(value) AS v FROM s [RANGE 10 seconds SLIDE 1 second OFFSET 500 ms]",
        ],
    ),
    "http_logs/elastic_apache_logs.parquet": (
        "a web log, heavy disorder and NULLs",
        {"time": "ts"},
        [
            "SELECT status, count(*) AS n, sum(bytes) AS b, avg(bytes) AS m FROM s [RANGE 1 hour SLIDE 7 minutes]"
            " GROUP BY status",
            "SELECT method, max(bytes) AS b, min(path) AS p FROM s [RANGE 10 minutes SLIDE 1 hour] GROUP BY method",
        ],
    ),
    "nab/nab_real_all_series.parquet": (
        "47 series with gaps and duplicate times",
        {"time": "timestamp"},
        [
            "SELECT series, avg(value) AS a, max(value) AS m, count(*) AS n"
            " FROM s [RANGE 1 day SLIDE 6 hours] GROUP BY series",
            "SELECT series, stddev_pop(value) AS d FROM s [RANGE 3 days SLIDE 1 day OFFSET 7 hours] GROUP BY series",
        ],
    ),
}


@pytest.mark.parametrize("file", CATALOGS)
def test_a_real_stream_is_answered_as_spark_answers_it(spark: SparkSession, shared_data: Path, file: str) -> None:
    _, options, texts = CATALOGS[file]
    loom = Loom(spark)
    loom.stream("s", spark.read.parquet(str(shared_data / file)), **options)
    for number, text in enumerate(texts):
        loom.query(f"q{number}", text)
    results = loom.run()
    for name in loom.queries:
        found = loom.verify(name, results)
        assert found.ok, f"{loom.queries[name].text}\n{found}"
        assert found.rows > 0
