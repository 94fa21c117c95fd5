"""Drawn streams in rounds, whose queries come and go, and the check of what is reported of them."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from support.catalogs import make_query
from support.compare import assert_equal_rows
from support.rounds import Round, Run, changed_queries, count_late, expected_rows, renamed
from windloom.checkpoint.state_codec import decode, encode
from windloom.model import Aggregate, Expression, LandmarkWindow, Query, TimeWindow
from windloom.model.time import TICK_MIN
from windloom.model.windows.cumulate import CumulateWindow
from windloom.rounds.lateness import LateCount

#: Few groupings and components, so that queries often share a set and differ in edges or components.
ASKED = [
    Aggregate("count"),
    Aggregate("sum", Expression.of_column("i")),
    Aggregate("min", Expression.of_column("k")),
    Aggregate("last", Expression.of_column("k")),
    Aggregate("count", where=Expression.of_column("b")),
    Aggregate("min_by", Expression.of_column("i"), Expression.of_column("k")),
]
WINDOWS = {
    "sliding or growing": [
        *(TimeWindow(*ticks) for ticks in [(4, 2), (8, 4), (6, 3), (12, 4), (5, 2), (9, 8, 1), (3, 6), (10, 1)]),
        *(LandmarkWindow(*ticks) for ticks in [(4,), (6, 1), (5,)]),
    ],
    "cumulating": [
        *(CumulateWindow(*ticks) for ticks in [(12, 4), (10, 2, 3), (18, 6, 7), (6, 3), (8, 1, 5), (5, 5, 1)]),
        TimeWindow(8, 4),
    ],
}
KINDS = pytest.mark.parametrize("kinds", list(WINDOWS))


def asking(kinds: str) -> st.SearchStrategy[Query]:
    return st.builds(
        lambda window, aggregate, grouping, where: make_query("q", window, [aggregate], grouping, where),
        st.sampled_from(WINDOWS[kinds]),
        st.sampled_from(ASKED),
        st.sampled_from([(), (), (), ("k",)]),
        st.sampled_from([None, None, None, "b"]),
    )


@st.composite
def drawn_rounds(draw: st.DrawFn, kinds: str, changes: bool) -> list[Round]:
    """Rounds of tuples that come more or less in order, and, if wanted, queries that come, go and are replaced."""
    names, asked = ["a", "b", "c"], asking(kinds)
    running = {name: renamed(draw(asked), name) for name in names[: draw(st.integers(1, 3))]}
    rounds: list[Round] = []
    now, watermark = 0, TICK_MIN
    for _ in range(draw(st.integers(1, 8))):
        if changes and rounds and draw(st.booleans()):
            running = changed_queries(draw, running, names, asked)
        ticks = draw(st.lists(st.integers(-6, 10), max_size=12))
        rows = [{"tick": now + tick, "k": "abc"[tick % 3], "i": tick % 5, "b": tick % 4 > 0} for tick in ticks]
        now = max([now, *(row["tick"] for row in rows)])
        watermark = max(watermark, now - draw(st.integers(0, 8)))
        rounds.append(Round(rows, watermark, running))
    return rounds


def check_rounds(rounds: list[Round], run: Run) -> None:
    """Every query reports in every round what it must by definition, and late tuples are counted."""
    for life in run.lives:
        expected = expected_rows(rounds, life)
        for number, rows in expected.items():
            arrived = [row for round_ in rounds[: number + 1] for row in round_.rows]
            assert_equal_rows(life.query, arrived, rows, life.reported[number])
    for number in range(len(rounds)):
        alive = [life for life in run.lives if life.first <= number <= life.last]
        late = run.late[number]
        assert late.streams.get("s", LateCount()) == count_late(rounds, number, alive)
        for life in alive:
            assert late.queries.get(life.query.name, LateCount()) == count_late(rounds, number, [life])


def check_states(run: Run) -> None:
    """Every state is the same after it was written and read."""
    for state in run.states:
        assert encode(decode(encode(state))) == encode(state)
