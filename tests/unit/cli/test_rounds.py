"""Rounds as they are shown: lines, a table that fits the terminal, totals."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from windloom.cli.rounds import RoundTotals, round_line, round_table, view_of
from windloom.engine.progress import RoundProgress
from windloom.sinks.delivery import SinkWait


def done(number: int, **others: Any) -> RoundProgress:
    values: dict[str, Any] = {
        "round": number,
        "batch": number,
        "events": 1000,
        "late_partly": 0,
        "late_dropped": 0,
        "untimed": 0,
        "partials": 40,
        "results": 20,
        "watermark": "2026-01-05T00:00:53+00:00",
        "lag": 90.0,
        "seconds": {"partials": 0.25, "log": 0.01, "step": 0.02, "answers": 0.03, "commit": 0.04, "snapshot": 0.05},
        "state_bytes": 2048,
        "queries": 8,
        "trees": 3,
        "plan_version": 2,
    }
    return RoundProgress(**{**values, **others})


def test_a_round_is_a_line() -> None:
    assert round_line(done(7)) == (
        "round 7: 1,000 events → 40 partials → 20 rows; watermark 2026-01-05 00:00:53, lag 1.5 min;"
        " 0.40 s (partials 0.25, log 0.01, step 0.02, answers 0.03, commit 0.04, snapshot 0.05);"
        " state 2 KiB, 3 trees, plan 2"
    )
    odd = round_line(done(8, late_partly=2, late_dropped=3, untimed=4, watermark=None, lag=None, trees=1))
    assert "1,000 events (2 partly late, 3 dropped as late, 4 without a time) → " in odd
    assert "watermark –, lag –;" in odd
    assert "1 tree," in odd


def test_of_several_streams_each_has_its_own_watermark() -> None:
    frontiers = {"trades": "2026-01-05T00:00:53+00:00", "quotes": None}
    silent = done(0, watermark=None, lag=None, frontiers=frontiers, lags={"trades": 90.0, "quotes": None})
    assert "rows; watermarks trades 2026-01-05 00:00:53 (lag 1.5 min), quotes –; 0.40 s" in round_line(silent)
    totals = RoundTotals()
    totals.add(silent)
    totals.add(done(1, watermark=None, lag=None, frontiers={"trades": None, "quotes": None}))
    assert str(totals).endswith("; watermarks trades 2026-01-05 00:00:53, quotes –")


def test_totals_add_up_and_remember_the_last_instant_of_the_watermark() -> None:
    totals = RoundTotals()
    assert str(totals) == "no round yet"
    totals.add(done(0, late_partly=1, late_dropped=2))
    totals.add(done(1, watermark=None, untimed=5))
    assert str(totals) == (
        "2 rounds, 2,000 events (3 late, 5 without a time) → 40 rows of 8 queries in 3 trees;"
        " watermark 2026-01-05 00:00:53"
    )


@pytest.mark.parametrize(("width", "is_wide"), [(80, False), (140, True)])
def test_the_table_fits_the_terminal(width: int, is_wide: bool) -> None:
    written = io.StringIO()
    rounds = [done(99_998, late_dropped=7), done(99_999, events=12_345_678, results=9_876_543, state_bytes=3 << 30)]
    rounds.append(done(100_000, watermark="2026-01-05T00:00:53.123456+00:00"))
    Console(file=written, width=width).print(round_table(rounds, is_wide))
    lines = written.getvalue().splitlines()
    assert len(lines) == 4
    assert "…" not in written.getvalue()
    assert lines[2].split()[:4] == ["99,999", "12,345,678", "0", "40" if is_wide else "9,876,543"]
    assert ("+ answers" in lines[0]) == is_wide
    for words in ("2026-01-05 00:00:53", "1.5 min", "0.40", "3 GiB"):
        assert words in lines[2]
    assert "00:00:53.1" not in lines[3]


def test_json_lines_hold_everything(capsys: pytest.CaptureFixture[str]) -> None:
    with view_of(as_json=True) as view:
        view.show(done(3))
        view.say("stopping")
    written = capsys.readouterr()
    assert json.loads(written.out) == done(3).as_dict()
    assert written.err == "… stopping\n"


def test_a_sink_that_is_down_is_told_once_now_and_then_and_when_it_is_back(capsys: pytest.CaptureFixture[str]) -> None:
    since = datetime(2026, 1, 5, 12, 0, 5, tzinfo=UTC)
    with view_of(as_json=True) as view:
        for attempts in range(1, 12):
            view.wait(SinkWait("postgres", 7, since, attempts, "nobody answers", 600.0))
        view.wait(None)
    out, err = capsys.readouterr()
    assert out == ""
    first, second, last = err.splitlines()
    assert first.startswith("… round 7 waits for the sink 'postgres' since 12:00:05 UTC, tried once: nobody answers")
    assert "tried 10 times" in second
    assert last == "… it is back, and the round goes on"
