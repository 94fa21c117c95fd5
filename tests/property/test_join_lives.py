"""Joins that come, go and are replaced while streams run, beside plain queries: every window once, by definition."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from support.compare import rows_of
from support.compare_joins import assert_equal_join_rows
from support.drawing import examples
from support.join_catalogs import STREAMS
from support.join_lives import Life, Round, arrived, changing_rounds, check_rows, closed, count_late, run
from support.join_looms import planned, registered
from windloom.checkpoint.state_codec import decode, encode
from windloom.errors import WindloomError
from windloom.optimizer.stages import PlanOptions
from windloom.rounds.lateness import LateCount
from windloom.rounds.questions import ask
from windloom_tools.oracle.joins import answer_join


@settings(max_examples=examples(50), deadline=None)
@given(rounds=changing_rounds(), bits=st.integers(0, 7), history_ticks=st.sampled_from([0, 10, 1000]))
def test_joins_that_come_and_go_report_exact_windows_once_and_count_late_tuples_of_every_side(
    rounds: list[Round], bits: int, history_ticks: int
) -> None:
    found = run(rounds, bits, history_ticks)
    for life in found.lives:
        check_rows(rounds, life)
    for number in range(len(rounds)):
        alive = [life for life in found.lives if life.first <= number <= life.last]
        for stream in STREAMS:
            assert found.late[number].streams.get(stream, LateCount()) == count_late(rounds, number, stream, alive)
        state = found.states[number]
        assert encode(decode(encode(state))) == encode(state)


@settings(max_examples=examples(40), deadline=None)
@given(rounds=changing_rounds(), history_ticks=st.sampled_from([0, 10, 1000]))
def test_a_question_about_a_join_is_answered_for_every_window_that_is_kept_whole(
    rounds: list[Round], history_ticks: int
) -> None:
    """Every join that runs, and the one of the last round, is asked for after every round."""
    found = run(rounds, 0, history_ticks)
    for number, state in enumerate(found.states):
        plan = planned(registered(rounds[number].texts), PlanOptions(intake="woven"))
        for name, text in {**rounds[number].texts, **rounds[-1].texts}.items():
            registry = registered({name: text})
            query = registry.queries[name]
            try:
                answers, since = ask(state, plan, planned(registry, PlanOptions(intake="woven")))
            except WindloomError as error:
                is_kept = history_ticks == 1000 and all(
                    round_.texts.get(name) == text for round_ in rounds[: number + 1]
                )
                if is_kept or "cannot be answered from what is kept" not in error.message:
                    raise
                continue
            if query.join is None:
                continue
            life, tuples, until = Life(query, 0, since), arrived(rounds, number), closed(rounds, query, number + 1)
            rows = answer_join(query, tuples)
            wanted = [row for row in rows if row["window_end"] <= until and life.is_covered(row["window_end"])]
            assert_equal_join_rows(query, tuples, wanted, rows_of(list(answers.blocks()), query))
