"""Plans that change in every round, to whatever the registries offer: what is reported is what a fixed plan reports."""

from __future__ import annotations

import random
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from support.durable import STREAMS, Batch, make_batches, reported
from support.join_looms import registered
from support.micro_batches import PLACEMENTS, CrashError, MicroBatches, crash_after, pieces_of
from support.row_rounds import QUERIES as ROW_QUERIES
from support.row_rounds import STREAMS as ROW_STREAMS
from support.row_rounds import TYPES as ROW_TYPES
from support.row_rounds import RowRounds, row_rounds
from support.switching import any_choices
from windloom.durable.encoding import encode
from windloom.engine.running.progress import RoundProgress

ROUNDS = 8


def switch(life: MicroBatches, seed: int | None, number: int) -> None:
    """Anything, but for one seed and round always the same."""
    if seed is not None:
        draw = random.Random(f"{seed} {number}")
        life.switch(lambda plan: any_choices(plan, draw))


def live(folder: Path, batches: list[Batch], placement: str, seed: int | None) -> tuple[list[RoundProgress], bytes]:
    """One life, to the last round; with a seed, every round has choices of its own."""
    with pieces_of(2), MicroBatches(folder, STREAMS, placement=placement, history_ticks=15) as life:
        for number in range(life.loop.next_round, len(batches)):
            life.change(batches[number].queries)
            switch(life, seed, number)
            life.round({"s": batches[number].rows})
        return list(life.done), encode(life.state)


@lru_cache(maxsize=32)
def fixed(seed: int, placement: str) -> tuple[dict[int, dict[str, list[str]]], list[RoundProgress], bytes]:
    with tempfile.TemporaryDirectory() as folder:
        done, state = live(Path(folder), make_batches(seed, ROUNDS, placement), placement, None)
        return reported(Path(folder)), done, state


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 5),
    choices=st.integers(0, 1000),
    crashes=st.lists(st.integers(0, 60), max_size=4),
    placement=st.sampled_from(PLACEMENTS),
)
def test_a_switch_to_anything_in_every_round_changes_no_row_no_count_and_no_state(
    seed: int, choices: int, crashes: list[int], placement: str
) -> None:
    batches = make_batches(seed, ROUNDS, placement)
    with tempfile.TemporaryDirectory() as name:
        for life, crash in enumerate(crashes):
            with suppress(CrashError), crash_after(crash):
                live(Path(name), batches, placement, choices + life)
        done, state = live(Path(name), batches, placement, choices)
        answers, wanted, bytes_ = fixed(seed, placement)
        assert reported(Path(name)) == answers
        assert state == bytes_
        for one, other in zip(reversed(done), reversed(wanted), strict=False):
            assert (one.late, one.late_queries, one.events) == (other.late, other.late_queries, other.events)


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


def joined_rounds(folder: Path, seed: int, placement: str, choices: int | None) -> None:
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
    streams = {name: replace(one, delay_ticks=4) for name, one in JOINED.streams.items()}
    with MicroBatches(folder, streams, types=JOINED.types(), placement=placement, shards=2, snapshot_rounds=2) as life:
        life.change(JOINED.queries)
        for number in range(life.loop.next_round, len(rounds)):
            switch(life, choices, number)
            life.round(rounds[number])


@lru_cache(maxsize=8)
def fixed_joins(seed: int, placement: str) -> dict[int, dict[str, list[str]]]:
    with tempfile.TemporaryDirectory() as folder:
        joined_rounds(Path(folder), seed, placement, None)
        return reported(Path(folder))


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 3),
    choices=st.integers(0, 1000),
    crashes=st.lists(st.integers(0, 50), max_size=3),
    placement=st.sampled_from(PLACEMENTS),
)
def test_a_switch_in_every_round_changes_nothing_of_joins(
    seed: int, choices: int, crashes: list[int], placement: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        for life, crash in enumerate(crashes):
            with suppress(CrashError), crash_after(crash):
                joined_rounds(Path(name), seed, placement, choices + life)
        joined_rounds(Path(name), seed, placement, choices)
        assert reported(Path(name)) == fixed_joins(seed, placement)


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


@settings(max_examples=10, deadline=None)
@given(asked=row_rounds(), choices=st.integers(0, 1000), crashes=st.lists(st.integers(0, 40), max_size=2))
def test_a_switch_in_every_round_changes_nothing_of_rows(asked: RowRounds, choices: int, crashes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as fixed_name, tempfile.TemporaryDirectory() as name:
        row_lives(Path(fixed_name), asked, None)
        for life, crash in enumerate(crashes):
            with suppress(CrashError), crash_after(crash):
                row_lives(Path(name), asked, choices + life)
        row_lives(Path(name), asked, choices)
        assert reported(Path(name)) == reported(Path(fixed_name))
