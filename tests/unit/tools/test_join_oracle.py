"""The oracle of joins on examples that one can check by hand."""

from __future__ import annotations

from typing import Any

import pytest

from support.join_texts import Asked, Hung, Read, Residual
from windloom.model import Aggregate, Expression, JoinKind
from windloom_tools.oracle.joins import Landmarks, answer_join

Row = dict[str, Any]

ORDERS: list[Row] = [
    {"tick": 1, "k": "u", "x": 10},
    {"tick": 3, "k": "u", "x": 20},
    {"tick": 3, "k": "v", "x": 5},
    {"tick": 4, "k": None, "x": 7},
]
CLICKS: list[Row] = [
    {"tick": 2, "k": "u", "y": 1},
    {"tick": 3, "k": "u", "y": 3},
    {"tick": 3, "k": None, "y": 9},
]
ROWS = {"orders": ORDERS, "clicks": CLICKS}
TOTAL = Aggregate("sum", Expression("o.x * c.y"))
OWN = Aggregate("sum", Expression("o.x"))


def asked(kind: JoinKind, *aggregates: Aggregate, ranges: tuple[int | None, int | None] = (4, 2), **more: Any) -> Asked:
    hung = Hung(kind, "o", Read("clicks", "c", ranges[1]), (("k", "k", more.pop("null_safe", False)),), **more)
    return Asked(Read("orders", "o", ranges[0]), 2, 0, (hung,), (), (), (Aggregate("count"), *aggregates))


def rows(join: Asked, landmarks: Landmarks | None = None) -> list[tuple[Any, ...]]:
    """Window end, and the answers."""
    found = answer_join(join.query(), ROWS, landmarks=landmarks)
    return sorted(
        tuple(row[name] for name in ("window_end", *(f"o{i}" for i in range(len(join.aggregates))))) for row in found
    )


def test_windows_of_different_lengths_meet_at_their_ends() -> None:
    # At 4, orders [0, 4) and clicks [2, 4): u has 10, 20 and 1, 3. At 6, clicks [4, 6) are none.
    assert rows(asked(JoinKind.INNER, TOTAL)) == [(4, 4, 120)]
    starts = {row["window_start"] for row in answer_join(asked(JoinKind.INNER, TOTAL).query(), ROWS)}
    assert starts == {0}, "the window begins with the longest range"


def test_kinds_say_how_often_a_row_counts() -> None:
    # Ends 2 (order u 10), 4 (u 10, u 20, v 5), 6 (u 20, v 5, NULL 7) and 8 (NULL 7).
    assert rows(asked(JoinKind.LEFT, OWN, TOTAL)) == [
        (2, 1, 10, None),
        (4, 5, 65, 120),
        (6, 3, 32, None),
        (8, 1, 7, None),
    ]
    assert rows(asked(JoinKind.SEMI, OWN)) == [(4, 2, 30)]
    assert rows(asked(JoinKind.ANTI, OWN)) == [(2, 1, 10), (4, 1, 5), (6, 3, 32), (8, 1, 7)]


def test_null_keys_match_only_if_they_are_asked_to() -> None:
    wide = (4, 4)
    assert rows(asked(JoinKind.INNER, OWN, ranges=wide)) == [(4, 4, 60), (6, 2, 40)]
    assert rows(asked(JoinKind.INNER, OWN, ranges=wide, null_safe=True)) == [(4, 4, 60), (6, 3, 47)]


def test_residuals_and_conditions_of_one_side_decide_what_matches() -> None:
    residual = Residual("{p}.x > {c}.y * 5", "x", "y")
    assert rows(asked(JoinKind.INNER, TOTAL, residual=residual)) == [(4, 3, 10 + 20 + 60)]
    assert rows(asked(JoinKind.LEFT, OWN, condition="{c}.y > 2")) == [(2, 1, 10), (4, 3, 35), (6, 3, 32), (8, 1, 7)]


def test_landmark_sides_hold_everything_up_to_the_end() -> None:
    # Clicks from the landmark on, orders of the last two units: the last end is the first behind the last tuple.
    assert rows(asked(JoinKind.INNER, TOTAL, ranges=(2, None))) == [(4, 2, 80)]
    assert rows(asked(JoinKind.INNER, OWN, ranges=(None, None))) == [(4, 4, 60), (6, 4, 60)]
    assert rows(asked(JoinKind.INNER, OWN, ranges=(None, None)), Landmarks(last_end=8))[-1] == (8, 4, 60)


@pytest.mark.parametrize("kind", JoinKind)
def test_an_empty_side_matches_nothing(kind: JoinKind) -> None:
    found = answer_join(asked(kind, OWN).query(), {"orders": ORDERS[:1]})
    unmatched = kind in (JoinKind.LEFT, JoinKind.ANTI)
    assert [(row["window_end"], row["o1"]) for row in found] == ([(2, 10), (4, 10)] if unmatched else [])
