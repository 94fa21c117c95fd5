"""What rounds observe: the same native and woven, as counting rows one by one gives."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from support.catalogs import STREAM, make_query
from support.join_looms import registered
from support.micro_batches import CrashError, MicroBatches, Row, crash_at
from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.storage import LocalStorage
from windloom.explain.costs import SecondsView
from windloom.explain.text import explain_text
from windloom.model import Aggregate, Expression, Query, RowsWindow, SessionWindow, TimeWindow
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.plan_cost import estimate_plan
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.statistics.estimates import Memory
from windloom.statistics.observations import RoundObserved
from windloom.statistics.set_statistics import SetIdentity

STREAMS = {"s": replace(STREAM, delay_ticks=6)}
COUNT = [Aggregate("count")]
SUM_B = [Aggregate("sum", Expression.of_column("i"), where=Expression.of_column("b"))]
TIMED = {
    "all": make_query("all", TimeWindow(8, 4), COUNT, ("k",)),
    "only_b": make_query("only_b", TimeWindow(10, 5), COUNT, ("k",), "b"),
    "one": make_query("one", TimeWindow(6, 3), SUM_B),
}
FILTERED = {"only_b": TIMED["only_b"]}
OTHERS = {
    "sessions": make_query("sessions", SessionWindow(2), COUNT, ("k",)),
    "rows": make_query("rows", RowsWindow(4, 2), COUNT),
}


def batches(count: int, seed: int = 3) -> list[list[Row]]:
    rng = random.Random(seed)
    return [
        [
            {
                "tick": number * 20 + rng.randrange(20),
                "k": rng.choice("vwxyz"),
                "i": rng.randrange(9),
                "b": rng.random() < 0.3,
            }
            for _ in range(rng.randrange(5, 40))
        ]
        for number in range(count)
    ]


def run(folder: Path, rows: list[list[Row]], queries: dict[str, Query], **options: str) -> list[RoundObserved]:
    with MicroBatches(folder, STREAMS, **options) as life:  # type: ignore[arg-type]
        life.change(queries)
        for batch in rows[life.loop.next_round :]:
            life.round({"s": batch})
        return life.checkpoint.recent_observed(99)


def slices_of(query: Query, rows: list[Row]) -> int:
    edge = query.window.slide_ticks if query.window.range_ticks % query.window.slide_ticks == 0 else 0
    assert edge, "the tests have windows whose edges are those of their slide"
    keyed = [(row["tick"] // edge, row["k"] if query.group_by else None) for row in rows]
    return len(set(keyed))


@pytest.mark.parametrize("intake", ["native", "woven"])
@pytest.mark.parametrize("queries", [TIMED, FILTERED], ids=["all", "filtered"])
def test_a_round_observes_what_counting_rows_gives(tmp_path: Path, intake: str, queries: dict[str, Query]) -> None:
    rows = batches(6)
    found = run(tmp_path, rows, queries, intake=intake)
    seen = None
    for batch, observed in zip(rows, found, strict=True):
        stream = observed.streams["s"]
        assert stream.tuples == len(batch)
        last = max([row["tick"] for row in batch] + ([] if seen is None else [seen]))
        first = min(row["tick"] for row in batch) if seen is None else seen
        assert stream.seconds == pytest.approx((last - first) / TICKS_PER_SECOND)
        assert stream.conditions["b"] == sum(row["b"] for row in batch)
        for query in queries.values():
            wanted = [row for row in batch if query.where is None or row["b"]]
            own = observed.sets[SetIdentity.of_query(query)]
            assert (own.tuples, own.cells) == (len(wanted), slices_of(query, wanted))
        seen = last


def test_windows_of_rows_and_sessions_are_observed_too(tmp_path: Path) -> None:
    rows = batches(8)
    found = run(tmp_path, rows, {**TIMED, **OTHERS})
    memory = Memory()
    for observed in found:
        memory.add(observed)
    estimates = memory.estimates()
    of_rows = estimates.sets[SetIdentity.of_query(OTHERS["rows"])]
    assert of_rows.selectivity.value == pytest.approx(1.0, abs=0.3), "those in front of the frontier wait"
    assert estimates.sets[SetIdentity.of_query(OTHERS["sessions"])].groups.value == pytest.approx(5, abs=1)


@pytest.mark.parametrize("point", ["after log", "before commit", "after commit"])
def test_a_round_that_is_repeated_observes_the_same(tmp_path: Path, point: str) -> None:
    rows = batches(6)
    expected = run(tmp_path / "whole", rows, TIMED)
    with crash_at(point, 4), pytest.raises(CrashError):
        run(tmp_path / "crashed", rows, TIMED)
    assert run(tmp_path / "crashed", rows, TIMED) == expected


def test_a_commit_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    run(tmp_path, batches(6), TIMED)
    (tmp_path / "checkpoint/commits/000000003.json").write_bytes(b"{")
    checkpoint = Checkpoint.open(LocalStorage(tmp_path / "checkpoint"), STREAMS)
    try:
        assert len(checkpoint.recent_observed(99)) == 5
    finally:
        checkpoint.close()


JOINED = registered(
    {
        "pairs": "SELECT count(*) AS n FROM s [RANGE 20 us SLIDE 10 us] AS a JOIN t [RANGE 20 us] AS b ON a.k = b.k",
        "apart": "SELECT a.i, count(*) AS n FROM s [RANGE 20 us SLIDE 10 us] AS a"
        " LEFT JOIN u [RANGE 20 us] AS b ON a.k = b.k GROUP BY a.i",
    }
)


def test_joins_observe_keys_and_what_matches(tmp_path: Path) -> None:
    draw = random.Random(2)

    def rows(keys: str) -> list[Row]:
        return [{"tick": draw.randrange(20), "k": draw.choice(keys), "i": draw.randrange(4)} for _ in range(60)]

    frames = {"s": [*rows("abcdef"), {"tick": 1, "k": None, "i": 0}], "t": rows("defghij"), "u": rows("xy")}
    with MicroBatches(tmp_path, JOINED.streams, types=JOINED.types()) as life:
        life.change(JOINED.queries)
        life.round(frames)
        (seen,) = life.checkpoint.recent_observed(1)
    (pairs,), (apart,) = seen.joins["pairs"], seen.joins["apart"]
    assert (pairs.parent.keys, pairs.child.keys) == (6, 7)
    assert (pairs.pairs, pairs.matched) == (3, 3)
    # The side of "apart" is grouped by i as well, so a key has several groups.
    groups = {(row["k"], row["i"]) for row in frames["s"] if row["k"] is not None}
    assert (apart.parent.keys, apart.parent.groups) == (6, len(groups))
    assert (apart.child.keys, apart.pairs) == (2, 0)
    memory = Memory()
    memory.add(seen)
    known = PlanningFacts(estimates=memory.estimates())
    plan = make_plan(JOINED.streams, JOINED.queries.values(), JOINED.types(), PlanOptions(), known)
    text = explain_text(plan, SecondsView(plan, estimate_plan(plan, known.in_force())))
    told = text.replace("\n                ", " ")
    assert "6 keys in a, 7 in b; 50 % of the groups of a match, with 0.5 of b on average" in told
