"""What `python -m bench.kernels` refuses and says of given figures, and what `python -m bench.compare` compares."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from bench import compare
from bench.kernels.__main__ import bars, bench
from bench.measure import Outcome
from bench.profile import recorded
from click.testing import CliRunner

from windloom.engine.loop import CompletedRound, RoundLoop
from windloom.errors import WindloomError


def test_a_window_too_short_to_count_is_refused() -> None:
    outcome = CliRunner().invoke(bench, ["operations", "--window", "3"])
    assert isinstance(outcome.exception, WindloomError)
    assert "--window 8" in outcome.exception.hint


@pytest.mark.parametrize(("share", "holds"), [(0.3, True), (0.01, False)])
def test_a_bar_holds_or_is_missed_by_the_share_of_the_reading_loop(share: float, holds: bool) -> None:
    names = [(t, k) for t in ("slick_deque", "two_stacks", "block_decomposition", "daba") for k in ("sum", "max")]
    speed = {"ns": 2.0, "ratio_reading": share, "ratio_float": 0.9, "ratio_vector": 0.9, "ratio_writing": 0.9}
    found = {
        "single_query": [{"technique": t, "kind": k, "window": 4096, "input": "random", **speed} for t, k in names],
        "many_ranges": [{"technique": "daba", "kind": k, "ranges": "100 ranges", **speed} for k in ("sum", "max")],
        "latency": [{"technique": t, "kind": k, "max_ns": 10.0} for t, k in names],
        "step": {"rows_per_second": 2e7, "ratio_writing": 0.5},
    }
    assert {row["holds"] for row in bars(found) if "share of the loop" in row["what"]} == {holds}


def test_of_a_thousand_queries_rounds_are_compared_by_what_the_notes_of_both_revisions_tell() -> None:
    told = [Outcome("added", 1.0, "ratio", 1.1, "<=", note) for note in ("0.25 s a round; …", "…; 0.125 s per round")]
    assert [compare.figure("add_to_a_thousand", outcome) for outcome in told] == [0.25, 0.125]


@pytest.mark.parametrize(
    ("name", "better", "details", "slower"),
    [
        ("one_key", ">=", [{"our_seconds": 1.0}, {"our_seconds": 9.0}], 0.5),  # figures: 2 against 4, more is better
        ("round_one_key", "<=", [{}, {}], 2.0),
        ("predicates", "<=", [{"base_seconds": 2.0}, {"base_seconds": 1.0}], 0.5),
        ("groupings", "<=", [{"pairs": [(2.0, 9.0)] * 3}, {"pairs": [(3.0, 99.0)] * 3}], 1.5),
    ],
)
def test_revisions_are_compared_by_seconds_where_the_figure_is_relative_to_windloom_itself(
    monkeypatch: pytest.MonkeyPatch, name: str, better: str, details: list[dict[str, object]], slower: float
) -> None:
    there, here = Path("there"), Path("here")
    told = {
        there: Outcome(name, 2.0, "ratio", 1.0, better, details=details[0]),
        here: Outcome(name, 4.0, "ratio", 1.0, better, details=details[1]),
    }
    monkeypatch.setattr(compare, "measured", lambda name, place, repeats: told[place])
    assert compare.slowdown(name, there, here, turns=3, repeats=1) == slower


def test_a_profile_has_planning_the_stages_of_a_round_and_finished_answers_of_its_later_runs() -> None:
    with recorded() as recorder:
        recorder.timed("plan", lambda: None, ahead=True)
        for seconds in (9.0, 2.0, 3.0, 4.0):
            done = SimpleNamespace(progress=SimpleNamespace(seconds={"answers": seconds}), processor={"answers": 1.0})
            loop = SimpleNamespace(plan=SimpleNamespace(queries=["a", "b"]))
            assert recorder.ran(cast("RoundLoop", loop), lambda done=done: cast("CompletedRound", done)) is done
            recorder.timed("finish", lambda: None)
    lines = [line.split() for line in recorder.lines()]
    assert " ".join(lines[0]) == "2 queries; medians of the last 2 of 4 runs or rounds"
    stages = {line[0]: line[1:3] for line in lines[2:]}
    assert stages["answers"] == ["3.500", "1.000"]
    assert set(stages) == {"answers", "(Spark)", "finish", "all"}
