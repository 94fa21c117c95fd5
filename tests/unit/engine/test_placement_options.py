"""Where a stream's step runs is checked before anything else."""

from __future__ import annotations

from typing import Any

import pytest

from support.row_rounds import QUERIES
from windloom.engine.options import StreamOptions
from windloom.engine.placement import refuse_unsharded
from windloom.errors import WindloomError


def options(**given: Any) -> StreamOptions:
    usual: dict[str, Any] = {
        "finish": False,
        "idle_after": None,
        "keep": None,
        "untimed": "skip",
        "snapshot_rounds": 10,
    }
    return StreamOptions.of(None, **usual, **given)


def test_the_driver_is_the_default() -> None:
    assert options().placement == "driver"
    assert options(placement="executors", shards=8).shards == 8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"placement": "auto"}, "unknown placement 'auto'"),
        ({"placement": "executors", "shards": 0}, "the number of shards cannot be 0"),
        ({"placement": "executors", "shards": True}, "the number of shards cannot be True"),
        ({"shards": 4}, "shards=4 is not used"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(WindloomError, match=message):
        options(**given)


def test_tuples_are_kept_and_row_queries_answered_wherever_the_step_runs() -> None:
    assert options(placement="executors", keep_tuples="1 hour").tuple_ticks > 0
    refuse_unsharded(QUERIES.values())
