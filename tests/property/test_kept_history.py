"""Queries that are added to a stream that keeps tuples begin with the past, whatever crashes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.join_looms import registered
from support.micro_batches import CrashError, MicroBatches, answers_in, crash_after
from support.row_history import RowHistory
from support.row_rounds import STREAMS
from windloom.testing import answer, answer_rows
from windloom_tools.oracle.scalars import scalar

Row = dict[str, Any]

#: Those that run from the first round on, and those that come later: of other groupings, windows, components and kinds.
RUNNING = {
    "first": "SELECT k, sum(i) AS v FROM s [RANGE 8 us SLIDE 4 us] GROUP BY k",
    "rows": "SELECT k, i FROM s [TUMBLE 5 us]",
}
LATER = {
    "by_value": "SELECT i, count(*) AS n FROM s [RANGE 9 us SLIDE 3 us] GROUP BY i",
    "longer": "SELECT k, sum(i) AS v FROM s [RANGE 16 us SLIDE 8 us] GROUP BY k",
    "more": "SELECT k, sum(i) AS v, max(i) AS m FROM s [RANGE 8 us SLIDE 4 us] GROUP BY k",
    "whole": "SELECT count(*) AS n FROM s [TUMBLE 6 us] WHERE i > 1",
    "entering": "SELECT ISTREAM k FROM s [RANGE 9 us SLIDE 3 us] WHERE i > 2",
    "pairs": "SELECT a.i AS i, b.i AS j FROM s a JOIN s b WITHIN 5 us ON a.k = b.k AND a.i < b.i",
}
REGISTRY = registered({**RUNNING, **LATER}, STREAMS)
QUERIES, TYPES = REGISTRY.queries, REGISTRY.types()


@st.composite
def rounds(draw: st.DrawFn) -> list[list[Row]]:
    """Tuples in order of time, so that none is late."""
    ticks = sorted(draw(st.lists(st.integers(0, 60), min_size=4, max_size=30)))
    rows = [{"tick": tick, "k": draw(st.sampled_from([None, *"abc"])), "i": draw(st.integers(0, 4))} for tick in ticks]
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), min_size=2, max_size=5)))
    bounds = zip([0, *cuts], [*cuts, len(rows)], strict=True)
    return [rows[begin:end] for begin, end in bounds]


def run(folder: Path, batches: list[list[Row]], later: dict[int, list[str]]) -> None:
    """From where the checkpoint is to the end; `later` names queries that come before a round."""
    streams = {"s": STREAMS["s"]}
    options: dict[str, Any] = {"tuples": 1000, "history": RowHistory, "snapshot_rounds": 2}
    with MicroBatches(folder, streams, types=TYPES, **options) as life:
        for number in range(life.loop.next_round, len(batches)):
            names = [*RUNNING, *(name for before, own in later.items() if before <= number for name in own)]
            life.change({name: QUERIES[name] for name in names})
            life.round({"s": batches[number]})
        if life.loop.next_round == len(batches):
            life.finish()


def found(folder: Path) -> dict[str, list[str]]:
    every: dict[str, list[str]] = {}
    for own in answers_in(folder).values():
        for name, rows in own.items():
            every.setdefault(name, []).extend(map(repr, rows))
    return {name: sorted(rows) for name, rows in every.items()}


def expected(batches: list[list[Row]], names: list[str]) -> dict[str, list[str]]:
    rows = [row for batch in batches for row in batch]
    made = {}
    for name in names:
        query = QUERIES[name]
        if query.rows is not None:
            made[name] = answer_rows(query, {"s": rows})
            continue
        where = query.where
        made[name] = answer(query, [row for row in rows if where is None or scalar(where.sql)(row) is True])
    return {name: sorted(map(repr, own)) for name, own in made.items() if own}


@settings(max_examples=examples(20), deadline=None)
@given(
    batches=rounds(),
    names=st.lists(st.sampled_from(sorted(LATER)), min_size=1, max_size=3, unique=True),
    before=st.integers(1, 3),
    crashes=st.lists(st.integers(0, 60), max_size=4),
)
def test_queries_added_later_report_what_they_would_have_from_the_first_round_on(
    batches: list[list[Row]], names: list[str], before: int, crashes: list[int]
) -> None:
    later = {before: names[:1], before + 1: names[1:]}
    asked = [name for round, own in later.items() if round < len(batches) for name in own]
    with tempfile.TemporaryDirectory() as folder:
        for crash in crashes:
            try:
                with crash_after(crash):
                    run(Path(folder), batches, later)
            except CrashError:
                pass
        run(Path(folder), batches, later)
        assert found(Path(folder)) == expected(batches, [*RUNNING, *asked])


def test_no_crash_between_two_writes_loses_or_doubles_the_past(tmp_path: Path) -> None:
    rows = [{"tick": 3 * i, "k": "abc"[i % 3], "i": i % 5} for i in range(16)]
    batches = [rows[begin : begin + 4] for begin in range(0, 16, 4)]
    later = {2: ["by_value", "longer", "more", "pairs"]}
    whole = expected(batches, [*RUNNING, *later[2]])
    for crash in range(14, 62, 2):
        folder = tmp_path / str(crash)
        try:
            with crash_after(crash):
                run(folder, batches, later)
        except CrashError:
            pass
        run(folder, batches, later)
        assert found(folder) == whole, crash
