"""What tasks on executors tell of a stream does not depend on which groupings are shuffled before they are woven."""

from __future__ import annotations

import pyarrow as pa
import pytest

from support.catalogs import make_query
from support.native import taken_of_plan, tuples_table
from support.rounds import plan_of
from windloom.checkpoint.shards.split import join_cells
from windloom.model import Aggregate, RowsWindow, TimeWindow
from windloom.optimizer.stages import PlanOptions
from windloom.plan.plan import Plan
from windloom.rounds.lateness import before_round, count_late
from windloom.spark.executors import shards
from windloom.state.state import State
from windloom.weave.round_input import ScanResult
from windloom.weave.weave import ScanCounts, Ticks

WOVEN = PlanOptions(intake="woven")
COUNT = [Aggregate("count")]
CATALOG = {
    "all": make_query("all", TimeWindow(10, 10), COUNT, ("k",)),
    "only_b": make_query("only_b", TimeWindow(7, 5), COUNT, where="b"),
    "by_both": make_query("by_both", TimeWindow(12, 4), COUNT, ("k", "i"), "b"),
    "of_rows": make_query("of_rows", RowsWindow(3, 1), COUNT),
}
ROWS = [{"tick": tick, "k": "xy"[tick % 2], "i": tick % 5, "b": tick % 3 == 0} for tick in range(-20, 61)]


def taken_and_told(plan: Plan, state: State, many: int) -> tuple[ScanResult, Ticks]:
    """What all tasks of all passes leave; every pass reads the tuples in two tasks."""
    cells: list[bytes] = []
    ticks, behind, scanned = Ticks(), {}, {}
    for scan in plan.scans:
        if scan.counted_by is not None:
            continue
        for one_pass in shards._passes(plan, scan):
            task = shards._task(plan, one_pass, before_round(plan, state)["s"], 3)
            for rows in (ROWS[:many], ROWS[many:]):
                table = tuples_table(plan, one_pass.scan, rows)
                for batch in task(iter(table.to_batches())):
                    (row,) = batch.to_pylist()
                    if row["shard"] != shards.TOLD:
                        cells.append(row["cells"])
                        continue
                    span, seen, late = shards._read_told(row["cells"])
                    ticks += span
                    scanned[scan.number] = scanned.get(scan.number, ScanCounts()) + seen
                    if late is not None:
                        behind[scan.number] = shards.join_behind(
                            [late, *([behind[scan.number]] if scan.number in behind else [])]
                        )
    return ScanResult(join_cells(cells, plan), behind, scanned), ticks


@pytest.mark.parametrize("names", [list(CATALOG), ["all", "only_b"], ["all", "by_both"], ["by_both", "of_rows"]])
@pytest.mark.parametrize("from_cells", [2.0, -1.0], ids=["before", "behind"])
def test_the_passes_of_a_scan_tell_what_the_whole_scan_would(
    monkeypatch: pytest.MonkeyPatch, names: list[str], from_cells: float
) -> None:
    monkeypatch.setattr(shards, "MANY_CELLS", from_cells)
    plan = plan_of({name: CATALOG[name] for name in names}, WOVEN)
    state = State({}, {"s": 40})
    expected = taken_of_plan(plan, ROWS, state)
    found, ticks = taken_and_told(plan, state, 30)
    assert count_late(plan, found.behind, state, {}) == count_late(plan, expected.behind, state, {})
    assert found.cells.keys() == expected.cells.keys()
    assert found.scanned == expected.scanned
    if plan.scans[0].signature.sees_all:
        assert (ticks.first, ticks.last) == (-20, 60)
    shuffled = {one_pass.shuffled_by for one_pass in shards._passes(plan, plan.scans[0])}
    assert (shuffled == {()}) == (from_cells > 1)


def test_tuples_without_a_time_are_counted_once_however_many_passes_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "MANY_CELLS", -1.0)
    plan = plan_of(CATALOG, WOVEN)
    ticks = Ticks()
    for one_pass in shards._passes(plan, plan.scans[0]):
        table = tuples_table(plan, one_pass.scan, ROWS[:4])
        table = table.set_column(0, "tick", pa.array([None] * table.num_rows, pa.int64()))
        for batch in shards._task(plan, one_pass, before_round(plan, State())["s"], 3)(iter(table.to_batches())):
            (row,) = batch.to_pylist()
            assert row["shard"] == shards.TOLD
            ticks += shards._read_told(row["cells"])[0]
    assert ticks == Ticks(None, None, 4)
