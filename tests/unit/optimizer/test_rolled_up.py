"""Which sets are predicted to be rolled up from signatures, what that costs, and what EXPLAIN tells of it."""

from __future__ import annotations

import pytest

from windloom.engine.registry import Registry
from windloom.explain.node import node_json
from windloom.explain.scans import intake_text, scan_node
from windloom.language.catalog import parse_catalog
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.intake.cost import scan_cost
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.plan.scans import FEWEST_SIGNED, WovenScan

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, a INT, x DOUBLE) TIME ts RATE 1000;"


def plan_of(*texts: str, files: bool = True, intake: str = "woven") -> Plan:
    registry = Registry(lambda: pytest.fail("no plan here needs Spark"))
    (declared,) = parse_catalog(STREAM, source="test").streams
    registry.streams["s"] = declared.stream
    for number, text in enumerate(texts):
        registry.add_query(f"q{number}", text)
    known = PlanningFacts(files={"s": frozenset(declared.stream.columns)} if files else {})
    return make_plan(registry.sources, registry.queries.values(), registry.types(), PlanOptions(intake=intake), known)


def scan_of(plan: Plan) -> WovenScan:
    (scan,) = plan.scans
    assert isinstance(scan, WovenScan)
    return scan


def asking(predicates: int, window: str = "[TUMBLE 1 minute]", groups: str = "") -> list[str]:
    by = f" GROUP BY {groups}" if groups else ""
    select = f"SELECT {groups + ', ' if groups else ''}sum(x) AS t, max(x) AS h FROM s {window} WHERE"
    return [f"{select} a > {number}{by}" for number in range(predicates)]


def test_many_predicates_on_one_column_have_few_signatures() -> None:
    plan = plan_of(*asking(20))
    scan = scan_of(plan)
    assert scan.rolled_up is not None
    assert (scan.rolled_up.sets, scan.rolled_up.signatures) == (20, 21)
    assert ", sets are rolled up from signatures, of which 21 are expected (" in intake_text(scan)
    assert node_json(scan_node(plan, plan.scans[0]))["rolled_up"] == {"sets": 20, "signatures": 21}


def test_sets_of_other_groupings_are_not_counted() -> None:
    scan = scan_of(plan_of(*asking(20), "SELECT k, count(*) AS n FROM s [TUMBLE 1 minute] GROUP BY k"))
    assert scan.rolled_up is not None
    assert scan.rolled_up.sets == 20
    assert ", 20 of its sets are rolled up from signatures" in intake_text(scan)


@pytest.mark.parametrize(
    "texts",
    [
        asking(FEWEST_SIGNED - 1),
        asking(20, "[TUMBLE 10 milliseconds]"),  # about ten tuples in a slice
        asking(20, "[SESSION GAP 1 minute]"),
        asking(20, "[TUMBLE 1 second]", "k"),  # about ten tuples in a slice and group
    ],
)
def test_sets_are_not_rolled_up_where_that_saves_nothing(texts: list[str]) -> None:
    scan = scan_of(plan_of(*texts))
    assert scan.rolled_up is None
    assert "signatures" not in intake_text(scan)
    assert "rolled_up" not in node_json(scan_node(plan_of(*texts), scan))


def test_the_cost_of_a_woven_scan_grows_slowly_with_predicates() -> None:
    constants = load_constants()
    few, many = (plan_of(*asking(count)) for count in (10, 40))
    costs = [scan_cost(scan_of(plan), plan.sets, constants).total for plan in (few, many)]
    assert costs[1] < 1.5 * costs[0]
    by_spark = plan_of(*asking(40), files=False)
    assert (
        scan_cost(scan_of(by_spark), by_spark.sets, constants).scan
        > scan_cost(scan_of(many), many.sets, constants).scan
    )


def test_files_with_many_predicates_are_woven() -> None:
    assert isinstance(plan_of(*asking(30), intake="auto").scans[0], WovenScan)
