"""Joins of files, which a batch run folds straight from tuples, equal Spark's own SQL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windloom import Loom
from windloom.answers.joins import joins as join_answers
from windloom.plan.scans import WovenScan
from windloom.spark import scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JOINED = "FROM orders [RANGE {} minutes SLIDE 5 minutes] o JOIN clicks [RANGE {} minutes] c ON o.user {} c.user {} {}"
JOINS = {
    "by_region": "SELECT o.region, count(*) AS n, sum(c.amount) AS s "
    + _JOINED.format(15, 10, "=", "", "GROUP BY o.region"),
    "longer": "SELECT o.region, avg(o.price) AS p, sum(o.price * c.amount) AS s "
    + _JOINED.format(40, 5, "=", "", "GROUP BY o.region HAVING count(*) > 3"),
    "by_two": "SELECT c.page, c.kind, sum(o.price) AS s, sum(c.amount - o.price) AS d "
    + _JOINED.format(10, 20, "=", "", "GROUP BY c.page, c.kind"),
    "of_all": "SELECT count(*) AS n, sum(c.amount) AS s " + _JOINED.format(20, 20, "<=>", "", ""),
    "of_some": "SELECT o.region, count(*) AS n, sum(c.amount) AS s "
    + _JOINED.format(15, 10, "=", "WHERE c.kind = 'buy' AND o.price > 0", "GROUP BY o.region"),
}
#: They share sets with sides, at other slices; and a join that is folded from cells.
OTHERS = {
    "by_user": "SELECT user, sum(price) AS s, max(price) AS m FROM orders [RANGE 1 hour SLIDE 7 minutes] GROUP BY user",
    "by_page": "SELECT page, sum(amount) AS s FROM clicks [RANGE 15 minutes SLIDE 5 minutes] GROUP BY page",
    "unseen": "SELECT count(*) AS n FROM orders [RANGE 30 minutes SLIDE 5 minutes] o"
    " LEFT ANTI JOIN clicks [RANGE 30 minutes] c ON o.user = c.user",
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of each stream; the last one is earlier than the others, and some users are NULL."""
    folder, rng = tmp_path_factory.mktemp("streams"), np.random.default_rng(5)
    for stream, group, value in (("orders", "region", "price"), ("clicks", "page", "amount")):
        (folder / stream).mkdir()
        for number, begin in enumerate((2, 4, 0)):
            ticks = (begin * 3600 + rng.integers(0, 7200, 700)) * 1_000_000
            users = [None if random.Random(int(tick)).random() < 0.02 else int(tick) % 97 for tick in ticks]
            columns = {
                "ts": pa.array(ticks, pa.timestamp("us", "UTC")),
                "user": pa.array(users, pa.int64()),
                group: pa.array(rng.integers(0, 4, len(ticks)).astype(str)),
                "kind": pa.array(rng.choice(["buy", "look", "none"], len(ticks))),
                value: pa.array(rng.integers(-50, 50, len(ticks)), pa.int32() if value == "price" else pa.int64()),
            }
            pq.write_table(pa.table(columns), folder / stream / f"{number}.parquet")
    return folder


def loom_of(spark: SparkSession, stored: Path) -> Loom:
    loom = Loom(spark)
    for stream in ("orders", "clicks"):
        loom.stream(stream, spark.read.parquet(str(stored / stream)), time="ts")
    for name, text in {**JOINS, **OTHERS}.items():
        loom.query(name, text)
    return loom


@pytest.mark.parametrize("portion", [1 << 26, 1 << 10])
def test_joins_of_files_equal_spark(
    spark: SparkSession, stored: Path, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "LARGE_PORTION_BYTES", portion)
    families: list[bool] = []
    original = join_answers.MatrixFamily

    def noted(*given: object) -> object:
        families.append(len(given) > 4)
        return original(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(join_answers, "MatrixFamily", noted)
    loom = loom_of(spark, stored)
    results = loom.run(intake="woven", fold="auto")
    planned = {join.name: bool(join.tuples) for join in results.plan.joins if join.fold == "slice_matrix"}
    assert planned, "no join is folded by a matrix"
    assert all(planned.values())
    assert families
    assert all(families)
    for name in (*JOINS, *OTHERS):
        assert loom.verify(name).ok, name


def test_explain_tells_what_is_folded_from_tuples(spark: SparkSession, stored: Path) -> None:
    text = " ".join(loom_of(spark, stored).explain(intake="woven").split())
    assert "a batch run folds tuples in order of o.user and c.user, unless cells are clearly fewer" in text
    assert "orders every tuple by user, for folds that read" in text


def test_joins_whose_sides_are_asked_for_late_are_read_from_files_as_well(spark: SparkSession, stored: Path) -> None:
    loom = loom_of(spark, stored)
    asked, chosen = loom.run(joins="LAP"), loom.run()
    assert all(isinstance(scan, WovenScan) and scan.local is not None for scan in asked.plan.scans)
    for name in {**JOINS, **OTHERS}:
        rows, others = (sorted(results.arrow(name).to_pylist(), key=repr) for results in (asked, chosen))
        assert rows == others, name
