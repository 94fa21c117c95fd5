"""Plans that change in every round, to whatever the registries offer: what is reported is what a fixed plan reports."""

from __future__ import annotations

import random
import tempfile
from ast import literal_eval
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.durable import STREAMS, Batch, make_batches, reported
from support.join_looms import registered
from support.micro_batches import CrashError, MicroBatches, crash_after
from support.row_rounds import QUERIES as ROW_QUERIES
from support.row_rounds import STREAMS as ROW_STREAMS
from support.row_rounds import TYPES as ROW_TYPES
from support.row_rounds import RowRounds, row_rounds
from support.switching import any_choices
from windloom.checkpoint.state_codec import encode
from windloom.engine.progress import RoundProgress
from windloom.model import Query

ROUNDS = 8

Reported = dict[int, dict[str, list[str]]]
Switched = tuple[Reported, list[RoundProgress], bytes]


def switch(life: MicroBatches, seed: int | None, number: int) -> None:
    """Anything, but for one seed and round always the same."""
    if seed is not None:
        draw = random.Random(f"{seed} {number}")
        life.switch(lambda plan: any_choices(plan, draw))


def live(folder: Path, batches: list[Batch], seed: int | None) -> tuple[list[RoundProgress], bytes]:
    """One life, to the last round; with a seed, every round has choices of its own."""
    with MicroBatches(folder, STREAMS, history_ticks=15) as life:
        for number in range(life.loop.next_round, len(batches)):
            life.change(batches[number].queries)
            switch(life, seed, number)
            life.round({"s": batches[number].rows})
        return list(life.done), encode(life.state)


@lru_cache(maxsize=32)
def fixed(seed: int, changing: bool) -> Switched:
    with tempfile.TemporaryDirectory() as folder:
        done, state = live(Path(folder), batches_of(seed, changing), None)
        return reported(Path(folder)), done, state


def batches_of(seed: int, changing: bool) -> list[Batch]:
    """Without `changing`, the first queries stay."""
    found = make_batches(seed, ROUNDS)
    return found if changing else [round_._replace(queries=found[0].queries) for round_ in found]


def switching(folder: Path, seed: int, choices: int, crashes: list[int], changing: bool) -> Switched:
    batches = batches_of(seed, changing)
    for life, crash in enumerate(crashes):
        with suppress(CrashError), crash_after(crash):
            live(folder, batches, choices + life)
    done, state = live(folder, batches, choices)
    return reported(folder), done, state


SWITCHED = {
    "seed": st.integers(0, 5),
    "choices": st.integers(0, 1000),
    "crashes": st.lists(st.integers(0, 60), max_size=4),
}


