"""Charts as text, JSON and picture: all plans, where the stream is, and why these are the dimensions."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from string import ascii_uppercase

import pytest

from windloom.explain.charts import adapt_lines, chart_json, chart_svg, charts_text, grid_lines
from windloom.plan.adapting import AdaptView, AxisView, CandidateView, ChartView, PredictedRound

RATE = AxisView(
    "rate of trades", "events/s", (1.0, 10.0, 100.0, 1000.0), True, 50.0, 1, "four times as much is 3 times"
)
GROUPS = AxisView("groups of trades by <k>", "groups", (0.0, 5.0, 10.0), False, 7.0, 1, "it matters & how")
CHART = ChartView(
    "trades",
    (RATE, GROUPS),
    {"A": "trades woven; 1 tree", "B": "trades native; 2 trees; sum(x < 1) by two_stacks"},
    {(column, row): "AB"[column > row] for column in range(3) for row in range(2)},
    ((2.0, 3.0), (20.0, 3.0), (50.0, 7.0)),
    (CandidateView("A", 0.5, 2**20, 1.0, 0.0), CandidateView("B", 0.6, 2**21, 1.2, 0.0)),
    "A",
)
VIEW = AdaptView(
    "latency",
    (CHART,),
    4,
    1,
    judged=20,
    hits=19,
    same=10,
    regret=0.25,
    learned={"intake": (0.05, 1.2), "step": (0.0, 1.0)},
    rounds=16,
    rest=0.02,
    recent=(PredictedRound(7, None, 0.4), PredictedRound(8, 0.5, 0.4), PredictedRound(9, 0.44, 0.4)),
)


def test_a_grid_has_the_largest_values_on_top_and_marks_where_rounds_were() -> None:
    assert list(grid_lines(CHART)) == [
        "  5 –  A  [A]  B",
        "  0 – ·A· ·B·  B",
        "       1    1,000",
        "      [ ] the next round, · · rounds before it",
    ]


def wide(columns: int, rows: int, plans: int = 2) -> ChartView:
    """A chart of many parts, with so many plans in turn."""
    edges = tuple(float(10**6 + 10 * part) for part in range(columns + 1))
    across = AxisView("rate of trades", "events/s", edges, False, edges[-2], columns - 1, "why")
    up = AxisView("groups", "groups", tuple(map(float, range(rows + 1))), False, 0.0, 0, "why")
    letters = [ascii_uppercase[place % 26] + (str(place // 26) if place >= 26 else "") for place in range(plans)]
    regions = {(column, row): letters[column % plans] for column in range(columns) for row in range(rows)}
    return ChartView("trades", (across, up), dict.fromkeys(letters, "a plan"), regions, ((edges[1], 0.0),))


@pytest.mark.parametrize(("columns", "rows", "plans"), [(24, 3, 2), (25, 3, 2), (100, 4, 3), (1000, 1, 2), (90, 2, 60)])
def test_a_grid_is_no_wider_than_a_terminal_and_has_every_region_once(columns: int, rows: int, plans: int) -> None:
    chart = wide(columns, rows, plans)
    lines = list(grid_lines(chart))
    assert max(map(len, lines)) <= 110
    shown = [line.partition("–")[2] for line in lines if "–" in line]
    names = "".join(chart.regions.values())
    is_loose = "[ ]" in lines[-1]
    found = "".join(shown).replace("·", "").replace(" ", "")
    # All but the region of the next round, which is an @ where there is little room.
    assert len(found.replace("[", "").replace("]", "")) == len(names) - (
        0 if is_loose else len(chart.regions[columns - 1, 0]) - 1
    )
    assert found.count("[" if is_loose else "@") == 1
    assert ("·B·" in "".join(shown)) if is_loose else (chart.regions[1, 0].lower() in found)


def test_long_names_and_reasons_are_wrapped() -> None:
    long = AxisView(" ".join(["rate of a stream"] * 12), "events/s", (1.0, 10.0), True, 5.0, 0, "because " * 30)
    plans = {"A": "sum(a_very_long_column_name_of_a_table) by two_stacks; " * 8, "B": "x" * 300}
    chart = ChartView("a_stream_" * 40, (long, long), plans, {(0, 0): "A"}, ((2.0, 3.0),), (), "B")
    lines = charts_text((chart,)).splitlines()
    assert max(map(len, lines)) <= 110
    told = "".join("".join(lines).split())
    for words in ("because" * 30, "x" * 300, "B(inforce):", "rateofastream" * 12):
        assert words in told


def test_a_chart_tells_everything_as_text() -> None:
    text = charts_text((CHART, CHART))
    assert text.count("Chart of trades: 3 × 2 regions, regular parts") == 2
    assert "across        rate of trades, 1 to 1,000 events/s, now 50: four times as much is 3 times" in text
    assert "A (in force): trades woven; 1 tree" in text
    assert "B, runner-up: 600 ms and 2 MiB per round; utility 1.200 = 1.200 for latency + 0.000 for memory" in text
    assert "3 rounds: rate of trades 2 → 50, groups of trades by <k> 3 → 7" in text
    assert all(len(line) <= 110 for line in text.splitlines())


def test_how_a_stream_adapts_is_told() -> None:
    text = "\n".join(adapt_lines(VIEW)).replace("\n                ", " ")
    assert text.startswith("Adapting: plans for latency; 4 moves, 1 switch\n")
    assert "95 % of 20 judged rounds had a plan as good as the best, 50 % the very best; 0.25 s lost in all" in text
    assert "the last round 0.44 s predicted, 0.4 s taken; off by 25 % (median of 2 rounds)" in text
    assert "from 16 rounds, of the model's seconds: intake 50 ms + × 1.2, step × 1" in text
    nothing = AdaptView("memory", (), 0, 0, 0, 0, 0, 0.0, {}, 0, 0.0, (), "ValueError: why")
    told = "\n".join(adapt_lines(nothing))
    for words in ("no round has been judged yet", "no round has been predicted yet", "none yet", "ValueError: why"):
        assert words in told


def test_charts_are_data_too() -> None:
    found = json.loads(json.dumps(chart_json(CHART)))
    assert [0, 0, "A"] in found["regions"]
    assert [2.0, 3.0] in found["path"]
    assert found["axes"][0]["edges"] == [1.0, 10.0, 100.0, 1000.0]


@pytest.mark.parametrize("charts", [(CHART,), (CHART, CHART), ()])
def test_a_picture_is_drawn_of_all_charts(charts: tuple[ChartView, ...]) -> None:
    tree = ElementTree.fromstring(chart_svg(charts))
    said = " ".join(tree.itertext())
    assert said.count("Best plans for trades") == len(charts)
    if charts:
        for words in ("groups of trades by <k>", "A, in force", "sum(x < 1) by two_stacks", "where the next round is"):
            assert words in said


def test_one_dimension_is_a_row() -> None:
    view = ChartView("s", (RATE,), {"A": "a"}, {(i, 0): "A" for i in range(3)})
    assert next(grid_lines(view)) == "    A  [A]  A"
    ElementTree.fromstring(chart_svg((view,)))


def test_no_dimension_is_a_single_region() -> None:
    view = ChartView("s", (), {"A": "a"}, {(0, 0): "A"}, ((), ()))
    assert next(grid_lines(view)) == "   [A]"
    ElementTree.fromstring(chart_svg((view,)))
