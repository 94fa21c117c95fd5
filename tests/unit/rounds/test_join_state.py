"""What a join keeps between rounds: bounded, whichever of its sides is late, silent or alone."""

from __future__ import annotations

from typing import Any

import pytest

from support.join_catalogs import STREAMS
from support.join_lives import Life, Round, Run, check_rows, run
from windloom.checkpoint.state_codec import encode
from windloom.rounds.lateness import LateCount

Row = dict[str, Any]
KINDS = ["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]


def row(tick: int, key: str, number: int = 1) -> Row:
    return {"tick": tick, "k": key, "f": 1.0, "i": number, "n": 1, "x": 1.0, "z": 1.0, "d": None, "b": True}


def query(kind: str = "JOIN") -> str:
    return (
        "SELECT a.k AS g0, count(*) AS o0, sum(a.i) AS o1 FROM s [RANGE 40 microseconds SLIDE 10 microseconds] AS a"
        f" {kind} t [RANGE 20 microseconds] AS b ON a.k = b.k GROUP BY a.k"
    )


def rounds_of(texts: dict[str, str], brought: list[dict[str, list[Row]]], **idle: frozenset[str]) -> list[Round]:
    found, frontiers = [], dict.fromkeys(STREAMS, -(2**62))
    for rows in brought:
        frontiers = {
            name: max([frontiers[name], *(arrived["tick"] for arrived in rows.get(name, []))]) for name in STREAMS
        }
        found.append(Round({name: rows.get(name, []) for name in STREAMS}, frontiers, texts, **idle))
    return found


def sizes(found: Run) -> list[int]:
    return [len(encode(state)) for state in found.states]


def the_life(found: Run) -> Life:
    (life,) = found.lives
    return life


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_stays_on_one_side_for_days_is_forgotten_with_its_windows(kind: str) -> None:
    brought = [
        {
            "s": [row(10 * number, "alone"), row(10 * number, f"once-{number}"), row(10 * number + 5, "both")],
            "t": [row(10 * number + 6, "both"), row(10 * number + 5, f"other-{number}")],
        }
        for number in range(150)
    ]
    rounds = rounds_of({"q": query(kind)}, brought)
    found = run(rounds, 0, 0)
    assert max(sizes(found)[20:]) <= 1.05 * max(sizes(found)[10:20])
    check_rows(rounds[:40], Life(the_life(found).query, 0, None, 39, the_life(found).reported))


def test_a_silent_side_holds_back_only_the_join_until_it_is_idle() -> None:
    plain = "SELECT k AS g0, count(*) AS o0 FROM s [RANGE 40 microseconds SLIDE 10 microseconds] GROUP BY k"
    brought = [
        {"s": [row(10 * number, "x")], "t": [row(10 * number, "x")] if number < 5 else []} for number in range(60)
    ]
    rounds = rounds_of({"q": query("LEFT JOIN"), "plain": plain}, brought)
    waiting = run(rounds, 0, 0)
    join, alone = waiting.lives
    assert all(alone.reported[number] for number in range(10, 60))
    assert not any(join.reported[number] for number in range(10, 60))
    for life in waiting.lives:
        check_rows(rounds, life)
    idle = [*rounds[:10], *rounds_of({"q": query("LEFT JOIN"), "plain": plain}, brought, idle=frozenset("t"))[10:]]
    going = run(idle, 0, 0)
    # Rows of the silent side are gone, so those of the other are reported without a match.
    assert [answer["o0"] for answer in going.lives[0].reported[30]] == [4]
    assert max(sizes(going)[30:]) <= 1.05 * max(sizes(going)[20:30])
    assert sizes(waiting)[-1] > sizes(going)[-1]


def test_late_tuples_of_one_side_count_in_the_windows_that_are_open() -> None:
    on_time = [{"s": [row(10 * n, "x")], "t": [row(10 * n, "x", 2)]} for n in range(12)]
    on_time[6]["s"].append(row(25, "x", 100))  # [25, 65) … end later than 50, up to where the join is closed
    on_time[9]["t"].append(row(5, "x"))  # no window that it belongs to is open
    rounds = rounds_of({"q": query()}, on_time)
    found = run(rounds, 3, 0)
    check_rows(rounds, the_life(found))
    assert found.late[6].streams == {"s": LateCount(partly=1)}
    assert found.late[9].streams == {"t": LateCount(dropped=1)}
    assert found.late[6].queries == {"q": LateCount(partly=1)}