@settings(max_examples=examples(14), deadline=None)
@given(**SWITCHED)
def test_a_switch_to_anything_in_every_round_changes_no_row_no_count_and_no_state(
    seed: int, choices: int, crashes: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        answers, done, state = switching(Path(name), seed, choices, crashes, False)
    wanted_answers, wanted, wanted_state = fixed(seed, False)
    assert answers == wanted_answers
    assert state == wanted_state
    for progress, expected in zip(reversed(done), reversed(wanted), strict=False):
        assert (progress.late, progress.late_queries, progress.events) == (
            expected.late,
            expected.late_queries,
            expected.events,
        )


@settings(max_examples=examples(14), deadline=None)
@given(**SWITCHED)
def test_queries_that_come_and_go_report_the_same_from_where_on_they_are_complete(
    seed: int, choices: int, crashes: list[int]
) -> None:
    """How far back a query that is added is answered depends on what the logs of past rounds hold: tuples, or cells."""
    with tempfile.TemporaryDirectory() as name:
        answers, _, state = switching(Path(name), seed, choices, crashes, True)
    wanted, _, wanted_state = fixed(seed, True)
    assert state == wanted_state
    found, expected = by_life(answers, seed), by_life(wanted, seed)
    for life in found.keys() | expected.keys():
        rows, others = found.get(life, []), expected.get(life, [])
        starts = [min((start for _, start, _ in own), default=None) for own in (rows, others)]
        first = max((start for start in starts if start is not None), default=0)
        assert [row for row in rows if row[1] >= first] == [other for other in others if other[1] >= first], life


def by_life(answers: Reported, seed: int) -> dict[tuple[str, int], list[tuple[int, int, str]]]:
    """(round, start of the window, row) of every query, by its name and the round with which it came."""
    found: dict[tuple[str, int], list[tuple[int, int, str]]] = {}
    came: dict[str, tuple[Query, int]] = {}
    for number, batch in enumerate(batches_of(seed, True)):
        kept = {name: came[name] for name, query in batch.queries.items() if name in came and came[name][0] == query}
        came = {name: kept.get(name, (query, number)) for name, query in batch.queries.items()}
        for name, rows in answers.get(number, {}).items():
            own = found.setdefault((name, came[name][1]), [])
            own += [(number, literal_eval(row)["window_start"], row) for row in rows]
    return found


JOINED = registered(
    {
        "pairs": "SELECT a.k, count(*) AS n, sum(a.i * b.i) AS x FROM s [RANGE 8 us SLIDE 4 us] AS a"
        " JOIN t [RANGE 12 us] AS b ON a.k = b.k GROUP BY a.k",
        "three": "SELECT count(*) AS n, max(c.i) AS x FROM s [RANGE 8 us SLIDE 4 us] AS a"
        " JOIN t [RANGE 8 us] AS b ON a.k = b.k LEFT JOIN u [RANGE 16 us] AS c ON a.k = c.k",
        "plain": "SELECT k, sum(i) AS x FROM t [RANGE 12 us SLIDE 4 us] GROUP BY k",
    }
)


def a_row(tick: int, draw: random.Random) -> dict[str, object]:
    return {"tick": tick + draw.randrange(-6, 8), "k": draw.choice("xyz"), "i": draw.randrange(9)}


def joined_rounds(folder: Path, seed: int, choices: int | None) -> None:
    """Three streams in disorder; with a seed for choices, every round has its own."""
    draw = random.Random(seed)
    rounds = [
        {
            name: [
                {"tick": 6 * number + draw.randrange(-6, 8), "k": draw.choice("xyz"), "i": draw.randrange(9)}
                for _ in range(6)
            ]
            for name in draw.sample("stu", draw.choice([2, 3]))
        }
        for number in range(6)
    ]
    streams = {name: replace(stream, delay_ticks=4) for name, stream in JOINED.streams.items()}
    with MicroBatches(folder, streams, types=JOINED.types(), snapshot_rounds=2) as life:
        life.change(JOINED.queries)
        for number in range(life.loop.next_round, len(rounds)):
            switch(life, choices, number)
            life.round(rounds[number])


@lru_cache(maxsize=8)
def fixed_joins(seed: int) -> Reported:
    with tempfile.TemporaryDirectory() as folder:
        joined_rounds(Path(folder), seed, None)
        return reported(Path(folder))


@settings(max_examples=examples(12), deadline=None)
@given(
    seed=st.integers(0, 3),
    choices=st.integers(0, 1000),
    crashes=st.lists(st.integers(0, 50), max_size=3),
)
def test_a_switch_in_every_round_changes_nothing_of_joins(seed: int, choices: int, crashes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        for life, crash in enumerate(crashes):
            with suppress(CrashError), crash_after(crash):
                joined_rounds(Path(name), seed, choices + life)
        joined_rounds(Path(name), seed, choices)
        assert reported(Path(name)) == fixed_joins(seed)


#: Of three strands, of which only some may be joined in another order; of several selections; under aggregates.
ROWS = ("near_all", "circle", "circle_count", "several", "entering_left", "unequal_count")


def row_lives(folder: Path, asked: RowRounds, choices: int | None) -> None:
    with MicroBatches(folder, ROW_STREAMS, types=ROW_TYPES, snapshot_rounds=2) as life:
        life.change({name: ROW_QUERIES[name] for name in ROWS})
        for number in range(life.loop.next_round, len(asked.rounds)):
            switch(life, choices, number)
            life.round(asked.rounds[number])
        if life.loop.next_round == len(asked.rounds):
            life.finish()


@settings(max_examples=examples(10), deadline=None)
@given(asked=row_rounds(), choices=st.integers(0, 1000), crashes=st.lists(st.integers(0, 40), max_size=2))
def test_a_switch_in_every_round_changes_nothing_of_rows(asked: RowRounds, choices: int, crashes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as fixed_name, tempfile.TemporaryDirectory() as name:
        row_lives(Path(fixed_name), asked, None)
        for life, crash in enumerate(crashes):
            with suppress(CrashError), crash_after(crash):
                row_lives(Path(name), asked, choices + life)
        row_lives(Path(name), asked, choices)
        assert reported(Path(name)) == reported(Path(fixed_name))
