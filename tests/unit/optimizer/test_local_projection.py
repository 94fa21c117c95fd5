"""Which scans the driver can project itself, and what it projects: decided and evaluated without Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from windloom.engine.registry import Registry
from windloom.explain.node import node_json
from windloom.explain.scans import intake_text, scan_node
from windloom.expressions.arithmetic import DeclinedError
from windloom.language.catalog import parse_catalog
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.intake.woven import local_projection
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.plan.scans import LocalProjection, WovenScan
from windloom.weave.files import project_tuples

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, a INT, x DOUBLE, words ARRAY<STRING>) TIME ts;"
WINDOW = "FROM s [RANGE 20 seconds SLIDE 10 seconds]"


def plan_of(*texts: str, files: bool = True, intake: str = "auto", stream: str = STREAM) -> Plan:
    def no_session() -> None:
        raise AssertionError("no plan here needs Spark")

    registry = Registry(no_session)  # type: ignore[arg-type]
    (declared,) = parse_catalog(stream, source="test").streams
    registry.streams[declared.stream.name] = declared.stream
    for number, text in enumerate(texts):
        registry.add_query(f"q{number}", text)
    known = PlanningFacts(files={"s": frozenset(declared.stream.columns) - {"words"}} if files else {})
    return make_plan(registry.sources, registry.queries.values(), registry.types(), PlanOptions(intake=intake), known)


def scan_of(plan: Plan) -> WovenScan:
    (scan,) = plan.scans
    assert isinstance(scan, WovenScan)
    return scan


def test_files_are_read_by_the_driver_where_it_knows_everything() -> None:
    texts = [
        f"SELECT k, sum(x * 2) AS c {WINDOW} WHERE a > 1 AND k <> 'b' GROUP BY k",
        f"SELECT count(*) AS n {WINDOW}",
    ]
    scan = scan_of(plan_of(*texts, intake="woven"))
    assert scan.local is not None
    assert scan.local.reads == ("a", "k", "ts", "x")
    assert scan_of(plan_of(*texts, intake="woven", files=False)).local is None


def test_reading_files_counts_in_the_choice_of_the_intake() -> None:
    asked = f"SELECT sum(x) AS c, max(x) AS m {WINDOW}"
    plan = plan_of(asked)
    assert intake_text(scan_of(plan)).startswith("woven: the driver reads the files, kernels aggregate")
    assert node_json(scan_node(plan, plan.scans[0]))["read_by"] == "driver"
    other = plan_of(asked, files=False)
    assert intake_text(other.scans[0]).startswith("native: Spark aggregates")
    assert "read_by" not in node_json(scan_node(other, other.scans[0]))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"SELECT max(upper(k)) AS c {WINDOW}", "upper()"),
        (f"SELECT count(*) AS c {WINDOW} WHERE k LIKE 'a%'", "LIKE"),
        (f"SELECT approx_quantile(x, 0.5) AS c {WINDOW}", "what is kept of"),
        (f"SELECT approx_count_distinct(k) AS c {WINDOW}", "what is kept of"),
        (f"SELECT count(words) AS c {WINDOW}", "words"),
        ("SELECT count(*) AS c FROM s [ROWS 10 SLIDE 5]", "positions"),
    ],
)
def test_what_is_left_to_spark(text: str, why: str) -> None:
    plan = plan_of(text, intake="woven")
    assert all(isinstance(scan, WovenScan) and scan.local is None for scan in plan.scans if scan.feeds)
    counted = next(scan for scan in plan.scans if scan.feeds)
    assert isinstance(counted, WovenScan)
    found = local_projection(counted, plan.stream("s"))
    assert isinstance(found, str)
    assert why.lower() in found.lower()


def test_times_that_depend_on_the_session_are_left_to_spark() -> None:
    stream = STREAM.replace("ts TIMESTAMP", "ts STRING")
    assert scan_of(plan_of(f"SELECT count(*) AS c {WINDOW}", intake="woven", stream=stream)).local is None


def table_of(a: list[int | None], k: list[str | None]) -> tuple[pa.Table, pa.Array]:
    coded = pa.array(k).dictionary_encode()
    ticks = pa.array([None if i == 1 else 1_000_000 * i for i in range(len(a))], pa.int64())
    x = pa.array(np.arange(len(a)) / 2)
    instants = [datetime.fromtimestamp(i, UTC) for i in range(len(a))]
    ts = pa.array(instants, pa.timestamp("us", "UTC"))
    return pa.table({"a": pa.array(a, pa.int32()), "k": coded, "x": x, "ts": ts}), ticks


def project(plan: Plan, table: pa.Table, tick: pa.Array) -> pa.Table:
    scan = scan_of(plan)
    assert isinstance(scan.local, LocalProjection)
    return project_tuples(scan.local, scan.signature, table, tick)


def test_tuples_that_nobody_wants_are_left_out_and_those_without_a_time_are_not() -> None:
    plan = plan_of(f"SELECT count(*) AS c {WINDOW} WHERE a > 1", f"SELECT max(x) AS c {WINDOW} WHERE k = 'b'")
    found = project(plan, *table_of([5, 0, None, 0, 7], ["a", "a", "b", "a", "b"]))
    assert found["tick"].to_pylist() == [0, None, 2_000_000, 4_000_000]
    first, second = (int(predicate.sql.startswith("k")) for predicate in scan_of(plan).signature.predicates)
    by_number = [[1, 0, 0, 1], [0, 0, 1, 1]]
    assert [word & 1 for word in found["s0"].to_pylist()] == by_number[first]
    assert [word >> 1 for word in found["s0"].to_pylist()] == by_number[second]


def test_a_condition_of_all_queries_is_applied_before_anything_else() -> None:
    plan = plan_of(f"SELECT k, count(*) AS c {WINDOW} WHERE a > 1 GROUP BY k")
    found = project(plan, *table_of([5, 0, None, 0, 7], ["a", None, "b", "a", None]))
    assert found["tick"].to_pylist() == [0, None, 4_000_000]
    assert found["x0"].cast(pa.string()).to_pylist() == ["a", None, None]


def test_values_that_spark_refuses_are_declined_only_where_they_are_asked_for() -> None:
    guarded = plan_of(f"SELECT max(1 DIV a) AS c {WINDOW} WHERE a <> 0", f"SELECT count(*) AS n {WINDOW}")
    assert project(guarded, *table_of([2, 0, 1], ["a", "a", "a"]))["x0"].to_pylist() == [0, None, 1]
    unguarded = plan_of(f"SELECT max(1 DIV a) AS c {WINDOW}", f"SELECT count(*) AS n {WINDOW}")
    with pytest.raises(DeclinedError):
        project(unguarded, *table_of([2, 0, 1], ["a", "a", "a"]))
