"""EMIT CHANGES and EMIT EMPTY in streams: what they report is what the definition makes of the final rows.

The same stream runs the same query twice, once with EMIT FINAL. However it is cut into rounds, however late tuples come
and wherever it crashes, the rows of the other one follow from those.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.emission import STREAMS, asked, bag, draw_rounds, draw_text, rows_of, run
from support.emission_oracle import applied, changes, last_end, windows_without_tuples
from support.micro_batches import CrashError, MicroBatches, crash_after
from windloom.checkpoint.storage import EMITTED_FAULT_POINTS, watched

SEEDS = st.integers(0, 100_000)


def ticks(rounds: list[list[dict[str, int]]]) -> list[int]:
    return [row["tick"] for rows in rounds for row in rows]


@settings(max_examples=examples(20), deadline=None)
@given(seed=SEEDS)
def test_changes_are_those_of_the_final_rows_from_window_to_window(seed: int) -> None:
    rng = random.Random(seed)
    text, rounds = draw_text(rng, landmarks=True), draw_rounds(rng, rng.randrange(1, 8))
    queries = {"q": asked(text, "EMIT CHANGES", "q"), "final": asked(text, "EMIT FINAL", "final")}
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), rounds, [queries] * len(rounds))
        final, found = rows_of(Path(name), "final"), rows_of(Path(name), "q")
    last = last_end(queries["q"], ticks(rounds))
    assert bag(found) == bag([] if last is None else changes(queries["q"], final, last)), text
    for end in {row["window_end"] for row in final}:
        edges = ("window_start", "window_end")
        shown = [
            {name: value for name, value in row.items() if name not in edges}
            for row in final
            if row["window_end"] == end
        ]
        assert bag(applied(queries["q"], found, end)) == bag(shown), text


@settings(max_examples=examples(20), deadline=None)
@given(seed=SEEDS)
def test_groups_that_are_known_have_a_row_in_every_window(seed: int) -> None:
    rng = random.Random(seed)
    text, rounds = draw_text(rng, landmarks=False), draw_rounds(rng, rng.randrange(1, 8))
    plain = text.partition(" HAVING")[0]
    queries = {"q": asked(text, "EMIT EMPTY", "q"), "final": asked(text, "", "final"), "all": asked(plain, "", "all")}
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), rounds, [queries] * len(rounds))
        final, every, found = (rows_of(Path(name), query_name) for query_name in ("final", "all", "q"))
    last = last_end(queries["q"], ticks(rounds))
    missing = [] if last is None or "HAVING count(*) > 1" in text else windows_without_tuples(queries["q"], every, last)
    nothing = {"count(*) AS n": {"n": 0}, "coalesce": {"n": 0, "t": -1}, "count(i)": {"n": 1}}
    values = next((held for part, held in reversed(nothing.items()) if part in text), {"n": None})
    assert bag(found) == bag([*final, *({**row, **values} for row in missing)]), text


@settings(max_examples=examples(12), deadline=None)
@given(seed=SEEDS, crashes=st.lists(st.integers(0, 60), min_size=1, max_size=5))
def test_crashes_change_nothing_while_queries_come_go_and_are_replaced(seed: int, crashes: list[int]) -> None:
    rng = random.Random(seed)
    rounds, lives, queries = draw_rounds(rng, 8), [], {}
    for _ in rounds:
        if rng.random() < 0.5:
            name, emit = rng.choice("ab"), rng.choice(["EMIT CHANGES", "EMIT EMPTY", "EMIT EARLY EVERY 3 us", ""])
            queries = {query_name: query for query_name, query in queries.items() if query_name != name}
            if rng.random() < 0.8 or not queries:
                queries[name] = asked(draw_text(rng, landmarks=False), emit, name)
        queries = queries or {"a": asked(draw_text(rng, landmarks=False), "EMIT CHANGES", "a")}
        lives.append(queries)
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as other:
        run(Path(name), rounds, lives, history_ticks=15)
        for crash in crashes:
            try:
                with crash_after(crash):
                    run(Path(other), rounds, lives, history_ticks=15)
            except CrashError:
                pass
        run(Path(other), rounds, lives, history_ticks=15)
        for query in "ab":
            assert bag(rows_of(Path(name), query)) == bag(rows_of(Path(other), query))


def test_a_crash_at_every_point_of_a_round_leaves_every_change_once(tmp_path: Path) -> None:
    rng = random.Random(3)
    rounds = [rows or [{"tick": 30, "k": "x", "i": 1, "f": 1.0, "x": 1.0}] for rows in draw_rounds(rng, 4)]
    text = "SELECT k, count(*) AS n FROM s [RANGE 8 us SLIDE 4 us] GROUP BY k"
    emits = {"q": "EMIT CHANGES", "e": "EMIT EMPTY", "y": "EMIT EARLY EVERY 3 us"}
    queries = [{name: asked(text, emit, name) for name, emit in emits.items()}] * len(rounds)
    passed: list[str] = []
    with watched(passed.append):
        run(tmp_path / "whole", rounds, queries)
    assert set(EMITTED_FAULT_POINTS) <= set(passed)
    for crash in range(0, len(passed), 7):
        folder = tmp_path / str(crash)
        with pytest.raises(CrashError), crash_after(crash):
            run(folder, rounds, queries)
        run(folder, rounds, queries)
        for name in emits:
            assert bag(rows_of(folder, name)) == bag(rows_of(tmp_path / "whole", name)), crash


def test_what_was_reported_is_forgotten_with_the_last_query_that_needs_it(tmp_path: Path) -> None:
    text = "SELECT k, count(*) AS n FROM s [TUMBLE 4 us] GROUP BY k"
    rows = [{"tick": tick, "k": "x", "i": 1, "f": 1.0, "x": 1.0} for tick in range(10)]
    with MicroBatches(tmp_path, STREAMS) as life:
        life.change({"q": asked(text, "EMIT CHANGES", "q")})
        life.round({"s": rows})
        assert life.checkpoint.read_emitted().standing
        life.change({"q": asked(text, "", "q")})
        life.round({"s": rows})
        assert not life.checkpoint.read_emitted().standing
        assert len(list((tmp_path / "checkpoint" / "emitted").iterdir())) == 1


ROWS = (
    "SELECT k, i FROM s [RANGE 8 us SLIDE 4 us] WHERE i > 1",
    "SELECT k FROM s [RANGE 8 us SLIDE 4 us] UNION ALL SELECT k FROM s [RANGE 4 us SLIDE 4 us]",
    "SELECT l.k, r.i FROM s [RANGE 8 us SLIDE 4 us] AS l JOIN s [RANGE 4 us SLIDE 4 us] AS r ON l.i = r.i",
    "SELECT k FROM s [TUMBLE 5 us] EXCEPT ALL SELECT k FROM s [TUMBLE 5 us] WHERE i > 2",
    "SELECT DISTINCT k FROM s [RANGE 9 us SLIDE 3 us]",
    "SELECT k, i FROM s [RANGE 9 us SLIDE 3 us] WHERE NOT EXISTS"
    " (SELECT 1 FROM s [RANGE 3 us SLIDE 3 us] AS r WHERE r.i > s.i)",
)


@settings(max_examples=examples(20), deadline=None)
@given(seed=SEEDS, text=st.sampled_from(ROWS), crash=st.integers(0, 200))
def test_rows_that_come_and_go_leave_the_rows_of_every_window(seed: int, text: str, crash: int) -> None:
    rng = random.Random(seed)
    rounds = draw_rounds(rng, rng.randrange(1, 7))
    queries = {"q": asked(text, "EMIT CHANGES", "q"), "all": asked(text, "", "all")}
    with tempfile.TemporaryDirectory() as name:
        with suppress(CrashError), crash_after(crash):
            run(Path(name), rounds, [queries] * len(rounds))
        run(Path(name), rounds, [queries] * len(rounds))
        every, found = rows_of(Path(name), "all"), rows_of(Path(name), "q")
    columns = [column.name for column in queries["q"].rows.columns]
    for end in {row["window_end"] for row in every}:
        standing = bag([{column: row[column] for column in columns} for row in every if row["window_end"] == end])
        held: Counter[str] = Counter()
        for row in found:
            values = bag([{column: row[column] for column in columns}])
            if "valid_until" in row:
                held += values if row["window_end"] <= end < row["valid_until"] else Counter()
            elif row["window_end"] <= end:
                held.update(values) if row["change"] == "insert" else held.subtract(values)
        assert +held == standing, (end, text)
