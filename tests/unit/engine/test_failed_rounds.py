"""Rounds that fail because of one query: the others go on as soon as that query is gone, and lose nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.catalogs import make_query
from support.durable import STREAMS
from support.micro_batches import CrashError, MicroBatches, RowJobs, answers_in, crash_at
from windloom.errors import WindloomError
from windloom.model import Aggregate, Expression, Query, TimeWindow, Urgency
from windloom.sinks.memory import MemorySink
from windloom.sinks.sink import RoundAnswers

WINDOW = TimeWindow(10, 10)
GOOD = make_query("good", WINDOW, [Aggregate("count")], ("k",))
BAD = make_query("bad", WINDOW, [Aggregate("sum", Expression.of_column("n"))], ("k",))
MENDED = make_query("bad", WINDOW, [Aggregate("max", Expression.of_column("n"))], ("k",))
LARGEST = 2**63 - 1


def tuples(first: int, value: int) -> dict[str, list[dict[str, Any]]]:
    return {"s": [{"tick": first + i, "k": "ab"[i % 2], "n": value} for i in range(12)]}


#: The second round closes the window of two tuples per group whose sum does not fit; the third closes another one.
ROUNDS = [tuples(0, 1), tuples(12, LARGEST), *(tuples(12 * number, 1) for number in range(2, 7))]


def both(bad: Query = BAD) -> dict[str, Query]:
    return {"good": GOOD, "bad": bad}


def live(folder: Path, queries: Mapping[str, Query], rounds: int = len(ROUNDS)) -> MicroBatches:
    """One life of the stream, up to so many rounds in all."""
    with MicroBatches(folder, STREAMS) as life:
        life.change(queries)
        while life.loop.next_round < rounds:
            life.round(ROUNDS[life.loop.next_round])
    return life


def fail(folder: Path) -> None:
    with pytest.raises(WindloomError, match="query 'bad': a value does not fit its type"):
        live(folder, both())


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    return [row for _, found in sorted(answers_in(folder).items()) for row in found.get(name, [])]


def test_the_same_queries_fail_again_and_nothing_is_lost(tmp_path: Path) -> None:
    fail(tmp_path)
    before = answers_in(tmp_path)
    fail(tmp_path)
    assert answers_in(tmp_path) == before


@pytest.mark.parametrize("left", [{"good": GOOD}, both(MENDED)], ids=["removed", "replaced"])
def test_a_stream_goes_on_once_the_query_that_failed_is_removed_or_replaced(
    tmp_path: Path, left: Mapping[str, Query]
) -> None:
    fail(tmp_path / "failed")
    live(tmp_path / "failed", left)
    live(tmp_path / "alone", {"good": GOOD})
    assert rows_of(tmp_path / "failed", "good") == rows_of(tmp_path / "alone", "good")
    assert len(rows_of(tmp_path / "alone", "good")) > 4
    reported = rows_of(tmp_path / "failed", "bad")
    assert all(row["o0"] in (5, 1, LARGEST) for row in reported)
    assert (max(row["window_end"] for row in reported) > 20) == ("bad" in left), "a new query begins after the failure"


def test_a_query_that_only_becomes_more_urgent_meanwhile_loses_no_row(tmp_path: Path) -> None:
    fail(tmp_path / "failed")
    live(tmp_path / "failed", {"good": replace(GOOD, urgency=Urgency(priority=1))})
    live(tmp_path / "alone", {"good": GOOD})
    assert rows_of(tmp_path / "failed", "good") == rows_of(tmp_path / "alone", "good")


def test_a_crash_is_no_failure_a_query_that_leaves_afterwards_reports_the_round(tmp_path: Path) -> None:
    harmless = both(MENDED)
    with pytest.raises(CrashError), crash_at("after log", nth=2):
        live(tmp_path / "crashed", harmless)
    live(tmp_path / "crashed", {"good": GOOD}, rounds=2)
    live(tmp_path / "whole", harmless, rounds=2)
    assert answers_in(tmp_path / "crashed") == answers_in(tmp_path / "whole")


class Picky(MemorySink):
    """Cannot take rows of the query 'bad' in the second round, as if an expression over its answers failed there."""

    def write(self, round: int, answers: RoundAnswers) -> None:
        for _, rows in answers.rows():
            if round == 1 and "bad" in rows["query"].to_pylist():
                raise WindloomError("query 'bad': division by zero", "in max(n) / 0", "correct the query")
        super().write(round, answers)


def test_a_query_whose_answers_fail_after_the_log_is_left_out_and_the_others_lose_nothing(tmp_path: Path) -> None:
    with MicroBatches(tmp_path / "failed", STREAMS, sinks={"picky": Picky()}) as life:
        life.change(both(MENDED))
        life.round(ROUNDS[0])
        for _ in range(2):
            with pytest.raises(WindloomError, match="division by zero"):
                life.round(ROUNDS[1])
    with MicroBatches(tmp_path / "failed", STREAMS, sinks={"picky": Picky()}) as life:
        assert life.checkpoint.has_failed(1)
        life.change({"good": GOOD})
        for frames in ROUNDS[1:]:
            life.round(frames)
    live(tmp_path / "alone", {"good": GOOD})
    assert rows_of(tmp_path / "failed", "good") == rows_of(tmp_path / "alone", "good")
    assert {number for number, found in answers_in(tmp_path / "failed").items() if "bad" in found} <= {0}


class Refusing(RowJobs):
    """As if Spark could not evaluate an expression of the query 'bad' in the second round."""

    def take_in(self, plan: Any, frames: Any, *more: Any) -> Any:
        if any(planned.name == "bad" for planned in plan.queries) and frames["s"][0]["tick"] == 12:
            raise WindloomError("Spark cannot evaluate the stream", "in CAST(k AS INT)", "correct the query")
        return super().take_in(plan, frames, *more)


def test_a_round_that_could_not_take_its_tuples_in_begins_anew_with_the_newest_queries(tmp_path: Path) -> None:
    with MicroBatches(tmp_path / "failed", STREAMS, jobs=Refusing) as life:
        life.change(both(MENDED))
        life.round(ROUNDS[0])
        with pytest.raises(WindloomError, match="cannot evaluate"):
            life.round(ROUNDS[1])
    with MicroBatches(tmp_path / "failed", STREAMS, jobs=Refusing) as life:
        life.change({"good": GOOD})
        for frames in ROUNDS[1:]:
            life.round(frames)
        assert {progress.plan_version for progress in life.done} == {1}
    live(tmp_path / "alone", {"good": GOOD})
    assert rows_of(tmp_path / "failed", "good") == rows_of(tmp_path / "alone", "good")
